"""How far the blocks found are to be trusted, from 0 to 1."""

from __future__ import annotations

from collections import Counter

from traceanalyzer.segment.vocabulary import IntArray


def rate(tokens: IntArray, starts: list[int], ends: list[int], agreement: float, cost: float) -> float:
    """Rate blocks by what they have in common.

    Args:
        tokens: token of each event of the step.
        starts, ends: the blocks, ends exclusive.
        agreement: share of borders on which all estimates agree.
        cost: how far the first and last block are from what the others say, in norms.
    """
    contents: list[tuple[int, ...]] = [
        tuple(sorted(tokens[start:end].tolist())) for start, end in zip(starts, ends, strict=True)
    ]
    counts = Counter(contents)
    shared = sum(count for count in counts.values() if count > 1) / len(contents) if len(contents) > 1 else 0.6
    lone = [content for content, count in counts.items() if count == 1]
    alike = _likeness(lone, [content for content, count in counts.items() if count > 1])
    uniform = shared + (1 - shared) * alike
    certainty = (0.4 + 0.6 * agreement) * (0.3 + 0.7 * uniform) * 0.7 ** min(cost, 4.0)
    return round(min(max(float(certainty), 0.01), 0.99), 3)


def _likeness(lone: list[tuple[int, ...]], shared: list[tuple[int, ...]]) -> float:
    """Mean likeness of blocks that stand alone to their nearest kin; multisets compared, 1 is equal."""
    if not lone:
        return 1.0
    kin = [Counter(content) for content in (shared[:8] or lone[:8])]
    total = 0.0
    for content in lone[:16]:
        own = Counter(content)
        total += max(
            (
                sum((own & other).values()) / max(sum((own | other).values()), 1)
                for other in kin
                if shared or other != own
            ),
            default=0.5,
        )
    return total / min(len(lone), 16)
