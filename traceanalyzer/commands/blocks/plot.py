"""The strip of transformer blocks: a bar per block, stacked by part of the model, the variant below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from traceanalyzer.problems import TraceError
from traceanalyzer.segment import Segmentation
from traceanalyzer.segment.outliers import Outlier, find_outliers
from traceanalyzer.show.plots import style
from traceanalyzer.show.plots.bars import LegendEntry, draw_legend, legend_height
from traceanalyzer.show.step_groups import StepGroup, step_groups
from traceanalyzer.wording import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_STRIPS = 4
LETTERS_FIT = 72
"""Blocks up to which each has its letter."""


def block_strip(
    cut: Segmentation,
    rank: int | None = None,
    width: float = style.WIDTH,
    unusual: Sequence[Outlier] | None = None,
    phase: str | None = None,
) -> Figure:
    """Draw the kernel time of every block, the median over steps that are alike; a strip per device, phase and depth.

    Complete steps are taken where there are any. At most four strips are drawn, those with most steps.

    Args:
        cut: the segmentation of a trace.
        rank: named in the title, where it is not 0.
        width: of the figure, inches.
        unusual: outlier blocks, where they are known already; those of other steps are not drawn.
        phase: only steps of this phase.

    Raises:
        TraceError: there are no blocks.
    """
    groups = [group for group in step_groups(cut) if phase in (None, group.phase) and not group.blocks.is_empty()]
    if not groups:
        raise TraceError("plot", "nothing to draw: no transformer blocks were found")
    strips = [
        (group, _times(group.blocks, cut.events))
        for group in sorted(groups, key=lambda group: -group.shown.height)[:MOST_STRIPS]
    ]
    unusual = find_outliers(cut) if unusual is None else unusual
    used = [name for name in style.ROLE_GROUPS if any(name in times.columns for _, times in strips)]
    entries = [LegendEntry(name, style.GROUP_COLOURS[name], style.GROUP_HATCHES[name]) for name in used]
    devices = len({group.device for group, _ in strips})
    with style.styled():
        figure = style.new_figure(0.35 + 3.1 * len(strips) + legend_height(entries, width), width)
        for at, (group, times) in enumerate(strips, start=1):
            axes = figure.add_subplot(len(strips), 1, at)
            title = _title(group, times) + _where(rank, group.device, devices)
            _strip(axes, title, times, group.own(unusual), width)
        draw_legend(figure, entries)
    return figure


def _times(blocks: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    keys = ["device", "step", "block"]
    group = pl.col("role").replace_strict(
        {role: name for name, roles in style.ROLE_GROUPS.items() for role in roles},
        default=style.group_of(None),
        return_dtype=pl.String,
    )
    sums = (
        events.select(*keys, "role", "dur_ns", "is_kernel")
        .filter("is_kernel")
        .join(blocks.select(keys), on=keys, how="semi", nulls_equal=True)
        .with_columns(group=group)
        .pivot("group", index=keys, values="dur_ns", aggregate_function="sum")
    )
    present = [name for name in style.ROLE_GROUPS if name in sums.columns]
    return (
        blocks.select(*keys, "variant")
        .join(sums, on=keys, how="left", nulls_equal=True)
        .group_by("block")
        .agg(pl.col("variant").mode().sort().first(), pl.col(present).fill_null(0).median())
        .sort("block")
    )


def _where(rank: int | None, device: int | None, devices: int) -> str:
    """Rank and device, as far as they are needed to tell which is shown."""
    parts = [f", rank {rank}"] if rank else []
    if devices > 1:
        parts.append(f", GPU {device}")
    return "".join(parts)


def _title(group: StepGroup, times: pl.DataFrame) -> str:
    steps = group.shown.height
    kind = ("" if group.complete else "partial ") + ("" if group.phase == "unknown" else f"{group.phase} ")
    over = f"median of {plural(steps, kind + 'step')}" if steps > 1 else f"one {kind}step"
    return f"{plural(times.height, 'transformer block')}, {over}"


def _strip(axes: Axes, title: str, times: pl.DataFrame, unusual: Sequence[Outlier], width: float) -> None:
    style.title_over(axes, title)
    numbers = times["block"].to_list()
    groups = [name for name in style.ROLE_GROUPS if name in times.columns]
    height = [0.0] * times.height
    size, unit = style.time_unit(max(map(sum, zip(*(times[name].to_list() for name in groups), strict=True))))
    for name in groups:
        values = [value / size for value in times[name].to_list()]
        axes.bar(
            numbers,
            values,
            bottom=height,
            width=0.84,
            color=style.GROUP_COLOURS[name],
            hatch=style.GROUP_HATCHES[name],
            edgecolor=style.PAPER,
            linewidth=0.0 if times.height > LETTERS_FIT else 0.4,
        )
        height = [low + value for low, value in zip(height, values, strict=True)]
    variants = times["variant"].to_list()
    _ticks(axes, numbers, variants, width)
    for outlier in unusual:
        # Above the tallest bar, where no neighbour is in the way.
        axes.annotate(
            f"{outlier.change * 100:+.0f}%".replace("-", "−"),
            (outlier.block, max(height)),
            (0, 4),
            textcoords="offset points",
            ha="center",
            fontsize=style.SMALL - 1,
            fontweight="bold",
            rotation=0 if times.height <= 40 else 90,
        )
    room = (1.14 if times.height <= 40 else 1.3) if unusual else 1.05
    axes.set_xlim(min(numbers) - 0.7, max(numbers) + 0.7)
    axes.set_ylim(0, max(height) * room)
    axes.set_ylabel(f"kernel time, {unit}")
    axes.grid(axis="y")
    axes.spines[["left"]].set_visible(False)
    axes.tick_params(length=0)


def _ticks(axes: Axes, numbers: list[int], variants: list[str], width: float) -> None:
    """Number every few blocks; below each the letter of its variant, where there are several and they fit."""
    every = next(
        step for step in (1, 2, 4, 5, 10, 20, 50, 100, 1000) if len(numbers) / step <= 25 * width / style.WIDTH
    )
    lettered = len(set(variants)) > 1 and len(numbers) <= LETTERS_FIT
    axes.set_xticks(numbers[::every], [str(number) for number in numbers[::every]])
    axes.set_xlabel("block; letters: blocks with the same kernels share one" if lettered else "block")
    if not lettered:
        return
    axes.tick_params(axis="x", pad=16)
    for number, variant in zip(numbers, variants, strict=True):
        axes.annotate(
            variant,
            (number, 0),
            (0, -13),
            xycoords=axes.get_xaxis_transform(),
            textcoords="offset points",
            ha="center",
            fontsize=style.SMALL if len(numbers) <= 40 else 8.5,
            color=style.MUTED,
        )
