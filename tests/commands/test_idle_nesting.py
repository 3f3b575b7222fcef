"""Which host event runs inside which: against a check of every pair, for events nested badly too."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.nesting import nesting

SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 15)), max_size=40)


@given(SPANS)
def test_the_parent_is_the_last_one_that_still_runs(spans: list[tuple[int, int]]) -> None:
    ordered = sorted(spans, key=lambda span: (span[0], -span[1]))
    starts = np.array([start for start, _ in ordered], dtype=np.int64)
    ends = np.array([start + length for start, length in ordered], dtype=np.int64)
    parents, clipped = nesting(starts, ends)
    expected: list[int] = []
    for event, (start, length) in enumerate(ordered):
        running = [earlier for earlier in range(event) if expected[earlier] > start]
        assert parents[event] == (running[-1] if running else -1)
        expected.append(min([start + length, *(expected[earlier] for earlier in running)]))
    assert clipped.tolist() == expected
