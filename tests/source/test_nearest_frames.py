"""The innermost event around a moment, against going through all of them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from traceanalyzer.nesting import around, nearest, nesting


def random_intervals(seed: int) -> list[tuple[int, int]]:
    """Nested intervals, some of which cross as damaged recordings have them."""
    rng = random.Random(seed)
    intervals: list[tuple[int, int]] = []

    def grow(low: int, high: int, depth: int) -> None:
        at = low
        while at < high and depth < 6:
            start = at + rng.randrange(4)
            end = min(start + rng.randrange(1, 40), high)
            if start >= end:
                return
            intervals.append((start, end))
            grow(start, end, depth + 1)
            at = end

    grow(0, 200, 0)
    return sorted(intervals, key=lambda one: (one[0], -one[1]))


@pytest.mark.parametrize("seed", range(20))
def test_the_innermost_event_is_the_last_to_start_that_still_runs(seed: int) -> None:
    intervals = random_intervals(seed)
    starts, ends = (np.array(side, dtype=np.int64) for side in zip(*intervals, strict=True))
    parents, clipped = nesting(starts, ends)
    moments = np.arange(0, 205, dtype=np.int64)
    wanted = np.arange(len(intervals)) % 3 == seed % 3
    inner = around(starts, clipped, parents, moments)
    chosen = nearest(parents, wanted, inner)
    for moment, one, other in zip(moments.tolist(), inner.tolist(), chosen.tolist(), strict=True):
        # An event that ends as the next starts has the later one's start: only what starts then, or runs on, counts.
        running = [n for n, (start, end) in enumerate(intervals) if start <= moment <= end]
        strictly = [n for n in running if intervals[n][1] > moment]
        assert one in running if running else one == -1
        if strictly:
            assert one >= strictly[-1]
        chain = [one]
        while chain[-1] >= 0:
            chain.append(int(parents[chain[-1]]))
        assert other == next((n for n in chain if n >= 0 and wanted[n]), -1)
