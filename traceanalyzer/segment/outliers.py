"""Blocks that are slower or faster than others of their kind, and the kernel that makes them so.

Like is compared with like: blocks of one variant, over steps of one phase that have the same blocks in the same order
and a batch of about the same size.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceanalyzer.segment.segmentation_result import Segmentation

LEAST_CHANGE = 0.10
"""Share of its kind's time that a block must differ by to be named."""
LEAST_SPREAD = 6.0
"""The same in median absolute deviations of its kind."""
LEAST_PEERS = 4
"""Blocks of a kind below which none of them is called unusual."""
LEAST_STEPS = 3
"""Steps that a group should have; smaller ones count only where the phase has no other with as many blocks."""

_GROUP = ("device", "phase", "blocks", "structure", "batch")
_PLACE = (*_GROUP, "block")
_KIN = (*_GROUP, "variant")


@dataclass(frozen=True)
class Outlier:
    """A block whose time is not that of its kind.

    Attributes:
        device, phase, block: which one; its time is the median over steps of its phase that are alike.
        kind: kind, or variant where the kind has no name.
        time_ns, usual_ns: kernel time of the block and the median of its kind.
        kernel: the kernel that makes most of the difference; kernel_ns is by how much.
        blocks: number of blocks of the steps.
        steps: number of steps that were alike.
    """

    device: int | None
    phase: str
    block: int
    kind: str
    time_ns: float
    usual_ns: float
    kernel: str
    kernel_ns: float
    blocks: int
    steps: int

    @property
    def change(self) -> float:
        """Difference as a share of what is usual."""
        return self.time_ns / self.usual_ns - 1


@dataclass(frozen=True)
class TooFew:
    """A kind with too few blocks to call one of them unusual.

    Attributes:
        device, phase, blocks: of the steps; blocks is how many of any kind they have.
        kind: kind, or variant where the kind has no name.
        peers: blocks of its most frequent variant.
    """

    device: int | None
    phase: str
    blocks: int
    kind: str
    peers: int


def find_outliers(cut: Segmentation) -> list[Outlier]:
    """Compare every block with the others of its variant over complete steps that are alike; largest first.

    A block that is unusual at several batch sizes is named once for each depth: with its largest change.
    """
    steps = _alike(cut)
    blocks = _block_times(cut, steps)
    unusual = (
        blocks.with_columns(usual_ns=pl.col("time_ns").median().over(_KIN))
        .with_columns(away=(pl.col("time_ns") - pl.col("usual_ns")).abs())
        .with_columns(spread=pl.col("away").median().over(_KIN))
        .filter(
            pl.col("peers") >= LEAST_PEERS,
            pl.col("away") > LEAST_CHANGE * pl.col("usual_ns"),
            pl.col("away") > LEAST_SPREAD * pl.col("spread"),
        )
        .sort(pl.col("away") / pl.col("usual_ns"), descending=True)
        .unique(["device", "phase", "blocks", "block"], keep="first", maintain_order=True)
    )
    if unusual.is_empty():
        return []
    causes = _causes(cut, steps, blocks, unusual)
    rows = unusual.join(causes, on=list(_PLACE), nulls_equal=True).sort("away", descending=True)
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
            row["blocks"],
            row["steps"],
        )
        for row in rows.iter_rows(named=True)
    ]


def too_few(cut: Segmentation) -> list[TooFew]:
    """Return the kinds of which no block can be called unusual, in order of device, phase, depth and kind."""
    kind = pl.coalesce("kind", "variant").alias("kind")
    blocks = _block_times(cut, _alike(cut))
    counted = blocks.group_by("device", "phase", "blocks", kind).agg(pl.col("peers").max())
    few = counted.filter(pl.col("peers") < LEAST_PEERS)
    return [TooFew(*row) for row in few.sort("device", "phase", "blocks", "kind").iter_rows()]


def _alike(cut: Segmentation) -> pl.DataFrame:
    """Complete steps with blocks: device, step, phase, blocks, structure, batch and the number of steps of the group.

    Structure is the variants in order, batch the power of two at or below the tokens (None: unknown). Of each phase
    and depth the groups with enough steps remain, or else the largest.
    """
    keys = ["device", "step"]
    variants = cut.blocks.sort("block").group_by(keys).agg(structure=pl.col("variant").str.join(" "))
    batch = pl.col("tokens").cast(pl.Float64).log(2).floor()
    steps = (
        cut.steps.filter("complete", pl.col("blocks") > 0)
        .select(*keys, "phase", "blocks", batch=pl.when(pl.col("tokens") > 0).then(batch.cast(pl.Int32)))
        .join(variants, on=keys, nulls_equal=True, maintain_order="left")
        .with_columns(steps=pl.len().cast(pl.Int64).over(_GROUP))
    )
    largest = pl.struct("structure", "batch").sort_by("steps", descending=True).first()
    return steps.with_columns(
        largest=(pl.struct("structure", "batch") == largest.over("device", "phase", "blocks"))
    ).filter((pl.col("steps") >= LEAST_STEPS) | (pl.col("largest") & ~_any_large()))


def _any_large() -> pl.Expr:
    return (pl.col("steps") >= LEAST_STEPS).any().over("device", "phase", "blocks")


def _block_times(cut: Segmentation, steps: pl.DataFrame) -> pl.DataFrame:
    """Median time of each block over the steps of a group: _PLACE, steps, time_ns, variant, kind, peers."""
    return (
        cut.blocks.join(steps, on=["device", "step"], nulls_equal=True)
        .group_by(_PLACE)
        .agg(
            pl.col("steps").first(),
            pl.col("kernel_sum_ns").median().alias("time_ns"),
            pl.col("variant").first(),
            pl.col("kind").drop_nulls().first(),
        )
        .with_columns(peers=pl.len().cast(pl.Int64).over(_KIN))
    )


def _causes(cut: Segmentation, steps: pl.DataFrame, blocks: pl.DataFrame, unusual: pl.DataFrame) -> pl.DataFrame:
    """The kernel of each unusual block whose time differs most from what its kin spend on it."""
    place, kin = list(_PLACE), list(_KIN)
    spent = (
        cut.events.select("device", "step", "block", "name", "dur_ns", "is_kernel")
        .filter(pl.col("block").is_not_null(), "is_kernel")
        .join(steps, on=["device", "step"], nulls_equal=True)
        .group_by(*place, "step", "name")
        .agg(pl.col("dur_ns").sum())
        .group_by(*place, "name")
        .agg(pl.col("dur_ns").median())
        .join(blocks.select(*place, "variant", "peers"), on=place, nulls_equal=True)
    )
    usual = spent.group_by(*kin, "name").agg(usual_ns=pl.col("dur_ns").median(), having=pl.len())
    return (
        spent.join(unusual.select(place), on=place, nulls_equal=True)
        .join(usual, on=[*kin, "name"], nulls_equal=True)
        .with_columns(usual_ns=pl.when(pl.col("having") * 2 > pl.col("peers")).then("usual_ns").otherwise(0.0))
        .with_columns(extra_ns=pl.col("dur_ns") - pl.col("usual_ns"))
        .sort(pl.col("extra_ns").abs(), descending=True)
        .group_by(place, maintain_order=True)
        .agg(pl.col("name").first().cast(pl.String), pl.col("extra_ns").first())
    )
