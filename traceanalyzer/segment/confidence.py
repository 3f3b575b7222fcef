"""How far the blocks found are to be trusted: roughly the chance that every one of them is exactly right.

`rate` is fitted to bare sequences of which kernels were lost and renamed at random, up to every other one. Recordings
lose far fewer, so the same signs mean more there: `in_a_trace` says what they are worth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from traceanalyzer.segment.tokens import IntArray

_IN_A_TRACE = ((0.0, 0.0), (0.15, 0.3), (0.3, 0.7), (0.45, 0.97), (0.6, 0.985), (0.8, 0.99), (1.0, 0.998))
"""Rating and share of generated traces whose blocks are right at it; see `in_a_trace`."""
_COMPARED = 16
"""Blocks without an equal that are compared with others, at most: bounds the work. Chosen, not fitted."""

# The weights of `rate`. They were fitted to random models whose kernels were dropped and renamed (`damaged` in
# tests/segment/test_confidence.py, which holds their calibration); no record of the fit itself was kept.
_LEAST_AGREED = 0.4
"""Certainty that remains where the estimates agree on no border."""
_AGREED = 0.6
"""What full agreement adds to it."""
_UNIFORM_POWER = 1.5
"""How fast certainty falls with blocks unlike any other."""
_PER_COST = 0.7
"""Factor per norm by which the first and last block do not fit."""
_PER_ODD = 0.65
"""Factor per kernel that stands at one border only."""
_LONE = 0.6
"""Certainty of a single block, which has nothing to be compared with."""
_MOST = 4
"""Norms, or odd kernels, above which the doubt does not grow."""


def rate(tokens: IntArray, starts: list[int], ends: list[int], agreement: float, cost: float) -> float:
    """Rate blocks by what they have in common.

    Four doubts multiply: borders on which the estimates disagree; blocks unlike any other; borders between kernels
    that no other border lies between; a first or last block that does not fit the count of norms. The weights are
    fitted to sequences of known blocks with kernels dropped and renamed at random.

    Args:
        tokens: token of each event of the step.
        starts, ends: the blocks, ends exclusive.
        agreement: share of borders on which all estimates agree.
        cost: how far the first and last block are from what the others say, in norms.
    """
    # Blocks as multisets of tokens: order differs between streams, content does not.
    contents: list[tuple[int, ...]] = [
        tuple(sorted(tokens[start:end].tolist())) for start, end in zip(starts, ends, strict=True)
    ]
    if len(contents) < 2:
        return float(round(_LONE * _PER_COST ** min(cost, float(_MOST)), 3))
    # A block that equals another vouches for both; one without an equal counts as far as it is like its nearest kin.
    counts = Counter(contents)
    shared = sum(count for count in counts.values() if count > 1) / len(contents)
    lone = [content for content, count in counts.items() if count == 1]
    alike = _likeness(lone, [content for content, count in counts.items() if count > 1])
    uniform = shared + (1 - shared) * alike
    # First kernels of all blocks but the first, last kernels of all: a lone one among equals is a misplaced border.
    odd = _odd(tokens[starts[1:]].tolist()) + _odd(tokens[[end - 1 for end in ends]].tolist())
    agreed = _LEAST_AGREED + _AGREED * agreement
    ends_fit, even = _PER_COST ** min(cost, float(_MOST)), _PER_ODD ** min(odd, _MOST)
    certainty = agreed * uniform**_UNIFORM_POWER * ends_fit * even
    return round(min(max(float(certainty), 0.01), 0.99), 3)


def in_a_trace(rating: float) -> float:
    """Turn the rating of a sequence into the confidence of a step of a trace, both 0 to 1.

    Straight lines between points, always rising, so that the order of steps stays. The points from a rating of 0.45 up
    follow the shares that were right among whole traces from the generator, with the troubles of `random_specs`
    (bench/results/segmentation.json). They say how far borders hold in a transformer; whether it is one, `evidence`
    says. Lower ratings were too rare there to fit (one trace in forty; most of these were right) and are kept
    low by choice: such signs may as well mean a kind of model that no rule knows.
    """
    ratings, shares = zip(*_IN_A_TRACE, strict=True)
    return round(float(np.interp(rating, ratings, shares)), 5)


def _odd(border: Sequence[int]) -> int:
    """Kernels at borders that stand at one border only while others stand at several."""
    counts = Counter(border)
    return sum(count == 1 for count in counts.values()) if max(counts.values()) > 1 else 0


def _likeness(lone: list[tuple[int, ...]], shared: list[tuple[int, ...]]) -> float:
    """Mean likeness of blocks that stand alone to their nearest kin; multisets compared, 1 is equal."""
    if not lone:
        return 1.0
    kin = [Counter(content) for content in (shared[:8] or lone[:8])]
    total = 0.0
    for content in lone[:_COMPARED]:
        own = Counter(content)
        total += max(
            (
                sum((own & other).values()) / max(sum((own | other).values()), 1)
                for other in kin
                if shared or other != own
            ),
            default=0.5,
        )
    return total / min(len(lone), _COMPARED)
