"""What `traceanalyzer idle` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from traceanalyzer.declare import Document, InFrame, Part, told
from traceanalyzer.problems import TraceWarning

INT32 = InFrame("Int32")
Place = Literal["between steps", "inside step", "outside steps"]
Cause = Literal["host", "device", "unknown"]


class IdleDevice(Part):
    """How long a GPU worked and waited."""

    frame_title: ClassVar[str] = "Idle.totals"

    device: Annotated[
        int | None,
        told("Number of the GPU.", null="a CPU-only trace, where compute ops stand in for kernels", frame=INT32),
    ]
    span_us: Annotated[float, told("First start to last end of its events.")]
    busy_us: Annotated[float, told("Length of the union of its events.")]
    idle_us: Annotated[float | None, told("The rest of the span.", null="kernels were not recorded")]
    steps: Annotated[int, told("Complete steps.")]


class IdleClass(Part):
    """Gaps of one place and cause."""

    place: Annotated[Place, told("Where.")]
    cause: Annotated[
        Cause,
        told("host: the ending event was launched during the gap; device: before it; unknown: no launch was recorded."),
    ]
    gaps: Annotated[int, told("How many.")]
    total_us: Annotated[float, told("Sum of their lengths.")]


class IdleEnding(Part):
    """Gaps of one place and cause that events of one name end."""

    after: Annotated[str, told("Event that ends them.", heading="gap before")]
    place: Annotated[Place, told("Where.", heading="where")]
    cause: Annotated[Cause, told("As in classes.")]
    gaps: Annotated[int, told("How many.")]
    longest_us: Annotated[float, told("Longest of them.")]
    total_us: Annotated[float, told("Sum of their lengths.")]


class IdleGap(Part):
    """A stretch in which a GPU runs nothing."""

    frame_title: ClassVar[str] = "Idle.gaps"
    csv_title: ClassVar[str] = "idle --csv; gaps"

    device: Annotated[int, told("Number of the GPU.", frame=INT32)]
    start_us: Annotated[float, told("End of the event before, from the first event of the trace.")]
    dur_us: Annotated[float, told("Length.")]
    place: Annotated[Place, told("Where.")]
    cause: Annotated[Cause, told("As in classes.")]
    step: Annotated[int | None, told("Step of the event that ends it.", null="outside of steps", frame=INT32)]
    block: Annotated[int | None, told("Block of that event.", null="outside of blocks", frame=INT32)]
    host_us: Annotated[
        float | None, told("Part before the launch of that event was issued.", null="that launch was not recorded")
    ]
    before: Annotated[str | None, told("Event before the gap.", null="it has no name")]
    after: Annotated[str, told("Event that ends it.")]
    launch_us: Annotated[
        float | None, told("Start of the launch of the event that ends it.", null="not recorded", csv=False)
    ]
    correlation: Annotated[
        int | None,
        told("Id that ties that event to its launch.", null="not recorded", csv=False, frame=InFrame("UInt64")),
    ]


class IdleHost(Part):
    """What launching threads did in gaps that the host caused."""

    frame_title: ClassVar[str] = "Idle.host"

    place: Annotated[Place, told("Place of the gaps.", heading="where")]
    name: Annotated[str | None, told("Innermost host event.", null="nothing was recorded", heading="host event")]
    inside: Annotated[str | None, told("Enclosing annotation.", null="none")]
    total_us: Annotated[float, told("Time in gaps.")]


class IdleDocument(Document, tag="traceanalyzer/idle/1"):
    """The gaps in which a GPU does nothing, and what the host does meanwhile."""

    command: ClassVar[str] = "idle"

    timelines: Annotated[list[IdleDevice], told("One for each GPU.")]
    classes: Annotated[list[IdleClass], told("Gaps by place and cause.")]
    endings: Annotated[list[IdleEnding], told("Gaps by the event that ends them, place and cause, by total time.")]
    gaps: Annotated[list[IdleGap], told("Every gap, longest first.")]
    host: Annotated[list[IdleHost], told("What the launching threads did in gaps that the host caused; rows add up.")]
    warnings: Annotated[list[TraceWarning], told("What stands against the figures; also printed on stderr.")]
