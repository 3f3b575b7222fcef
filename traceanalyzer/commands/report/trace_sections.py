"""The sections of a page that are about one trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from traceanalyzer.commands.idle.view import EXPLAINED
from traceanalyzer.commands.report.figures import from_svg, plot
from traceanalyzer.commands.report.gather import TraceView
from traceanalyzer.commands.report.page_parts import Folded, Paragraph, Part, Section, bullets, pair, section
from traceanalyzer.commands.report.page_tables import Spec, table
from traceanalyzer.commands.report.strip import strips_of
from traceanalyzer.commands.roofline.plot import roofline_figure
from traceanalyzer.problems import TraceError
from traceanalyzer.roofline.bounds import Bound
from traceanalyzer.wording import duration, percent, plural

MOST_KERNELS = 300
MOST_STEPS = 400
MOST_GAPS = 50
MOST_HOST = 40


def trace_sections(view: TraceView, prefix: str = "") -> tuple[list[Section], dict[str, Any]]:
    """Return the sections on a trace and the kernels of its strips; ``prefix`` keeps ids apart."""
    strips, kernels = strips_of(view, f"{prefix}strip")
    sections = [
        _split(view, prefix),
        section(
            f"{prefix}blocks",
            "Transformer blocks",
            [
                Paragraph("Choose a block to see its kernels.", "note screen") if strips else None,
                *strips,
                *_block_parts(view, prefix, any_strip=bool(strips)),
            ],
            short="Blocks",
        ),
        _hotspots(view, prefix),
        _roofline(view, prefix),
        _idle(view, prefix),
    ]
    return sections, kernels


def _bound_specs(bounds: Mapping[str, Bound]) -> list[Spec]:
    """Columns for what the roofline says of a row."""

    def of(field: str) -> Callable[[Mapping[str, Any]], Any]:
        return lambda row: getattr(bounds.get(row["name"]), field, None)

    return [
        Spec("limited by", "text", of("bound")),
        Spec("of roof", "share", of("roof_share")),
        Spec("headroom per step", "time", of("headroom_ns")),
    ]


def _per_step(view: TraceView) -> bool:
    return view.kernels.steps > 0


def _split(view: TraceView, prefix: str) -> Section:
    time = "per_step_ns" if _per_step(view) else "total_ns"
    rows = view.roles.rows
    total = float(rows[time].sum()) or 1.0
    in_steps = view.roles.steps if view.phase else 0
    specs = [
        Spec("role", "text", lambda row: row["name"] or "other"),
        Spec("time per step" if _per_step(view) else "time", "time", time),
        Spec("share", "share", lambda row: (row[time] or 0.0) / total),
        Spec("kernels per step" if in_steps else "kernels", "count", lambda row: _each(row.get("count"), in_steps)),
        *_bound_specs(view.role_bounds),
    ]
    largest = ", ".join(
        f"{row['name'] or 'other'} {percent((row[time] or 0.0) / total)}" for row in rows.head(4).iter_rows(named=True)
    )
    described = f"Bars: {view.split_title}. Largest: {largest}."
    made = table(f"{prefix}roles", "Kernel time by role", specs, rows.to_dicts(), totals={"name": "all", time: total})
    return section(
        f"{prefix}split",
        "Where a step's time goes" if _per_step(view) else "Where the time goes",
        [
            pair(from_svg(view.pictures.roles, f"{prefix}role", described), made),
            Folded(f"Steps one by one ({view.cut.steps.height:,})", (steps_part,))
            if (steps_part := _steps(view, prefix)) is not None
            else None,
        ],
        short="Time",
    )


def _each(count: int | None, steps: int) -> float | None:
    return None if count is None else count / (steps or 1)


def _steps(view: TraceView, prefix: str) -> Part | None:
    specs = [
        Spec("device", "count", "device"),
        Spec("step", "count", "step"),
        Spec("phase", "text", lambda row: row["phase"] + ("" if row["complete"] else ", cut off")),
        Spec("requests", "count", "requests"),
        Spec("tokens", "count", "tokens"),
        Spec("context tokens", "count", "kv_tokens"),
        Spec("first to last event", "time", "span_ns"),
        Spec("kernel time", "time", "kernel_sum_ns"),
        Spec("idle before", "time", "idle_before_ns"),
        Spec("kernels", "count", "kernels"),
        Spec("blocks", "count", "blocks"),
        Spec("confidence", "number", "confidence", 2),
        Spec("marker", "text", "label"),
    ]
    rows = view.cut.steps.to_dicts()
    return table(f"{prefix}steps", "Steps in order of time", specs, rows, limit=MOST_STEPS, filterable=True)


def _block_parts(view: TraceView, prefix: str, *, any_strip: bool) -> list[Part | None]:
    if not any_strip:
        return [Paragraph("No transformer blocks were found.")]
    if view.pictures.blocks is None:
        return []
    caption = "Kernel time of each block, stacked by part of the model"
    return [pair(from_svg(view.pictures.blocks, f"{prefix}stack", caption), _variants(view, prefix))]


def _variants(view: TraceView, prefix: str) -> Any:
    steps = view.steps if view.steps.height else view.cut.steps
    blocks = view.cut.blocks.join(steps.select("device", "step"), on=["device", "step"], nulls_equal=True, how="semi")
    rows = (
        blocks.group_by("variant", maintain_order=True)
        .agg(
            pl.col("kind").drop_nulls().mode().sort().first(),
            pl.col("block").n_unique().alias("blocks"),
            pl.col("kernels", "kernel_sum_ns").median(),
        )
        .sort("variant")
    )
    specs = [
        Spec("variant", "text", "variant"),
        Spec("kind", "text", "kind"),
        Spec("blocks", "count", "blocks"),
        Spec("kernels", "count", "kernels"),
        Spec("time per block", "time", "kernel_sum_ns"),
    ]
    return table(f"{prefix}variants", "Variants: blocks with the same kernels", specs, rows.to_dicts())


def _hotspots(view: TraceView, prefix: str) -> Section:
    specs = [
        Spec("kernel", "name", lambda row: row["name"] or "unknown"),
        Spec("time per step", "time", "per_step_ns"),
        *([] if _per_step(view) else [Spec("total", "time", "total_ns")]),
        Spec("share", "share", "share"),
        Spec("role", "text", lambda row: row["role"] or "several"),
        Spec("tile", "text", "tile"),
        *_bound_specs(view.kernel_bounds),
        Spec("runs", "count", "count"),
        Spec("mean", "time", "mean_ns"),
        Spec("p99", "time", "p99_ns"),
        Spec("types", "text", "dtypes"),
        Spec("warps", "count", "num_warps"),
    ]
    made = table(
        f"{prefix}kernels",
        "Kernels by total time",
        specs,
        view.kernels.rows.to_dicts(),
        limit=MOST_KERNELS,
        filterable=True,
    )
    copies = int(view.kernels.copies["total_ns"].sum()) if view.kernels.copies.height else 0
    return section(
        f"{prefix}hotspots",
        "Hotspots",
        [
            made,
            Paragraph(f"Copies and memsets besides these kernels: {duration(copies)} in all.", "note")
            if copies
            else None,
        ],
    )


def _roofline(view: TraceView, prefix: str) -> Section:
    held = view.roofline
    if held is None:
        return section(f"{prefix}roofline", "Roofline", [Paragraph(f"No roofline: {view.roofline_refusal}")])
    specs = [
        Spec("work", "text", "label"),
        Spec("kernels per step", "count", "count"),
        Spec("measured", "time", "measured_ns"),
        Spec("floor", "time", "floor_ns"),
        Spec("headroom", "time", "headroom_ns"),
        Spec("of roof", "share", "roof_share"),
        Spec(
            "limited by",
            "text",
            lambda row: row.bound if row.plausible else "above its roof: implausible",
        ),
        Spec("FLOP per byte", "number", "intensity"),
        Spec("GB/s", "number", "gbps", 0),
        Spec("TFLOP/s", "number", "tflops"),
    ]
    reasons = [
        Spec("work", "text", "label"),
        Spec("kernels", "name", lambda row: row.names[0] if row.names else None),
        Spec("rests on", "long", lambda row: "; ".join(row.basis)),
    ]
    why = table(f"{prefix}reasons", "Kinds of work, most time first", reasons, held.rows)
    made = table(f"{prefix}roof", "Work per step against its roofs", specs, held.rows)
    return section(
        f"{prefix}roofline",
        "Roofline",
        [_roofline_plot(view, prefix), made, Folded("What each row rests on", (why,)) if why else None],
    )


def _roofline_plot(view: TraceView, prefix: str) -> Part:
    assert view.roofline is not None
    try:
        figure = roofline_figure(view.roofline)
    except TraceError as error:
        return Paragraph(f"{error.reason[:1].upper()}{error.reason[1:]}.")
    description = "Roofline plot: speed over arithmetic intensity of each kind of work; the table below has the figures"
    return plot(figure, f"{prefix}roofplot", description)


def _idle(view: TraceView, prefix: str) -> Section:
    idle = view.idle
    parts: list[Part | None] = [*(Paragraph(line) for line in _idle_lines(view))]
    parts.append(_communication(view))
    classes = idle.by_cause
    specs = [
        Spec("where", "text", "place"),
        Spec("why", "text", lambda row: EXPLAINED[row["cause"]]),
        Spec("gaps", "count", "gaps"),
        Spec("total", "time", "total_ns"),
    ]
    parts.append(table(f"{prefix}gaps", "Gaps by place and cause", specs, classes.to_dicts()))
    host = [
        Spec("host event", "name", lambda row: row["name"] or "(no host event recorded)"),
        Spec("inside", "text", "inside"),
        Spec("where", "text", "place"),
        Spec("total", "time", "total_ns"),
    ]
    doing = table(
        f"{prefix}host", "What the host did while the GPU waited for it", host, idle.host.to_dicts(), limit=MOST_HOST
    )
    ended = [
        Spec("gap before", "name", "after"),
        Spec("where", "text", "place"),
        Spec("cause", "text", "cause"),
        Spec("gaps", "count", "gaps"),
        Spec("longest", "time", "longest_ns"),
        Spec("total", "time", "total_ns"),
    ]
    rows = idle.by_kernel.to_dicts()
    gaps = table(f"{prefix}ended", "Gaps by what ends them", ended, rows, limit=MOST_GAPS, filterable=True)
    parts.append(doing)
    if gaps is not None:
        parts.append(Folded(f"What ends the {plural(idle.gaps.height, 'gap')}", (gaps,)))
    return section(f"{prefix}idle", "Idle time and communication", parts, short="Idle")


def _idle_lines(view: TraceView) -> list[str]:
    lines = []
    for row in view.idle.totals.iter_rows(named=True):
        if row["idle_ns"] is None:
            lines.append(f"GPU {row['device']}: idle time unknown, because kernels were not recorded.")
            continue
        share = row["idle_ns"] / row["span_ns"] if row["span_ns"] else None
        idle = f"idle {duration(row['idle_ns'])} of {duration(row['span_ns'])} ({percent(share)})"
        lines.append(f"GPU {row['device']}: {idle}, busy {duration(row['busy_ns'])}.")
    return lines or [f"{warning.message[:1].upper()}{warning.message[1:]}." for warning in view.idle.warnings]


def _communication(view: TraceView) -> Part:
    items = [
        (
            "",
            f"{'CPU' if t.device is None else f'GPU {t.device}'}: communication kernels {duration(t.comm_sum_ns)}, of "
            f"which {duration(t.comm_exposed_ns)} ({percent(t.comm_exposed_ns / t.span_ns if t.span_ns else None)} of "
            "the recording) while no other kernel ran.",
        )
        for t in view.timelines
        if t.comm_sum_ns
    ]
    return bullets(items) or Paragraph("No communication kernels were recorded.")
