"""Steps that a data-parallel rank ran without requests, only to keep the others company."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from traceanalyzer.commands.ranks.members import Member
from traceanalyzer.commands.ranks.result import RankDummies
from traceanalyzer.declare import frame_schema
from traceanalyzer.segment import segment


def dummy_steps(members: Sequence[Member]) -> pl.DataFrame:
    """Count the dummy steps of the ranks that ran one, in the columns of ``RankDummies``."""
    rows = [_of(member) for member in members]
    return pl.DataFrame(rows, schema=frame_schema(RankDummies), orient="row").filter(pl.col("dummy_steps") > 0)


def _of(member: Member) -> tuple[int, int, int, int]:
    steps = segment(member.trace).steps.filter(
        "complete", pl.col("device").eq_missing(pl.lit(member.device, dtype=pl.Int32)), pl.col("kernels") > 0
    )
    idle = steps.filter(pl.col("phase") == "dummy")
    return member.rank, steps.height, idle.height, int(idle["span_ns"].sum())
