"""Alignment of kernel sequences that have little in common."""

from __future__ import annotations

import numpy as np
import pytest

from traceanalyzer.segment.alignment import align, begins


@pytest.mark.parametrize("own", [[1], [1, 2]])
def test_a_sequence_without_any_counterpart_is_not_alike(own: list[int]) -> None:
    other = np.array([7, 8, 9, 7, 8, 9])
    assert align(np.array(own), other) is None
    assert not begins(np.array(own), other)


def test_a_short_sequence_may_have_events_without_a_counterpart() -> None:
    match = align(np.array([1, 7, 8]), np.array([7, 8, 9]))
    assert match is not None
    assert match.tolist() == [-1, 0, 1]
