"""How far the attention of a block reaches: a window is claimed only where it is proven, else what is seen is named.

A window is proven by a kernel's name, or by two populations of attention times that take turns regularly through a
language model's layers (1 : 1 in gpt-oss, 5 : 1 in Gemma 3, 3 : 1 in Llama 4). Other populations are long and short.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from traceanalyzer.segment.tokens import MIXER, BoolArray, IntArray, KernelVocabulary

_APART = 1.25
"""Least ratio between two populations of attention times. Chosen, not fitted."""
_SPREAD = 1.6
"""How much wider the gap between two populations must be than either of them (logarithms of durations).
Chosen, not fitted."""
_LONGEST_TURN = 8
"""Layers after which a regular pattern of windows repeats, at most. Chosen, not fitted: published ones have 2 to 6."""
_TURNS = 2
"""Times that a pattern must be seen in full to be regular."""
_WINDOW = re.compile(
    # Is_local of FlashAttention 2 is the fourth template argument; TensorRT-LLM and others say it in words.
    r"(?i:sliding|window_?att|_swa(?![a-z])|local_?att|chunked_?att|chunkedcausal)"
    r"|flash_fwd\w*<[\w:]*lash_fwd\w*traits<[^>]*>\s*,\s*\w+\s*,\s*\w+\s*,\s*true"
)
_INDEXER = re.compile(r"(?i)indexer|mqa_logits|index_k|fp8_index|sparse_index")


@lru_cache(maxsize=4096)
def _named_window(name: str) -> bool:
    return _WINDOW.search(name) is not None


@lru_cache(maxsize=4096)
def _named_indexer(name: str) -> bool:
    return _INDEXER.search(name) is not None


def indexes(block: IntArray, vocabulary: KernelVocabulary) -> bool:
    """Whether a block scores keys to pick those it attends to (DeepSeek's sparse attention)."""
    return any(_named_indexer(vocabulary.names[token]) for token in np.unique(block).tolist())


_DRAFT = 2
"""Number of the draft model, behind those that `_models` tells apart."""


@dataclass(frozen=True, eq=False)
class Reach:
    """The blocks of a step, to be asked how far they attend.

    Attributes:
        blocks: tokens of each block.
        durations: ns of each of them.
        vocabulary: what the tokens are.
        towers: of each block the tower it belongs to; None where there is only one.
        generates: whether they are a language model's.
        drafted: of each block whether it is a draft model's; empty where there is none.
    """

    blocks: list[IntArray]
    durations: list[IntArray]
    vocabulary: KernelVocabulary
    towers: list[str] | None
    generates: bool
    drafted: Sequence[bool] = ()

    def words(self, mixers: list[str | None]) -> list[str | None]:
        """Return the reach of each block in words, None where nothing sets it apart from the others of its model.

        Args:
            mixers: what mixes tokens in each block.
        """
        reach: list[str | None] = [None] * len(mixers)
        models = _models(self.blocks, mixers, self.vocabulary) if self.towers is None else self._by_tower(mixers)
        for i, drafts in enumerate(self.drafted):
            # A draft model is another one: that its attention takes less time is no kind of layer.
            if drafts and models[i] is not None:
                models[i] = _DRAFT
        for model in sorted({number for number in models if number is not None}):
            attending = [i for i, number in enumerate(models) if number == model]
            for i, word in zip(attending, self._of_model(attending), strict=True):
                reach[i] = word
        return reach

    def _by_tower(self, mixers: list[str | None]) -> list[int | None]:
        names = self.towers or []
        known = list(dict.fromkeys(names))
        return [
            known.index(tower) if mixer == "attention" else None for tower, mixer in zip(names, mixers, strict=True)
        ]

    def _of_model(self, attending: list[int]) -> list[str | None]:
        """The reach of the attention blocks of one model."""
        windows = [self._has_window(i) for i in attending]
        if any(windows) and not all(windows):
            return ["sliding" if window else "full" for window in windows]
        nothing: list[str | None] = [None] * len(attending)
        if len(attending) < 3:
            return nothing
        times = np.log([max(int(self.durations[i][self._mixing(i)].sum()), 1) for i in attending])
        border = _border(times)
        if border is None:
            return nothing
        long = [time > border for time in times.tolist()]
        proven = self.generates and takes_turns(long) and self._caches_alike(attending, long)
        words = ("sliding", "full") if proven else ("short attention", "long attention")
        return [words[one] for one in long]

    def _mixing(self, i: int) -> BoolArray:
        """Which kernels of a block attend; scores of an indexer pick what is attended to, and are none."""
        block = self.blocks[i]
        mixing: BoolArray = self.vocabulary.classes[block] == MIXER
        for at in np.flatnonzero(mixing).tolist():
            mixing[at] = not _named_indexer(self.vocabulary.names[block[at]])
        return mixing

    def _has_window(self, i: int) -> bool:
        block = self.blocks[i]
        return any(_named_window(self.vocabulary.names[token]) for token in block[self._mixing(i)].tolist())

    def _caches_alike(self, attending: list[int], long: list[bool]) -> bool:
        """Whether both populations write keys, or none: layers that attend to another input (an image) write none."""
        writes: list[list[bool]] = [[], []]
        for i, one in zip(attending, long, strict=True):
            roles = {self.vocabulary.roles[token] for token in self.blocks[i].tolist()}
            writes[one].append("kv_write" in roles)
        return round(float(np.mean(writes[0]))) == round(float(np.mean(writes[1])))


def takes_turns(long: list[bool]) -> bool:
    """Whether two populations follow each other in a pattern that repeats from the first layer to the last.

    Args:
        long: for each layer in order, whether it is of the second population.
    """
    for turn in range(2, min(_LONGEST_TURN, len(long) // _TURNS) + 1):
        if len(set(long[:turn])) == 2 and all(one == two for one, two in zip(long, long[turn:], strict=False)):
            return True
    return False


def _models(blocks: list[IntArray], mixers: list[str | None], vocabulary: KernelVocabulary) -> list[int | None]:
    """Number the models that the attention blocks belong to, None for other blocks.

    A vision tower before a language model (or a draft after it) has attention kernels that the other lacks, and
    its blocks come all together; kernels of one model's kinds of layers alternate.
    """
    attending = [i for i, mixer in enumerate(mixers) if mixer == "attention"]
    kernels = [
        frozenset(block[vocabulary.classes[block] == MIXER].tolist()) for block in (blocks[i] for i in attending)
    ]
    switches = [n for n in range(1, len(kernels)) if kernels[n - 1].isdisjoint(kernels[n])]
    switch = switches[0] if len(switches) == 1 else len(kernels)
    apart = frozenset().union(*kernels[:switch]).isdisjoint(frozenset().union(*kernels[switch:]))
    models: list[int | None] = [None] * len(mixers)
    for n, i in enumerate(attending):
        models[i] = int(apart and n >= switch)
    return models


def _border(values: npt.NDArray[np.float64]) -> float | None:
    """Where two populations part, or None where there is only one or the lone value is an outlier."""
    # The widest gap between neighbouring times [blocks of a model] is the only candidate.
    ordered = np.sort(values)
    gaps = np.diff(ordered)
    at = int(gaps.argmax())
    low, high = ordered[: at + 1], ordered[at + 1 :]
    widest = max(float(np.ptp(low)), float(np.ptp(high)))
    if gaps[at] < np.log(_APART) or gaps[at] < _SPREAD * widest:
        return None
    # One block apart from many is an outlier, not a kind; of four or fewer it may be one.
    if min(len(low), len(high)) < 2 and len(ordered) > 4:
        return None
    return float((low[-1] + high[0]) / 2)
