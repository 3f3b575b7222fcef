"""What the measuring process does with a candidate, on operations that need no GPU."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from types import SimpleNamespace

import pytest
import torch

from traceanalyzer.commands.tune.measure.backends import builtin
from traceanalyzer.commands.tune.measure.measuring import (
    Description,
    MeasuringTask,
    Operation,
    OperationSession,
    WrongResultError,
)
from traceanalyzer.kernels.launch import Prepared
from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.kernels.target import find_target

ONES = torch.ones(4, 4, dtype=torch.float64)
WHERE = Description({"name": "none", "target": None}, {}, measured=False)


class Timer:
    """Takes no time, and remembers what it keeps."""

    def __init__(self) -> None:
        self.kept: set[Hashable] = set()

    def sample(self, key: Hashable, run: Callable[[], object], count: int) -> list[float]:
        self.kept.add(key)
        run()
        return [1.0] * count

    def forget(self, key: Hashable) -> None:
        self.kept.discard(key)

    def forget_all(self) -> None:
        self.kept.clear()


def task(m: int = 4, **config: int) -> MeasuringTask:
    return MeasuringTask("dense", Problem(m, 4, 4), Config(16, 16, 16, **config), "uniform", 0)


def session_of(run: Callable[[], object], timer: Timer | None = None) -> OperationSession:
    operation = Operation(lambda config: (run, lambda: ONES), lambda: ONES, 1e-3)
    return OperationSession(lambda asked: operation, timer or Timer(), WHERE)


def test_where_memory_is_full_the_other_candidates_make_room() -> None:
    timer = Timer()
    full = [False]

    def run() -> None:
        if full[0] and timer.kept:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    session = session_of(run, timer)
    session.sample(task(), 1)
    full[0] = True
    assert session.check(task(num_warps=8)) == 0
    assert not timer.kept


def test_memory_that_is_full_with_one_candidate_is_its_failure() -> None:
    def run() -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(torch.cuda.OutOfMemoryError):
        session_of(run).check(task())


def test_one_problems_data_is_freed_before_the_nexts_is_drawn() -> None:
    held: list[object] = []

    def open_operation(asked: MeasuringTask) -> Operation:
        held.append(session._operation)
        return Operation(lambda config: (lambda: None, lambda: ONES), lambda: ONES, 1e-3)

    session = OperationSession(open_operation, Timer(), WHERE)
    session.check(task())
    session.check(task(m=8))
    assert held == [None, None]


def test_a_result_that_nobody_wrote_is_wrong_even_in_memory_that_holds_the_right_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stale = SimpleNamespace(
        make_case=lambda *arguments: None,
        prepare=lambda case, config: Prepared((), ONES.clone()),
        reference=lambda case: ONES,
        tolerance=1e-3,
    )
    monkeypatch.setattr(builtin, "find_kernel", lambda name: stale)
    monkeypatch.setattr(builtin, "local_target", lambda: find_target("sm_90"))
    with pytest.raises(WrongResultError):
        OperationSession(builtin.open_operation, Timer(), WHERE).check(task())
