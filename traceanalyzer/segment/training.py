"""Training steps: the forward pass, which has the blocks; gradients run the same layers backwards."""

from __future__ import annotations

import numpy as np

from traceanalyzer.segment.tokens import MIXER, IntArray, KernelVocabulary


def forward_pass(tokens: IntArray, vocabulary: KernelVocabulary) -> slice:
    """Return where the forward pass of a step lies; all of it where nothing computes gradients.

    It is the stretch without a gradient's kernel that mixes tokens most often; a layer that is computed again for its
    gradients is a stretch of its own, with one mixer.

        F F F F  loss  B B B ...  optimizer        one stretch up to the first gradient
        F F F F  loss  B F B F B F B F             activations computed again: the first stretch has most mixers
    """
    gradients = np.flatnonzero(vocabulary.backward[tokens])
    if not len(gradients):
        return slice(0, len(tokens))
    starts = np.concatenate(([0], gradients + 1))
    ends = np.append(gradients, len(tokens))
    mixers = np.concatenate(([0], np.cumsum(vocabulary.classes[tokens] == MIXER)))
    chosen = int((mixers[ends] - mixers[starts]).argmax())
    return slice(int(starts[chosen]), int(ends[chosen]))
