"""What the roofline analysis yields: one row per kind of work, and what the whole step comes to."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from traceanalyzer.findings import Finding
from traceanalyzer.hardware import DeviceName
from traceanalyzer.model import Architecture
from traceanalyzer.notebook import NotebookView
from traceanalyzer.roofline.ceilings import Ceilings


class RooflineError(ValueError):
    """A request that the trace or the model cannot answer. One line, saying what to pass instead."""


@dataclass(frozen=True)
class Row:
    """Kernels of one role, and of one block kind where kinds do different work. All figures are means per step.

    ``RooflineRow`` of ``commands/roofline`` says what the fields mean. Here times are ns, and unknown is None.

    Attributes:
        part: empty for the role's own work.
        names: the kernels' names, most time first.
        compute_ns: what the arithmetic takes at its peak.
        memory_ns: what the bytes take at peak bandwidth.
    """

    role: str
    kind: str | None
    part: str
    names: tuple[str, ...]
    count: float
    measured_ns: float
    flops: float | None
    bytes: float | None
    dtype: str | None
    floor_ns: float | None
    compute_ns: float | None
    memory_ns: float | None
    reachable_ns: float | None
    latency_ns: float
    bound: str
    plausible: bool
    redundant: bool
    source: str | None
    basis: tuple[str, ...]

    @property
    def label(self) -> str:
        """The row's name for people: role, part and kind."""
        shown = self.part or self.role
        return f"{shown} {self.kind}" if self.kind else shown

    @property
    def intensity(self) -> float | None:
        """FLOP per byte; None without bytes."""
        return self.flops / self.bytes if self.flops is not None and self.bytes else None

    @property
    def tflops(self) -> float | None:
        """10^12 operations per second reached."""
        return None if self.flops is None else self.flops / self.measured_ns / 1e3

    @property
    def gbps(self) -> float | None:
        """GB/s reached."""
        return None if self.bytes is None else self.bytes / self.measured_ns

    @property
    def roof_share(self) -> float | None:
        """Floor over measured time; above 1 only where the row is not plausible."""
        return None if self.floor_ns is None else self.floor_ns / self.measured_ns

    @property
    def headroom_ns(self) -> float | None:
        """Time above what the peak roofs and launching allow; None where unknown or not plausible."""
        return self._above(self.floor_ns)

    @property
    def reachable_headroom_ns(self) -> float | None:
        """Time above what the achievable roofs and launching allow; None where unknown or not plausible."""
        return self._above(self.reachable_ns)

    def _above(self, floor: float | None) -> float | None:
        if self.redundant:
            return self.measured_ns
        if floor is None or not self.plausible:
            return None
        return max(self.measured_ns - max(floor, self.latency_ns), 0.0)


@dataclass(frozen=True)
class Latency:
    """The time of a kernel that does next to nothing, and where it comes from."""

    ns: float
    basis: str
    measured: bool


@dataclass(frozen=True, eq=False)
class Roofline(NotebookView):
    """The roofline of the steps looked at. Times are means per step, in ns.

    Attributes:
        rows: largest measured time first; every kernel of the steps is in exactly one.
        device: the GPU and how it is known.
        ceilings: its roofs; None without a GPU.
        model: the model; None where neither given nor recognised.
        model_source: ``option``, ``inferred`` or None.
        phase: phase of the steps; None where they are of several.
        steps: how many there are.
        requests: sequences per step; None where unknown.
        decode: whether every step generates one token per sequence.
        measured_ns: sum of the kernels' durations.
        copies_ns: copies and memsets besides them.
        span_ns: from the step's first event to its last.
        period_ns: span and the pause before the step.
        latency: what a kernel takes at minimum.
        kernels: one row per kernel, as ``RooflineKernel`` of ``commands/roofline`` declares it.
        findings: what to act on, most worth first; the last one says what to attack.
        basis: what the whole rests on.
    """

    rows: tuple[Row, ...]
    device: DeviceName
    ceilings: Ceilings | None
    model: Architecture | None
    model_source: str | None
    phase: str | None
    steps: int
    requests: float | None
    decode: bool
    measured_ns: float
    copies_ns: float
    span_ns: float
    period_ns: float
    latency: Latency
    kernels: pl.DataFrame
    findings: tuple[Finding, ...] = ()
    basis: tuple[str, ...] = field(default=())

    @property
    def floor_ns(self) -> float | None:
        """Shortest time of the step's work that is known: the rows' floors, redundant work left out."""
        return self._sum("floor_ns")

    @property
    def reachable_ns(self) -> float | None:
        """The same under the achievable roofs."""
        return self._sum("reachable_ns")

    def _sum(self, column: str) -> float | None:
        known = [
            min(value, row.measured_ns)
            for row in self.rows
            if (value := getattr(row, column)) is not None and not row.redundant
        ]
        return sum(known) if known else None

    @property
    def explained_share(self) -> float:
        """Share of the measured time in rows with a plausible floor, or known to be launch latency."""
        explained = sum(
            row.measured_ns
            for row in self.rows
            if row.plausible and (row.floor_ns is not None or row.bound == "latency")
        )
        return explained / self.measured_ns if self.measured_ns else 0.0
