"""Blocks that are slower or faster than others of their kind, and the kernel that makes them so."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceanalyzer.segment.result import Segmentation

LEAST_CHANGE = 0.10
"""Share of its kind's time that a block must differ by to be named."""
LEAST_SPREAD = 6.0
"""The same in median absolute deviations of its kind."""
LEAST_PEERS = 4
"""Blocks of a kind below which none of them is called unusual."""


@dataclass(frozen=True)
class Outlier:
    """A block whose time is not that of its kind.

    Attributes:
        device, phase, block: which one; its time is the median over the phase's complete steps.
        kind: kind, or variant where the kind has no name.
        time_ns, usual_ns: kernel time of the block and the median of its kind.
        kernel: the kernel that makes most of the difference; kernel_ns is by how much.
    """

    device: int | None
    phase: str
    block: int
    kind: str
    time_ns: float
    usual_ns: float
    kernel: str
    kernel_ns: float

    @property
    def change(self) -> float:
        """Difference as a share of what is usual."""
        return self.time_ns / self.usual_ns - 1


def find_outliers(found: Segmentation) -> list[Outlier]:
    """Compare every block with the others of its variant, over the complete steps of a phase; largest first."""
    steps = found.steps.filter("complete").select("device", "step", "phase")
    keys = ["device", "phase", "block"]
    blocks = (
        found.blocks.join(steps, on=["device", "step"], nulls_equal=True)
        .group_by(keys)
        .agg(
            pl.col("kernel_sum_ns").median().alias("time_ns"),
            pl.col("variant").mode().sort().first(),
            pl.col("kind").drop_nulls().first(),
        )
    )
    kin = ["device", "phase", "variant"]
    usual = pl.col("time_ns").median().over(kin)
    unusual = (
        blocks.with_columns(usual_ns=usual, peers=pl.len().over(kin))
        .with_columns(away=(pl.col("time_ns") - pl.col("usual_ns")).abs())
        .with_columns(spread=pl.col("away").median().over(kin))
        .filter(
            pl.col("peers") >= LEAST_PEERS,
            pl.col("away") > LEAST_CHANGE * pl.col("usual_ns"),
            pl.col("away") > LEAST_SPREAD * pl.col("spread"),
        )
    )
    if unusual.is_empty():
        return []
    causes = _causes(found, steps, blocks, unusual)
    rows = unusual.join(causes, on=keys, nulls_equal=True).sort("away", descending=True)
    return [
        Outlier(
            row["device"],
            row["phase"],
            row["block"],
            row["kind"] or row["variant"],
            row["time_ns"],
            row["usual_ns"],
            row["name"],
            row["extra_ns"],
        )
        for row in rows.iter_rows(named=True)
    ]


def _causes(found: Segmentation, steps: pl.DataFrame, blocks: pl.DataFrame, unusual: pl.DataFrame) -> pl.DataFrame:
    """The kernel of each unusual block whose time differs most from what its kin spend on it."""
    keys = ["device", "phase", "block"]
    kin = ["device", "phase", "variant"]
    spent = (
        found.events.filter(pl.col("block").is_not_null(), "is_kernel")
        .select("device", "step", "block", pl.col("name").cast(pl.String), "dur_ns")
        .join(steps, on=["device", "step"], nulls_equal=True)
        .group_by(*keys, "step", "name")
        .agg(pl.col("dur_ns").sum())
        .group_by(*keys, "name")
        .agg(pl.col("dur_ns").median())
        .join(blocks.select(*keys, "variant"), on=keys, nulls_equal=True)
    )
    usual = spent.group_by(*kin, "name").agg(usual_ns=pl.col("dur_ns").median(), having=pl.len())
    peers = blocks.group_by(kin).agg(peers=pl.len())
    return (
        spent.join(unusual.select(keys), on=keys, nulls_equal=True)
        .join(usual, on=[*kin, "name"], nulls_equal=True)
        .join(peers, on=kin, nulls_equal=True)
        .with_columns(usual_ns=pl.when(pl.col("having") * 2 > pl.col("peers")).then("usual_ns").otherwise(0.0))
        .with_columns(extra_ns=pl.col("dur_ns") - pl.col("usual_ns"))
        .sort(pl.col("extra_ns").abs(), descending=True)
        .group_by(keys, maintain_order=True)
        .agg(pl.col("name").first(), pl.col("extra_ns").first())
    )
