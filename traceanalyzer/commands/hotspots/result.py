"""What `traceanalyzer hotspots` answers, field by field.

A field with ``aggregate`` is computed from the kernels of a row, and is a column of ``Hotspots.rows`` (times in ns).
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import polars as pl

from traceanalyzer.declare import Document, InFrame, Part, told
from traceanalyzer.findings import Finding
from traceanalyzer.words import Phase

DURATION = pl.col("dur_ns")
PLACED = pl.col("role").filter("in_average")


def only(column: str) -> pl.Expr:
    """Return the value that all kernels of a row share, else null."""
    return pl.when(pl.col(column).n_unique() == 1).then(pl.col(column).first())


# A step that the recording cuts off has kernels whose place in a block is unknown: that is not a second role.
ROLE = pl.when(PLACED.n_unique() == 1).then(PLACED.first()).when(PLACED.len() == 0).then(only("role"))


CACHED: Any = {"null": "not in the Triton cache", "frame": None}
BOUNDED: Any = {"null": "unknown", "frame": None, "basis": "modelled"}


class HotspotRow(Part):
    """The kernels of one name, role or family."""

    frame_title: ClassVar[str] = "Hotspots.rows"
    csv_title: ClassVar[str] = "hotspots --csv; kernels, roles"

    name: Annotated[
        str | None,
        told("Kernel name, role or family, whichever --by asks for.", null="kernels without one"),
    ]
    role: Annotated[
        str | None, told("Role of the row's kernels.", null="they have several or none", frame=InFrame(aggregate=ROLE))
    ]
    family: Annotated[
        str | None,
        told("Family of the row's kernels.", null="they have several or none", frame=InFrame(aggregate=only("family"))),
    ]
    tile: Annotated[
        str | None,
        told(
            "MxNxK; ? for an unknown side.",
            null="not in the name or the Triton cache",
            frame=InFrame(aggregate=only("tile")),
        ),
    ]
    tile_source: Annotated[
        Literal["name", "triton cache"] | None, told("Where the tile is from.", null="no tile", csv=False, frame=None)
    ]
    dtypes: Annotated[
        str | None,
        told(
            "output<-activation x weight; ? for an unknown one.",
            null="not in the name",
            frame=InFrame(aggregate=only("dtypes")),
        ),
    ]
    num_warps: Annotated[
        int | None,
        told("Warps per thread block.", null="not recorded, or different", frame=InFrame(aggregate=only("num_warps"))),
    ]
    num_stages: Annotated[int | None, told("Depth of the software pipeline.", **CACHED)]
    registers: Annotated[int | None, told("Registers per thread.", **CACHED)]
    spills: Annotated[int | None, told("Registers spilled.", **CACHED)]
    shared_bytes: Annotated[int | None, told("Shared memory per thread block.", **CACHED)]
    count: Annotated[int, told("Kernels.", frame=InFrame("UInt32", pl.len()))]
    total_us: Annotated[float, told("Sum of their durations.", frame=InFrame(aggregate=DURATION.sum()))]
    share: Annotated[float, told("Of total_us.")]
    mean_us: Annotated[float, told("Mean duration.", frame=InFrame("Float64", DURATION.mean()))]
    p50_us: Annotated[float, told("Median duration.", frame=InFrame("Float64", DURATION.quantile(0.5, "linear")))]
    p99_us: Annotated[
        float, told("99 % quantile of the duration.", frame=InFrame("Float64", DURATION.quantile(0.99, "linear")))
    ]
    per_step_us: Annotated[
        float | None,
        told(
            "Time per complete step, dummies left out.",
            null="no such steps",
            frame=InFrame("Float64", DURATION.filter("in_average").sum()),
        ),
    ]
    bound: Annotated[
        Literal["compute", "memory", "latency", "communication", "unknown"] | None,
        told("What limits it, by the roofline.", null="no roofline was made", heading="limited by", frame=None),
    ]
    roof_share: Annotated[float | None, told("Floor over measured time.", heading="of roof", **BOUNDED)]
    headroom_us: Annotated[float | None, told("Time per step above floor and launch latency.", **BOUNDED)]


class HotspotCopy(Part):
    """Copies or memsets of one name."""

    frame_title: ClassVar[str] = "Hotspots.copies"

    name: Annotated[str, told("Of the copy or memset.")]
    count: Annotated[int, told("How many.", frame=InFrame("UInt32"))]
    total_us: Annotated[float, told("Sum of their durations.")]


class HotspotsDocument(Document, tag="traceanalyzer/hotspots/1"):
    """Kernels, roles or families by time."""

    command: ClassVar[str] = "hotspots"

    phase: Annotated[Phase | None, told("Phase looked at.", null="the whole trace")]
    total_us: Annotated[float, told("Sum of the kernels' durations.")]
    steps: Annotated[int, told("Complete steps that per_step_us rests on; a step on two GPUs counts twice.")]
    steps_by_phase: Annotated[dict[str, int], told("The same steps by phase; per_step_us is a mean over all of them.")]
    rows: Annotated[list[HotspotRow], told("By total time; every kernel is in exactly one.")]
    copies: Annotated[list[HotspotCopy], told("Copies and memsets, which are in no row.")]
    findings: Annotated[list[Finding], told("What to act on; the last one says what to attack.")]
