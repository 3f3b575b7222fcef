"""This package's own kernels."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from traceanalyzer.commands.tune.measure.measuring import (
    Description,
    MeasuringTask,
    Operation,
    OperationSession,
    Session,
    gpu_session,
    local_target,
    versions,
)
from traceanalyzer.commands.tune.measure.timing import ClockTimer
from traceanalyzer.kernels import find_kernel
from traceanalyzer.kernels.problem import Config
from traceanalyzer.kernels.target import INTERPRETER

if TYPE_CHECKING:
    import torch


def open_session(device: str) -> Session:
    """Open the built-in kernels on the local GPU (``gpu``) or in Triton's interpreter (``interpret``).

    The interpreter has to be chosen by the environment (TRITON_INTERPRET=1) before Triton is imported.

    Raises:
        RuntimeError: there is no GPU, or the interpreter is not switched on.
    """
    if device == "gpu":
        return gpu_session(open_operation)
    if not _interpreted():
        raise RuntimeError("TRITON_INTERPRET is not set")
    where = Description({"name": "Triton interpreter", "target": None}, versions(), measured=False)
    return OperationSession(open_operation, ClockTimer(), where)


def open_operation(task: MeasuringTask) -> Operation:
    """Draw the data of a task's problem."""
    spec = find_kernel(task.kernel)
    interpreted = _interpreted()
    target = INTERPRETER if interpreted else local_target()
    case = spec.make_case(task.problem, target, "cpu" if interpreted else "cuda", task.seed, task.routing)

    def prepare(config: Config) -> tuple[Callable[[], object], Callable[[], torch.Tensor]]:
        prepared = spec.prepare(case, config)
        # New memory may hold an earlier candidate's right result, which must not pass for one not written at all.
        prepared.output.fill_(float("nan"))
        return prepared, lambda: prepared.output

    return Operation(prepare, lambda: spec.reference(case), spec.tolerance)


def _interpreted() -> bool:
    return os.environ.get("TRITON_INTERPRET") == "1"
