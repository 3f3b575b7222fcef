"""Steps that are shown as one, because their blocks can be compared: those of one device, phase and depth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import polars as pl

from traceanalyzer.segment import Segmentation
from traceanalyzer.segment.outliers import Outlier, TooFew

Placed = TypeVar("Placed", Outlier, TooFew)


@dataclass(frozen=True, eq=False)
class StepGroup:
    """Steps of one device, phase and number of blocks.

    Attributes:
        device: the GPU; None in a CPU-only trace.
        phase: of the steps.
        depth: blocks of its complete steps; None where all of them were cut off.
        steps: columns of ``STEP_SCHEMA``: the complete steps, and partial ones of the phase.
        shown: those that figures are of: the complete steps where there are any.
        blocks: columns of ``BLOCK_SCHEMA``: the blocks of the shown steps.
    """

    device: int | None
    phase: str
    depth: int | None
    steps: pl.DataFrame
    shown: pl.DataFrame
    blocks: pl.DataFrame

    @property
    def complete(self) -> bool:
        """Whether any of the steps is complete."""
        return bool(self.steps["complete"].any())

    def by_block(self) -> pl.DataFrame:
        """Return one row per block, medians over steps: block, variant, kind, events, kernels, kernel_sum_ns."""
        return (
            self.blocks.group_by("block")
            .agg(
                pl.col("variant").mode().sort().first(),
                pl.col("kind").drop_nulls().mode().sort().first(),
                pl.col("events", "kernels", "kernel_sum_ns").median(),
            )
            .sort("block")
        )

    def own(self, placed: Iterable[Placed]) -> list[Placed]:
        """Return what lies in blocks of this group, in the order given."""
        place = (self.device, self.phase, self.depth)
        return [one for one in placed if (one.device, one.phase, one.blocks) == place]


def step_groups(cut: Segmentation) -> list[StepGroup]:
    """Group the steps: devices in order, within each in order of appearance, groups of partial steps alone last.

    Partial steps go with the first complete ones of their phase.
    """
    first = pl.col("blocks").filter("complete").first().over("device", "phase")
    sized = cut.steps.with_columns(depth=pl.when("complete").then("blocks").otherwise(first))
    groups = [_group(cut, steps) for steps in sized.partition_by("device", "phase", "depth", maintain_order=True)]
    devices = cut.steps["device"].unique(maintain_order=True).to_list()
    return sorted(groups, key=lambda group: (devices.index(group.device), not group.complete))


def _group(cut: Segmentation, sized: pl.DataFrame) -> StepGroup:
    device, phase, depth = sized.select("device", "phase", "depth").row(0)
    steps = sized.drop("depth")
    shown = steps.filter("complete") if steps["complete"].any() else steps
    keys = ["device", "step"]
    blocks = cut.blocks.join(shown.select(keys), on=keys, nulls_equal=True, how="semi", maintain_order="left")
    return StepGroup(device, phase, depth, steps, shown, blocks)
