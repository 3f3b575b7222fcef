"""Work counted instead of timed: lines of Python run, bytes held, queries collected. Other load changes none."""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any

import polars as pl
import pytest

Work = Callable[[], object]


def lines_run(work: Work) -> int:
    """Return how many lines of Python some work runs, in all threads; every turn of a loop or comprehension is one.

    The work runs once before, so that imports and caches are none of it.
    """
    work()
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    threading.settrace(trace)
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
        threading.settrace(before)  # type: ignore[arg-type]
    return count


def peak_bytes(work: Work) -> int:
    """Return the most memory that Python objects take up at once during some work, in bytes, beyond what there was."""
    work()
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def collects(work: Work, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many lazy queries some work collects."""
    work()
    count = 0

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            return function(*args, **kwargs)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(pl.LazyFrame, "collect", counted(pl.LazyFrame.collect))
        patch.setattr(pl, "collect_all", counted(pl.collect_all))
        work()
    return count
