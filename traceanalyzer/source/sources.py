"""Where each kernel of some steps comes from, by all that a recording and its companions say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceanalyzer.names import normalise, parse
from traceanalyzer.problems import TraceWarning
from traceanalyzer.segment import Segmentation, segment
from traceanalyzer.source.chains import CHAIN_COLUMNS
from traceanalyzer.source.direct import direct_sources
from traceanalyzer.source.positions import PlacedKernel, StepSources, by_position
from traceanalyzer.trace import Trace
from traceanalyzer.wording import percent

LEAST_RESOLVED = 0.5
"""Share of a step's kernel time that must have a source of its own for the step to explain others.
From the specification of the mapping: piecewise-graph steps stay below, eager ones near 1."""
UNCERTAIN = 0.9
"""Confidence below which a mapping is called uncertain. From the same specification."""


@dataclass(frozen=True)
class Mapping:
    """The step whose sources explain others by position.

    Attributes:
        source: path of its trace.
        step, phase, blocks: of the step.
        confidence: of its blocks, 0 to 1.
        same_model: whether blocks and kinds are those of the steps that it explains.
        reason: why no step could be used; None where one was.
    """

    source: str | None
    step: int | None
    phase: str | None
    blocks: int | None
    confidence: float | None
    same_model: bool | None
    reason: str | None


@dataclass(frozen=True, eq=False)
class Sources:
    """Kernels with where they come from.

    Attributes:
        kernels: rows of ``Segmentation.events`` that are kernels of the steps looked at, with kind (of the block),
            CHAIN_COLUMNS, via, why_none and level.
        steps: number of steps.
        mapping: what positions were taken from; None where nothing had to be mapped.
        warnings: what stands against it.
    """

    kernels: pl.DataFrame
    steps: int
    mapping: Mapping | None
    warnings: tuple[TraceWarning, ...]


def find_sources(
    trace: Trace,
    steps: pl.DataFrame,
    other: Trace | None = None,
    captures: Sequence[Trace] = (),
    notes: dict[int, str] | None = None,
) -> Sources:
    """Find where the kernels of some steps come from.

    Args:
        trace: the recording.
        steps: rows of ``Segmentation.steps``.
        other: a recording of the same model whose steps may explain these.
        captures: recordings of the capture of its graphs.
        notes: module path by graph node.
    """
    cut = segment(trace)
    kernels = _kernels(cut, steps)
    sources, said = direct_sources(trace, kernels, captures, notes)
    kernels = kernels.join(sources, on="index", how="left", maintain_order="left")
    kernels = kernels.with_columns(level=pl.lit(None, dtype=pl.String))
    lost = captures and kernels.filter(pl.col("graph") & (pl.col("via") != "capture").fill_null(True)).height
    warnings = [TraceWarning("source_capture", text) for text in said if lost]
    missing = kernels["via"].null_count()
    mapping: Mapping | None = None
    if missing:
        guide, mapping = _guide(trace, steps, kernels, other)
        if guide is not None:
            kernels = _by_position(kernels, cut, steps, guide)
    return Sources(kernels, steps.height, mapping, tuple(warnings))


def _kernels(cut: Segmentation, steps: pl.DataFrame) -> pl.DataFrame:
    keys = ["device", "step"]
    chosen = steps.select(*keys, step_tokens="tokens")
    kinds = cut.blocks.select(*keys, "block", block_kind="kind")
    return (
        cut.events.filter("is_kernel")
        .join(chosen, on=keys, how="inner", nulls_equal=True, maintain_order="left")
        .rename({"step_tokens": "tokens"})
        .join(kinds, on=[*keys, "block"], how="left", nulls_equal=True, maintain_order="left")
    )


@dataclass(frozen=True, eq=False)
class _Guide:
    """A step that explains others, and the texts of its origins: CHAIN_COLUMNS by origin."""

    step: StepSources
    origins: pl.DataFrame


def _guide(
    trace: Trace, steps: pl.DataFrame, kernels: pl.DataFrame, other: Trace | None
) -> tuple[_Guide | None, Mapping]:
    """Choose the step that explains these best: one of this trace, else of the other one; same phase first."""
    reasons: list[str] = []
    wanted = _shape(segment(trace), steps.row(0, named=True))
    phase = steps["phase"][0]
    for source in (trace, other) if other is not None else (trace,):
        cut = segment(source)
        candidates = cut.steps.filter("complete", pl.col("phase") != "dummy", pl.col("blocks") > 0)
        offers = []
        for step in _distinct(cut, candidates).iter_rows(named=True):
            one = pl.DataFrame([step], schema=candidates.schema)
            own = _kernels(cut, one)
            own = own.join(direct_sources(source, own)[0], on="index", how="left", maintain_order="left")
            share = int(own.filter(pl.col("via").is_not_null())["dur_ns"].sum()) / max(int(own["dur_ns"].sum()), 1)
            offers.append((share, step, own))
        fit = [(share, step, own) for share, step, own in offers if share >= LEAST_RESOLVED]
        if not fit:
            best = max((share for share, _, _ in offers), default=0.0)
            reasons.append(
                f"no step of {source.metadata.source.path} states its sources: at most {percent(best)} of a step's "
                "kernel time was launched within an op or a Python stack"
            )
            continue
        alike = [(one, _unlike(wanted, _shape(cut, one[1]))) for one in fit]
        usable = [one for one, why in alike if why is None]
        if not usable:
            reasons.append(f"{source.metadata.source.path}: {alike[0][1]}")
            continue
        share, step, own = max(usable, key=lambda one: (one[1]["phase"] == phase, one[0]))
        guide = _made(own, cut, step)
        path = str(source.metadata.source.path)
        return guide, Mapping(path, step["step"], step["phase"], step["blocks"], step["confidence"], True, None)
    return None, Mapping(None, None, None, None, None, None, "; ".join(reasons))


def _distinct(cut: Segmentation, steps: pl.DataFrame) -> pl.DataFrame:
    """Return one step of each number of kernels, blocks and phase, the likeliest first; a few."""
    return steps.unique(["phase", "kernels", "blocks"], keep="first", maintain_order=True).head(8)


def _shape(cut: Segmentation, step: dict[str, object]) -> list[str | None]:
    """Return the kind of each block of a step."""
    own = cut.blocks.filter(
        pl.col("device").eq_missing(pl.lit(step["device"], dtype=pl.Int32)), pl.col("step") == step["step"]
    )
    return own.sort("block")["kind"].to_list()


_WINDOWS = frozenset({"sliding", "full", "long", "short", "attention", "dense", None})
"""Kinds that two recordings of one model may name differently: how long attention takes depends on the contexts."""


def _unlike(one: Sequence[str | None], two: Sequence[str | None]) -> str | None:
    """Say why two steps are not of one model; None where they may be."""
    if len(one) != len(two):
        return f"its steps have {len(two)} blocks, these {len(one)}: another model, a draft model or a pipeline stage"
    for number, (a, b) in enumerate(zip(one, two, strict=True)):
        if a != b and not {a, b} <= _WINDOWS:
            return f"its block {number} is {b or 'plain'}, here {a or 'plain'}: another model"
    return None


def _made(own: pl.DataFrame, cut: Segmentation, step: dict[str, object]) -> _Guide:
    coded = own.with_columns(
        origin=pl.when(pl.col("via").is_null())
        .then(-1)
        .otherwise(pl.struct(CHAIN_COLUMNS).rank("dense").cast(pl.Int64) - 1)
    )
    origins = coded.filter(pl.col("origin") >= 0).select("origin", *CHAIN_COLUMNS).unique("origin")
    placed = list(_placed(coded))
    return _Guide(StepSources.of(placed, _shape(cut, step)), origins)


def _placed(kernels: pl.DataFrame) -> Iterator[PlacedKernel]:
    """Yield the kernels of a step as positions see them; rows are counted from 0."""
    facts: dict[str, tuple[str, str, str]] = {}
    ranks: dict[tuple[int, object], int] = {}
    columns = ("name", "section", "block", "role", "stream", "origin")
    ordered = kernels.with_columns(pl.col("name").cast(pl.String))
    for row, (name, section, block, role, stream, origin) in enumerate(ordered.select(columns).iter_rows()):
        if name not in facts:
            parsed = parse(name)
            facts[name] = (normalise(name), parsed.family or "", parsed.kind)
        place = -1 if block is None else block
        rank = ranks.setdefault((place, stream), sum(key[0] == place for key in ranks) if stream is not None else 0)
        yield PlacedKernel(*facts[name], row, section or "", place, role, rank, origin)


def _by_position(kernels: pl.DataFrame, cut: Segmentation, steps: pl.DataFrame, guide: _Guide) -> pl.DataFrame:
    """Fill in what the guide explains, for each distinct sequence of kernels once."""
    origin = np.full(kernels.height, -1, dtype=np.int64)
    level: list[str | None] = [None] * kernels.height
    numbered = kernels.with_row_index("at").with_columns(origin=pl.lit(-1, dtype=pl.Int64))
    memo: dict[tuple[object, ...], dict[int, tuple[int, str]]] = {}
    for (_, _), own in numbered.group_by("device", "step", maintain_order=True):
        key = tuple(own.select("name", "block", "role", "stream").hash_rows().to_list())
        if key not in memo:
            kinds = own.filter(pl.col("block").is_not_null()).unique("block").sort("block")["block_kind"].to_list()
            memo[key] = by_position(list(_placed(own)), kinds, guide.step)
        at = own["at"].to_numpy()
        for row, (number, how) in memo[key].items():
            origin[at[row]], level[at[row]] = number, how
    filled = kernels.with_columns(origin=pl.Series(origin), by=pl.Series(level, dtype=pl.String)).join(
        guide.origins.rename({name: f"{name}_other" for name in CHAIN_COLUMNS}),
        on="origin",
        how="left",
        maintain_order="left",
    )
    open_ = pl.col("via").is_null() & (pl.col("origin") >= 0)
    return filled.with_columns(
        *(pl.when(open_).then(pl.col(f"{name}_other")).otherwise(pl.col(name)).alias(name) for name in CHAIN_COLUMNS),
        level=pl.when(open_).then(pl.col("by")),
        why_none=pl.when(~open_).then(pl.col("why_none")),
        via=pl.when(open_).then(pl.lit("position")).otherwise(pl.col("via")),
    ).drop("origin", "by", *(f"{name}_other" for name in CHAIN_COLUMNS))
