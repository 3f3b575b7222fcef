"""Steps that a data-parallel rank ran without requests, only to keep the others company."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from traceanalyzer.commands.ranks.members import Member
from traceanalyzer.segment import segment


def dummy_steps(members: Sequence[Member]) -> pl.DataFrame:
    """Count dummy steps: rank, steps (complete, dummies included), dummy_steps, dummy_ns; ranks that ran one."""
    rows = [_of(member) for member in members]
    schema = {"rank": pl.Int32, "steps": pl.Int64, "dummy_steps": pl.Int64, "dummy_ns": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").filter(pl.col("dummy_steps") > 0)


def _of(member: Member) -> tuple[int, int, int, int]:
    steps = segment(member.trace).steps.filter(
        "complete", pl.col("device").eq_missing(pl.lit(member.device, dtype=pl.Int32)), pl.col("kernels") > 0
    )
    idle = steps.filter(pl.col("phase") == "dummy")
    return member.rank, steps.height, idle.height, int(idle["span_ns"].sum())
