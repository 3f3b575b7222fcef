"""Transformer blocks as a JSON document, as CSV rows, and as a strip and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import msgspec
import polars as pl
from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.blocks.apart import apart_sentences, tower_sentence
from traceanalyzer.commands.blocks.result import (
    BlockEntry,
    BlockOutlier,
    BlockRow,
    BlocksDocument,
    BlockTimeline,
    SectionSums,
    StepBlocks,
)
from traceanalyzer.declare import part_of, rows_of
from traceanalyzer.names import short_name
from traceanalyzer.problems import TraceWarning
from traceanalyzer.segment import Segmentation
from traceanalyzer.segment.opening import opening
from traceanalyzer.segment.outliers import Outlier, TooFew, find_outliers, too_few
from traceanalyzer.segment.passes import passes_in_words
from traceanalyzer.show.step_groups import StepGroup, step_groups
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import plural, signed, us, visible
from traceanalyzer.words import LEAST_CERTAIN

BARS = "▁▂▃▄▅▆▇█"
_UNITS = ((1e9, "s"), (1e6, "ms"))


RankCuts = Sequence[tuple[int | None, Segmentation]]
"""Ranks, each with the segmentation of its trace."""

NOTHING = SectionSums(events=0, kernels=0, kernel_sum_us=0.0)


def document(ranks: RankCuts, warnings: Iterable[TraceWarning]) -> BlocksDocument:
    """Return the JSON document of ``blocks``: one timeline per rank and device."""
    timelines = [timeline for rank, cut in ranks for timeline in _timelines(rank, cut)]
    return BlocksDocument(warnings=list(warnings), timelines=timelines)


def _timelines(rank: int | None, cut: Segmentation) -> Iterator[BlockTimeline]:
    outliers = find_outliers(cut)
    parts = _Parts(
        cut.blocks.partition_by("device", "step", as_dict=True, maintain_order=True), _roles(cut), _sections(cut)
    )
    for device in cut.steps["device"].unique(maintain_order=True).to_list():
        own = cut.steps.filter(pl.col("device").eq_missing(pl.lit(device, dtype=pl.Int32)))
        yield BlockTimeline(
            rank=rank,
            device=device,
            steps=[_step(step, parts) for step in own.iter_rows(named=True)],
            outliers=[
                part_of(BlockOutlier, outlier, kernel_change_us=us(outlier.kernel_ns))
                for outlier in outliers
                if outlier.device == device
            ],
        )


_Place = tuple[Any, ...]


@dataclass(frozen=True)
class _Parts:
    """What the steps are made of, looked up once for all of them.

    Attributes:
        blocks: by device and step: rows of ``Segmentation.blocks``.
        roles: by device, step and block: kernel time by role, in µs.
        sections: by device, step and section: its sums.
    """

    blocks: dict[_Place, pl.DataFrame]
    roles: dict[_Place, dict[str, float]]
    sections: dict[_Place, SectionSums]


def _roles(cut: Segmentation) -> dict[_Place, dict[str, float]]:
    sums = (
        cut.events.filter(pl.col("block").is_not_null(), "is_kernel")
        .group_by("device", "step", "block", "role", maintain_order=True)
        .agg(pl.col("dur_ns").sum())
    )
    roles: dict[_Place, dict[str, float]] = {}
    for device, step, block, role, dur in sums.iter_rows():
        roles.setdefault((device, step, block), {})[role] = dur / 1000
    return roles


def _sections(cut: Segmentation) -> dict[_Place, SectionSums]:
    sums = (
        cut.events.filter(pl.col("step").is_not_null())
        .group_by("device", "step", "section")
        .agg(
            events=pl.len(), kernels=pl.col("is_kernel").sum(), kernel_sum_ns=pl.col("dur_ns").filter("is_kernel").sum()
        )
    )
    places = sums.select("device", "step", "section").iter_rows()
    return dict(zip(places, rows_of(SectionSums, sums), strict=True))


def _step(step: dict[str, Any], parts: _Parts) -> StepBlocks:
    place = (step["device"], step["step"])
    own = parts.blocks.get(place)
    return part_of(
        StepBlocks,
        step,
        index=step["step"],
        prologue=parts.sections.get((*place, "prologue"), NOTHING),
        epilogue=parts.sections.get((*place, "epilogue"), NOTHING),
        blocks=[
            part_of(BlockEntry, row, index=row["block"], roles=parts.roles.get((*place, row["block"]), {}))
            for row in (() if own is None else own.iter_rows(named=True))
        ],
    )


def csv_rows(ranks: RankCuts) -> Iterator[dict[str, Any]]:
    """Yield one row per block, columns of ``BLOCK_COLUMNS``."""
    for timeline in document(ranks, ()).timelines:
        for step in timeline.steps:
            place = {"rank": timeline.rank, "device": timeline.device, "step": step.index, "phase": step.phase}
            for block in step.blocks:
                row = part_of(BlockRow, block, **place, complete=step.complete, block=block.index)
                yield msgspec.structs.asdict(row) | {f"{role}_us": time for role, time in block.roles.items()}


def render(ranks: RankCuts, width: int) -> Group:
    """Return what a person reads: for each rank and group of similar steps, a strip and tables by variant."""
    parts: list[Any] = []
    for rank, cut in ranks:
        parts += [Text(finding.message, style="bold") for finding in opening(cut)]
        outliers, few = find_outliers(cut), too_few(cut)
        for group in step_groups(cut):
            name = "CPU" if group.device is None else f"device {group.device}"
            title = name if rank is None else f"rank {rank}, {name}"
            parts += _group(title, group, cut, group.own(outliers), width)
            parts += [*_not_compared(group.own(few)), Text()]
    return Group(*(parts[:-1] or [Text("no steps were found")]))


def _group(title: str, group: StepGroup, cut: Segmentation, outliers: list[Outlier], width: int) -> Iterator[Any]:
    shown = group.shown
    count = plural(shown.height, "step" if group.complete or group.phase == "dummy" else "partial step")
    yield Text(f"{title}: {count}, phase {group.phase}{_left_out(group)}", style="bold")
    if group.blocks.is_empty():
        cut_off = "" if group.complete else ": cut off by the start or end of the recording"
        yield Text(f"  no transformer blocks were found{cut_off}")
        return
    by_block = group.by_block()
    methods = ", ".join(shown["method"].drop_nulls().unique(maintain_order=True).to_list())
    confidence = min(shown["confidence"].drop_nulls().to_list())
    how = "nn.Module events" if methods == "modules" else "the pattern of kernel names"
    over = "" if shown.height == 1 else ", medians over steps"
    doubt = ", probably not a transformer's" if confidence < LEAST_CERTAIN else ""
    towers = tower_sentence(by_block)
    yield Text(f"  {plural(by_block.height, 'block')} from {how}, confidence {confidence:.2f}{doubt}{over}")
    if towers:
        yield Text(f"  {towers}")
    beside = passes_in_words(shown)
    if beside is not None:
        yield Text(f"  {plural(group.depth or 0, 'layer')} of the model; {beside}")
    yield Text()
    yield from _strip(by_block, width)
    yield Text()
    yield _times(by_block, width)
    yield Text()
    yield _variants(by_block, _role_times(group.blocks, cut), width)
    for line in apart_sentences(by_block, group.blocks, cut):
        yield Text(fill(visible(line), width, initial_indent="  ", subsequent_indent="    "))
    for outlier in outliers:
        yield from (Text(f"  {visible(line)}") for line in _sentence(outlier, width))


def _not_compared(few: list[TooFew]) -> Iterator[Text]:
    if few:
        kinds = ", ".join(f"{visible(one.kind)} ({one.peers})" for one in few)
        yield Text(f"  too few similar blocks to find outliers: {kinds}")


def _left_out(group: StepGroup) -> str:
    partial = group.steps.height - group.shown.height
    return f" ({plural(partial, 'partial step')} left out)" if partial else ""


def _strip(by_block: pl.DataFrame, width: int) -> Iterator[Text]:
    """One column per block: height for its time, below it the letter of its variant."""
    times = by_block["kernel_sum_ns"].to_list()
    letters = by_block["variant"].to_list()
    low, high = 0.0, max(times) or 1.0
    room = max(width - 8, 16)
    for at in range(0, len(times), room):
        bars = "".join(BARS[round((time - low) / (high - low) * (len(BARS) - 1))] for time in times[at : at + room])
        yield Text(f"  {at:>4}  {bars}")
        yield Text(f"        {''.join(letter[-1] for letter in letters[at : at + room])}")


def _times(by_block: pl.DataFrame, width: int) -> Text:
    """Number, variant and time of every block, in as many columns as fit."""
    size, unit = _unit(by_block)
    cells = [
        f"{block:>3} {variant:<2}{time / size:>9.2f}"
        for block, variant, time in by_block.select("block", "variant", "kernel_sum_ns").iter_rows()
    ]
    per_line = max((width - 2) // (len(cells[0]) + 2), 1)
    lines = ["  " + "  ".join(cells[at : at + per_line]) for at in range(0, len(cells), per_line)]
    return Text("\n".join([f"  block, variant, kernel time in {unit}", *lines]))


def _unit(by_block: pl.DataFrame) -> tuple[float, str]:
    """Size in ns and name of the unit in which block times have two to five digits."""
    largest = max(by_block["kernel_sum_ns"].to_list())
    return next((unit for unit in _UNITS if largest >= 10 * unit[0]), (1e3, "µs"))


def _role_times(blocks: pl.DataFrame, cut: Segmentation) -> pl.DataFrame:
    """Mean kernel time of a block by variant and role, ns."""
    keys = ["device", "step", "block"]
    counts = blocks.group_by("variant").agg(blocks=pl.len())
    return (
        cut.events.filter(pl.col("block").is_not_null(), "is_kernel")
        .join(blocks.select(*keys, "variant"), on=keys, nulls_equal=True)
        .group_by("variant", "role")
        .agg(pl.col("dur_ns").sum())
        .join(counts, on="variant")
        .with_columns(mean_ns=pl.col("dur_ns") / pl.col("blocks"))
    )


def _variants(by_block: pl.DataFrame, roles: pl.DataFrame, width: int) -> Any:
    """One row per variant; one column for each role that takes the most time, as many as fit."""
    size, unit = _unit(by_block)
    order = roles.group_by("role").agg(pl.col("dur_ns").sum()).sort("dur_ns", "role", descending=[True, False])
    rows = (
        by_block.group_by("variant", maintain_order=True)
        .agg(pl.col("kind").first(), pl.len(), pl.col("kernels").median(), pl.col("kernel_sum_ns").median())
        .rows()
    )
    mean = {(variant, role): time for variant, role, time in roles.select("variant", "role", "mean_ns").iter_rows()}
    kind_width = max(len("kind"), *(len(row[1] or "") for row in rows))
    room = width - (46 + kind_width)
    shown: list[str] = []
    for role in order["role"].to_list():
        room -= max(len(role), 8) + 2
        if room < 0:
            break
        shown.append(role)
    rest = [role for role in order["role"].to_list() if role not in shown] if shown else []
    columns = ["variant", "kind", "blocks", "kernels", unit, *shown, *(["rest"] if rest else [])]
    body = [
        [
            *(variant, kind or "", f"{count}", f"{kernels:.0f}", f"{time / size:.2f}"),
            *(_cell(mean.get((variant, role)), size) for role in shown),
            *([_cell(sum(mean.get((variant, role), 0.0) for role in rest), size)] if rest else []),
        ]
        for variant, kind, count, kernels, time in rows
    ]
    return table(columns, body, name_column=None, width=width, spare=(3,))


def _cell(time: float | None, size: float) -> str:
    return "" if time is None else f"{time / size:.2f}"


def _sentence(outlier: Outlier, width: int) -> tuple[str, str]:
    direction = "slower" if outlier.change > 0 else "faster"
    kernel = short_name(outlier.kernel, max(width - 32, 20))
    return (
        f"block {outlier.block} is {abs(outlier.change) * 100:.0f} % {direction} than its kind ({outlier.kind}),",
        f"  because of {kernel} ({signed(outlier.kernel_ns)})",
    )
