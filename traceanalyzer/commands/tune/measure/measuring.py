"""Worker process: checks candidates against a reference and times them. It may crash; its parent goes on."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.kernels.target import Target, find_target
from traceanalyzer.workers import serve

if TYPE_CHECKING:
    import torch

    from traceanalyzer.commands.tune.measure.timing import Timer

T = TypeVar("T")

KEPT_CANDIDATES = 32
"""This many candidates stay prepared (buffers, graphs): more would fill the memory, fewer would be captured again.
Chosen, not fitted."""


class WrongResultError(Exception):
    """A candidate ran and its result differs from the reference."""


@dataclass(frozen=True)
class MeasuringTask:
    """One candidate on one problem.

    Attributes:
        kernel: its name.
        problem: what is multiplied.
        config: how.
        routing: how rows are spread over experts (``uniform``, ``skewed`` or counts).
        seed: of the data.
    """

    kernel: str
    problem: Problem
    config: Config
    routing: str
    seed: int


@dataclass(frozen=True)
class Description:
    """Where a session measures.

    Attributes:
        device: ``name`` and ``target``.
        versions: of the software that decides the result.
        measured: false when times mean nothing (interpreter).
    """

    device: Mapping[str, str | None]
    versions: Mapping[str, str]
    measured: bool


class Session(Protocol):
    """A backend, opened on a device."""

    def describe(self) -> Description:
        """Return where this measures."""

    def check(self, task: MeasuringTask) -> float:
        """Return the largest error relative to the reference's largest value.

        Raises:
            WrongResultError: the error is above what rounding explains.
        """

    def sample(self, task: MeasuringTask, count: int) -> list[float]:
        """Return ``count`` times in milliseconds, warmed up."""


@dataclass(frozen=True)
class Operation:
    """A backend's operation on one problem.

    Attributes:
        prepare: config -> (what runs it, the tensor that then holds the result).
        reference: the right result in float64.
        tolerance: largest permitted error, relative.
    """

    prepare: Callable[[Config], tuple[Callable[[], object], Callable[[], torch.Tensor]]]
    reference: Callable[[], torch.Tensor]
    tolerance: float


class OperationSession:
    """A session over operations that PyTorch can run.

    Args:
        open_operation: task -> its operation (data included); kept for the tasks that share problem and routing.
        timer: takes the samples.
        description: of the device.
    """

    def __init__(
        self, open_operation: Callable[[MeasuringTask], Operation], timer: Timer, description: Description
    ) -> None:
        self._open = open_operation
        self._timer = timer
        self._description = description
        self._operation: tuple[MeasuringTask, Operation] | None = None
        self._expected: torch.Tensor | None = None
        self._prepared: OrderedDict[Config, tuple[Callable[[], object], Callable[[], torch.Tensor]]] = OrderedDict()

    def describe(self) -> Description:
        """Return where this measures."""
        return self._description

    def check(self, task: MeasuringTask) -> float:
        """Run once and compare; see ``Session``."""
        return self._with_room(lambda: self._check(task))

    def sample(self, task: MeasuringTask, count: int) -> list[float]:
        """Time it; see ``Session``."""
        return self._with_room(lambda: self._timer.sample(task.config, self._prepare(task)[0], count))

    def _check(self, task: MeasuringTask) -> float:
        operation = self._operation_of(task)
        run, result = self._prepare(task)
        run()
        if self._expected is None:
            self._expected = operation.reference()
        error = relative_error(result(), self._expected)
        if not error <= operation.tolerance:  # also true for NaN
            raise WrongResultError(f"wrong result: relative error {error:.3g}, permitted {operation.tolerance:g}")
        return error

    def _with_room(self, action: Callable[[], T]) -> T:
        """Act; where the memory is full, drop what is kept of other candidates and try once more."""
        import torch

        try:
            return action()
        except torch.cuda.OutOfMemoryError:
            pass  # leaving the handler frees what the failed try holds
        self._forget_candidates()
        torch.cuda.empty_cache()
        return action()

    def _forget_candidates(self) -> None:
        self._prepared.clear()
        self._timer.forget_all()

    def _operation_of(self, task: MeasuringTask) -> Operation:
        same = replace(task, config=Config(1, 1, 1))
        if self._operation is None or self._operation[0] != same:
            self._forget_candidates()
            self._expected = self._operation = None  # before the next one's data takes its room
            self._operation = (same, self._open(task))
        return self._operation[1]

    def _prepare(self, task: MeasuringTask) -> tuple[Callable[[], object], Callable[[], torch.Tensor]]:
        operation = self._operation_of(task)
        if task.config not in self._prepared:
            self._prepared[task.config] = operation.prepare(task.config)
            if len(self._prepared) > KEPT_CANDIDATES:
                oldest, _ = self._prepared.popitem(last=False)
                self._timer.forget(oldest)
        self._prepared.move_to_end(task.config)
        return self._prepared[task.config]


def relative_error(result: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the largest difference over the largest expected value."""
    largest = expected.abs().max().clamp(min=1e-30)
    return float(((result.to(expected.dtype) - expected).abs().max() / largest).item())


def local_target() -> Target:
    """Return the architecture of the GPU that PyTorch sees.

    Raises:
        RuntimeError: there is none.
        ValueError: its architecture is unknown.
    """
    import torch

    if not torch.cuda.is_available():
        raise RuntimeError("PyTorch sees no GPU")
    properties = torch.cuda.get_device_properties(0)
    name = properties.gcnArchName if torch.version.hip else f"sm_{properties.major}{properties.minor}"
    return find_target(name)


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of triton, torch and other packages; what is not installed is left out."""
    import torch
    import triton

    # These two say their own: builds for ROCm are distributed under other names.
    known: dict[str, str] = {"triton": triton.__version__, "torch": str(torch.__version__)}
    for package in packages:
        try:
            known[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return known


def gpu_session(open_operation: Callable[[MeasuringTask], Operation], *packages: str) -> OperationSession:
    """Open operations on the local GPU; the versions of some packages are recorded beside those of triton and torch.

    Raises:
        RuntimeError: there is none.
    """
    import torch

    from traceanalyzer.commands.tune.measure.timing import GpuTimer

    target = local_target()

    device = {"name": torch.cuda.get_device_name(0), "target": target.name}
    where = Description(device, versions(*packages), measured=True)
    return OperationSession(open_operation, GpuTimer(), where)


def main(module: str, device: str) -> None:
    """Answer questions with the session of a backend's module.

    A question holds ``op``: ``describe``; ``check`` or ``sample`` with ``task`` (and ``count``).
    """
    opened: list[Session] = []

    def answer(question: dict[str, Any], _: bytes) -> Any:
        if not opened:
            opened.append(import_module(module).open_session(device))
        session = opened[0]
        if question["op"] == "describe":
            return session.describe()
        task = msgspec.convert(question["task"], MeasuringTask)
        if question["op"] == "check":
            return {"relative_error": session.check(task)}
        return {"samples_ms": session.sample(task, question["count"])}

    serve(answer)
