"""Where candidates are measured: a backend in a process of its own, which a candidate may crash or hang."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from traceanalyzer.commands.tune.formats.sweep import SweepPoint
from traceanalyzer.commands.tune.measure.measuring import Description, MeasuringTask
from traceanalyzer.commands.tune.tile_config import TileConfig
from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.problems import TraceError
from traceanalyzer.workers import Worker, WorkerError

HARMLESS = (
    "WrongResultError",
    "OutOfResources",
    "CompilationError",
    "CompileTimeAssertionFailure",
    "PTXASError",
)
"""Failures after which the process can go on; after any other it is replaced, because a GPU error poisons it."""

START_TIMEOUT_S = 300
"""Importing PyTorch, Triton and vLLM, and opening the GPU, takes a minute from a slow disk; chosen, not fitted."""


class LostBenchError(Exception):
    """Nothing can be measured any more, and no candidate is to blame; the text says why."""


@dataclass(frozen=True)
class MeasuringBench(Description):
    """Where candidates are measured, and the process that does it.

    Attributes:
        kernel: its name.
        backend: its name, as sweep files write it.
        worker: the measuring process.
    """

    kernel: str
    backend: str
    worker: Worker

    def ask(self, task: MeasuringTask, question: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Ask about a candidate.

        Starting the process again, after a failure that made it useless, counts as no candidate's time.

        Raises:
            WorkerError: the candidate failed.
            LostBenchError: the process does not start again.
        """
        if not self.worker.running:
            try:
                self.worker.ask({"op": "describe"}, START_TIMEOUT_S)
            except WorkerError as failure:
                raise LostBenchError(f"the measuring process does not start again: {failure}") from None
        try:
            return dict(self.worker.ask({**question, "task": task}, timeout_s))
        except WorkerError as failure:
            if not str(failure).startswith(HARMLESS):
                self.worker.stop()
            raise

    def point(self, problem: Problem, routing: str | None, config: Config) -> SweepPoint:
        """Return a candidate without samples, as the journal identifies it."""
        shape: dict[str, Any] = dict(problem.to_dict())
        return SweepPoint(
            kernel=self.kernel,
            m=shape.pop("m"),
            concurrency=problem.tokens,
            config=TileConfig(config.to_dict()),
            shape=shape,
            backend=self.backend,
            routing=routing,
            device=self.device,
            versions=self.versions,
            measured=self.measured,
        )


def start_worker(module: str, device: str, environment: Mapping[str, str] | None = None) -> Worker:
    """Return the measuring process of a backend's module; ``device`` is ``gpu`` or ``interpret``."""
    interpreter = "1" if device == "interpret" else "0"
    variables = {"TRITON_DEFAULT_FP_FUSION": "1", "TRITON_INTERPRET": interpreter, **(environment or {})}
    return Worker("traceanalyzer.commands.tune.measure.measuring", [module, device], variables)


def open_bench(kernel: str, backend: str, worker: Worker) -> MeasuringBench:
    """Ask the process where it measures.

    Raises:
        TraceError: it cannot measure: there is no GPU, or the backend is not installed.
    """
    try:
        where = worker.ask({"op": "describe"}, START_TIMEOUT_S, kind=Description)
    except WorkerError as failure:
        reason = str(failure).partition(": ")[2] or str(failure)
        hint = "; 'tune screen' ranks candidates without one, and --device interpret tries the machinery"
        raise TraceError(f"backend {backend}", reason + (hint if "GPU" in reason else "")) from None
    return MeasuringBench(where.device, where.versions, where.measured, kernel, backend, worker)
