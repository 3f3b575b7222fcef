"""What `traceanalyzer idle` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from traceanalyzer.declare import Document, Part, told
from traceanalyzer.problems import TraceWarning


class IdleTimeline(Part):
    """TODO"""

    device: Annotated[
        int | None, told("Number of the GPU.", null="a CPU-only trace, where leaf CPU ops stand in for kernels")
    ]
    span_us: Annotated[float, told("First to last event.")]
    busy_us: Annotated[float, told("Length of the union of the events.")]
    idle_us: Annotated[float | None, told("The rest.", null="kernels were not recorded")]
    steps: Annotated[int, told("Complete steps.")]


class IdleClass(Part):
    """TODO"""

    place: Annotated[Literal["between steps", "inside step", "outside steps"], told("Where.")]
    cause: Annotated[
        Literal["host", "device", "unknown"],
        told("host: the launch came during the gap; device: it came before; unknown: it was not recorded."),
    ]
    gaps: Annotated[int, told("How many.")]
    total_us: Annotated[float, told("Sum of their lengths.")]


class IdleGap(Part):
    """TODO"""

    device: Annotated[int, told("Number of the GPU.")]
    start_us: Annotated[float, told("End of the event before, from the first event of the trace.")]
    dur_us: Annotated[float, told("Length.")]
    place: Annotated[Literal["between steps", "inside step", "outside steps"], told("Where.")]
    cause: Annotated[Literal["host", "device", "unknown"], told("As in classes.")]
    step: Annotated[int | None, told("Step of the event that ends it.", null="outside of steps")]
    block: Annotated[int | None, told("Block of that event.", null="outside of blocks")]
    host_us: Annotated[
        float | None, told("Part before the launch that ends it was issued.", null="that launch is not known")
    ]
    before: Annotated[str | None, told("Event before the gap.", null="it has no name")]
    after: Annotated[str, told("Event that ends it.")]


class IdleHost(Part):
    """TODO"""

    place: Annotated[Literal["between steps", "inside step", "outside steps"], told("Place of the gaps.")]
    name: Annotated[str | None, told("Innermost host event.", null="nothing was recorded")]
    inside: Annotated[str | None, told("Enclosing annotation.", null="none")]
    total_us: Annotated[float, told("Time in gaps.")]


class IdleDocument(Document, tag="traceanalyzer/idle/1"):
    """The gaps in which a GPU does nothing, and what the host does meanwhile."""

    command: ClassVar[str] = "idle"

    timelines: Annotated[list[IdleTimeline], told("One for each GPU.")]
    classes: Annotated[list[IdleClass], told("Gaps by place and cause.")]
    gaps: Annotated[list[IdleGap], told("Every gap, longest first.")]
    host: Annotated[list[IdleHost], told("What the launching threads did in gaps that the host caused; rows add up.")]
    warnings: Annotated[list[TraceWarning], told("What stands against the figures; also printed on stderr.")]
