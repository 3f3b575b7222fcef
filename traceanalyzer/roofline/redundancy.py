"""Work that every block repeats although its inputs do not change from block to block."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import polars as pl

from traceanalyzer.names import parse
from traceanalyzer.segment import segment
from traceanalyzer.trace import Trace

LEAST_BLOCK_SHARE = 0.5
"""Share of a step's blocks that a kernel must be in to count as repeated by every block. Chosen, not fitted."""

_KNOWN: WeakKeyDictionary[Trace, tuple[Redundancy, ...]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Redundancy:
    """A kernel that could run once per step instead of once per block.

    Attributes:
        name: the kernel.
        blocks: blocks per step in which it runs, mean over the steps looked at.
        worth_ns: its time per step less one run of it.
        basis: why it is taken for redundant; derived from names and position, not proven.
    """

    name: str
    blocks: float
    worth_ns: float
    basis: str


def redundancies(trace: Trace) -> tuple[Redundancy, ...]:
    """Find casts and copies of position tables: pure cast kernels that feed the rotary embedding of every block.

    The rotary table depends on positions only, so that a cast of it gives the same result in every block. A pure cast
    (an Inductor kernel that fuses nothing but a conversion) directly before the rotary kernel, after the projection
    of the same block, has nothing else to convert: the projection's result is what the rotary kernel reads itself.
    The result is kept as long as the trace is.
    """
    if trace not in _KNOWN:
        _KNOWN[trace] = tuple(_redundancies(trace))
    return _KNOWN[trace]


def _redundancies(trace: Trace) -> list[Redundancy]:
    cut = segment(trace)
    casts = [name for name in cut.events["name"].unique().cast(pl.String).to_list() if _is_pure_cast(name)]
    if not casts:
        return []
    keys = ["device", "step", "block"]
    complete = cut.steps.filter(pl.col("complete"), pl.col("phase") != "dummy").select("device", "step", "blocks")
    path = (
        cut.events.select("section", *keys, "start_ns", "index", "dur_ns", "name", "role")
        .filter(pl.col("section") == "block")
        .join(complete, on=["device", "step"], nulls_equal=True)
        .sort(*keys, "start_ns", "index")
    )
    # The next one in order is of the same block, or does not exist: a window over each block takes far longer.
    same = pl.all_horizontal(pl.col(key).eq_missing(pl.col(key).shift(-1)) for key in keys)
    feeds_rope = (pl.col("role").shift(-1) == "rope") & same
    steps = complete.height
    repeated = (
        path.filter(feeds_rope)
        .filter(pl.col("name").cast(pl.String).is_in(casts))
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
