"""Work that every block repeats although its inputs do not change from block to block."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceanalyzer.names import parse
from traceanalyzer.segment import segment
from traceanalyzer.trace import Trace

LEAST_BLOCK_SHARE = 0.5
"""Share of a step's blocks that a kernel must be in to count as repeated by every block."""


@dataclass(frozen=True)
class Redundancy:
    """A kernel that could run once a step instead of once a block.

    Attributes:
        name: the kernel.
        blocks: blocks a step in which it runs, mean over the steps looked at.
        worth_ns: its time a step less one run of it.
        basis: why it is taken for redundant; derived from names and position, not proven.
    """

    name: str
    blocks: float
    worth_ns: float
    basis: str


def redundancies(trace: Trace) -> list[Redundancy]:
    """Find casts and copies of position tables: pure cast kernels that feed the rotary embedding of every block.

    The rotary table depends on positions only, so that a cast of it gives the same result in every block. A pure cast
    (an Inductor kernel that fuses nothing but a conversion) directly before the rotary kernel, after the projection
    of the same block, has nothing else to convert: the projection's result is what the rotary kernel reads itself.
    """
    cut = segment(trace)
    casts = [name for name in cut.events["name"].unique().cast(pl.String).to_list() if _is_pure_cast(name)]
    if not casts:
        return []
    complete = cut.steps.filter(pl.col("complete"), pl.col("phase") != "dummy").select("device", "step", "blocks")
    path = (
        cut.events.filter(pl.col("section") == "block")
        .select("device", "step", "block", "start_ns", "index", "dur_ns", "name", "role")
        .join(complete, on=["device", "step"], nulls_equal=True)
        .sort("device", "step", "start_ns", "index")
        .with_columns(next_role=pl.col("role").shift(-1).over("device", "step", "block"))
    )
    steps = complete.height
    repeated = (
        path.filter(pl.col("name").cast(pl.String).is_in(casts), pl.col("next_role") == "rope")
        .group_by(pl.col("name").cast(pl.String))
        .agg(count=pl.len(), total_ns=pl.col("dur_ns").sum(), of=pl.col("blocks").mean())
        .filter(pl.col("count") / steps >= LEAST_BLOCK_SHARE * pl.col("of"), pl.col("count") > steps)
        .sort("total_ns", descending=True)
    )
    return [
        Redundancy(
            name=row["name"],
            blocks=row["count"] / steps,
            worth_ns=row["total_ns"] / steps - row["total_ns"] / row["count"],
            basis="a pure cast between the projection and the rotary embedding can only convert the rotary table, "
            "which is the same in every block (derived from names and position)",
        )
        for row in repeated.iter_rows(named=True)
    ]


def _is_pure_cast(name: str) -> bool:
    parsed = parse(name)
    return parsed.library == "Inductor" and parsed.fused_ops == "_to_copy"
