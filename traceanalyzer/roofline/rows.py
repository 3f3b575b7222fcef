"""Rows from kernels: sums by role, part and block kind, each with its bound."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from traceanalyzer.roofline.join import WORK
from traceanalyzer.roofline.roofline_result import Latency, Row

LATENCY_SHARE = 0.25
"""A floor below this share of the launch latency does not count: launching is the limit. Chosen, not fitted."""

TINY = 1.5
"""Kernels that take at most this multiple of the launch latency do next to nothing, whatever they are. Chosen."""

SAME_WORK = 1.10
"""Block kinds whose work differs by less than this factor are one row. Chosen, not fitted."""

KEY = ("role", "part", "row_kind", "known")
REDUNDANT_PARTS = frozenset({"rope_table_cast"})
MOST_NAMES = 6


def merge_kinds(kernels: pl.DataFrame) -> pl.DataFrame:
    """Set row_kind to None in roles whose work does not depend on it; attention keeps its kinds apart."""
    per_block = (
        kernels.select("role", "part", "row_kind", "device", "step", "layer", "bytes", "flops")
        .filter(pl.col("layer").is_not_null())
        .group_by("role", "part", "row_kind", "device", "step", "layer")
        .agg(
            unknown=pl.col("bytes").is_null().any(),
            bytes=pl.col("bytes").sum(),
            flops=pl.col("flops").sum(),
        )
        .group_by("role", "part", "row_kind")
        .agg(pl.col("unknown").any(), pl.col("bytes", "flops").mean())
    )
    alike = per_block.group_by("role", "part").agg(
        merge=pl.col("unknown").all()
        | (
            ~pl.col("unknown").any()
            & (pl.col("bytes").max() <= SAME_WORK * pl.col("bytes").min())
            & (pl.col("flops").max() <= SAME_WORK * pl.col("flops").min())
        )
    )
    joined = kernels.join(alike, on=["role", "part"], how="left", maintain_order="left", nulls_equal=True)
    merge = pl.col("merge").fill_null(True) & (pl.col("role") != "attention")
    return joined.with_columns(row_kind=pl.when(~merge).then("row_kind")).drop("merge")


def with_row_numbers(kernels: pl.DataFrame) -> pl.DataFrame:
    """Add ``row``: the number of the row that a kernel belongs to."""
    numbered = kernels.with_columns(known=pl.col("source").is_not_null())
    keys = numbered.select(KEY).unique(maintain_order=True).with_row_index("row")
    return numbered.join(keys, on=list(KEY), how="left", nulls_equal=True, maintain_order="left")


def rows_of(kernels: pl.DataFrame, steps: int, latency: Latency, reasons: dict[int, str], tiny: bool) -> list[Row]:
    """Sum kernels to rows, in order of their numbers.

    Args:
        kernels: of ``with_row_numbers``.
        steps: steps that sums are divided by.
        latency: what a kernel takes at minimum.
        reasons: row number -> why its work is unknown.
        tiny: whether kernels of unknown work that take no longer than others' launch latency are called so.
    """

    summed = (
        kernels.group_by("row", maintain_order=True)
        .agg(
            pl.col("role").first(),
            pl.col("part").first(),
            pl.col("row_kind").first(),
            names=pl.col("name").unique(maintain_order=True),
            kernels=pl.len(),
            measured_ns=pl.col("dur_ns").sum() / steps,
            sources=pl.col("source").drop_nulls().unique().sort(),
            dtype=pl.col("dtype").sort_by(pl.col("flops").fill_null(0.0)).last(),
            notes=pl.col("notes").drop_nulls().unique(maintain_order=True),
            communication=pl.col("communication").fill_null(False).any() | (pl.col("role") == "communication").any(),
            **{name: strict_sum(name, steps) for name in WORK},
        )
        .sort("row")
    )
    return [_row(row, steps, latency, reasons, tiny) for row in summed.iter_rows(named=True)]


def with_reachable(rows: Sequence[Row], kernels: pl.DataFrame, steps: int) -> list[Row]:
    """Return the rows with reachable_ns summed anew.

    Args:
        rows: of ``rows_of``, in the order of their numbers.
        kernels: the same kernels with another reachable_ns.
        steps: steps that sums are divided by.
    """
    summed = kernels.group_by("row").agg(strict_sum("reachable_ns", steps).alias("ns")).sort("row")
    return [replace(row, reachable_ns=ns) for row, ns in zip(rows, summed["ns"], strict=True)]


def strict_sum(name: str, steps: int) -> pl.Expr:
    """The sum per step; None where one of the values is."""
    return pl.when(pl.col(name).is_null().any()).then(None).otherwise(pl.col(name).sum() / steps)


def _row(row: dict[str, Any], steps: int, latency: Latency, reasons: dict[int, str], tiny: bool) -> Row:
    count = row["kernels"] / steps
    floor, measured = row["floor_ns"], row["measured_ns"]
    bound = _bound(row, count, latency)
    basis = _basis(row["sources"], row["notes"])
    if bound == "unknown":
        if tiny and not row["sources"] and latency.measured and measured <= TINY * latency.ns * count:
            bound = "latency"
            basis.append(f"its work is unknown, but it takes little longer than a launch ({latency.ns / 1000:.1f} µs)")
        elif row["row"] in reasons:
            basis.append(reasons[row["row"]])
    elif bound == "latency":
        basis.append(f"its floor of {floor / count / 1000:.2f} µs per kernel is far below the {latency.basis}")
    return Row(
        role=row["role"] or "other",
        kind=row["row_kind"],
        part=row["part"] or "",
        names=tuple(row["names"][:MOST_NAMES]),
        count=count,
        measured_ns=measured,
        flops=row["flops"],
        bytes=row["bytes"],
        dtype=row["dtype"],
        floor_ns=floor,
        compute_ns=row["compute_ns"],
        memory_ns=row["memory_ns"],
        reachable_ns=row["reachable_ns"],
        latency_ns=count * latency.ns,
        bound=bound,
        plausible=floor is None or floor <= measured,
        redundant=row["part"] in REDUNDANT_PARTS,
        source=" and ".join(row["sources"]) or None,
        basis=tuple(basis),
    )


def _bound(row: dict[str, Any], count: float, latency: Latency) -> str:
    if row["communication"]:
        return "communication"
    if row["floor_ns"] is None:
        return "unknown"
    if row["floor_ns"] < LATENCY_SHARE * latency.ns * count:
        return "latency"
    return "compute" if row["compute_ns"] > row["memory_ns"] else "memory"


def _basis(sources: Collection[str], notes: list[str]) -> list[str]:
    told = {"shapes": "from shapes in the trace", "model": "from the model"}
    lines = list(dict.fromkeys(line for text in notes for line in text.split("\n") if line))
    return [*(told[source] for source in sources), *lines[:MOST_NAMES]]
