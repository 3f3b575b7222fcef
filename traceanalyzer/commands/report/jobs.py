"""Sections on more than one trace: what changed, ranks side by side, serving results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from traceanalyzer.commands.diff.compute import Diff, change
from traceanalyzer.commands.diff.plot import change_by_role
from traceanalyzer.commands.ranks.compute import RankComparison
from traceanalyzer.commands.ranks.plot import time_by_rank
from traceanalyzer.commands.ranks.rank_findings import findings, layout_words
from traceanalyzer.commands.ranks.view import collectives, most_often_late, per_rank, ranks_in_short
from traceanalyzer.commands.report.figures import plot
from traceanalyzer.commands.report.gather import ServingView, Sides
from traceanalyzer.commands.report.page_parts import Fact, Facts, Paragraph, Part, Section, bullets, section
from traceanalyzer.commands.report.page_tables import Spec, table
from traceanalyzer.problems import TraceError
from traceanalyzer.serving.series import HEADLINE, SHOW_COLUMNS, Series, show_rows
from traceanalyzer.wording import MINUS, duration_us, plural, signed, visible

MOST_ROWS = 300


def diff_section(sides: Sides, figures: tuple[Fact, ...]) -> Section:
    """What changed, by role and by kernel position."""
    comparison = sides.diff
    rows = comparison.rows.with_columns(
        how=pl.struct("name_before", "name_after").map_elements(
            lambda pair: change(pair["name_before"], pair["name_after"]), return_dtype=pl.String
        )
    ).filter(pl.col("delta_ns").abs() >= 0.5)
    roles = rows.group_by("role").agg(pl.col("before_ns", "after_ns", "delta_ns").sum())
    by_role = [
        Spec("role", "text", lambda row: row["role"] or "other"),
        Spec("before", "time", "before_ns"),
        Spec("after", "time", "after_ns"),
        Spec("change", "time", "delta_ns"),
        Spec("of the change", "share", lambda row: row["delta_ns"] / _delta(sides)),
    ]
    by_kernel = [
        Spec("role", "text", lambda row: row["role"] or "other"),
        Spec("kernel before", "name", "name_before"),
        Spec(
            "kernel after", "name", lambda row: row["name_after"] if row["name_after"] != row["name_before"] else None
        ),
        Spec("what changed", "text", "how"),
        Spec("where", "text", _where),
        Spec("before", "time", "before_ns"),
        Spec("after", "time", "after_ns"),
        Spec("change", "time", "delta_ns"),
    ]
    ordered = roles.sort([pl.col("delta_ns").abs(), pl.col("role")], descending=[True, False])
    largest = ordered.head(4).select("role", "delta_ns").rows()
    told = ", ".join(f"{role} {signed(delta, MINUS)}" for role, delta in largest)
    figure = plot(
        change_by_role(comparison), "change", f"Bars: change of device time per step, by role. Largest: {told}."
    )
    return section(
        "changes",
        "What changed",
        [
            Facts(figures),
            figure,
            table("change-roles", "Device time per step by role", by_role, ordered.to_dicts()),
            table(
                "change-kernels",
                "Device time per step by kernel position, largest change first",
                by_kernel,
                rows.to_dicts(),
                limit=MOST_ROWS,
                filterable=True,
            ),
            _what_was_compared(comparison),
        ],
    )


def _what_was_compared(comparison: Diff) -> Paragraph:
    phases = [
        f"{row['phase']}{_batch(row['requests'])}: {row['steps_before']} before, {row['steps_after']} after"
        for row in comparison.matched.iter_rows(named=True)
    ]
    return Paragraph(
        f"Not in any row: {signed(comparison.unattributed_ns, MINUS)}. Steps compared: {'; '.join(phases)}. "
        "Kernels are paired by section, kind of block, role and order, not by name.",
        "note",
    )


def _batch(requests: int | None) -> str:
    return "" if requests is None else f" of batch {requests}"


def _delta(sides: Sides) -> float:
    return (sides.diff.after_step_ns - sides.diff.before_step_ns) or 1.0


def _where(row: Mapping[str, Any]) -> str:
    if row["section"] != "block":
        return row["section"] or ""
    return f"{row['blocks']} {row['block_kind'] + ' ' if row['block_kind'] else ''}blocks"


def ranks_section(comparison: RankComparison | None) -> Section | None:
    """Ranks side by side; None for a single one."""
    if comparison is None:
        return None
    places = [Spec(axis, "count", axis) for axis in ("dp", "pp", "tp") if comparison.layout.size(axis) > 1]
    specs = [
        Spec("rank", "count", "rank"),
        *places,
        Spec("layers", "count", "layers"),
        Spec("steps", "count", "steps"),
        Spec("computing", "time", "compute_us"),
        Spec("communication", "time", "comm_us"),
        Spec("of which exposed", "time", "exposed_comm_us"),
        Spec("waiting", "time", "wait_us"),
        Spec("idle", "time", "idle_us"),
        Spec("first to last event", "time", "span_us"),
    ]
    calls = [
        Spec("collective", "text", "kind"),
        Spec("ranks", "text", lambda row: ranks_in_short(row.ranks)),
        Spec("calls", "count", "calls"),
        Spec("transfer", "time", "transfer_us"),
        Spec("waiting", "time", lambda row: sum(row.wait_us.values()) * 1000),
        Spec("last in most calls", "text", lambda row: most_often_late(row.late_rank, row.calls)),
        Spec("bus GB/s", "number", "bus_gbps"),
    ]
    causes = [
        Spec("late rank", "count", "rank"),
        Spec("role", "text", "role"),
        Spec("kernel", "name", lambda row: row["name"] or "(idle: launched late)"),
        Spec("calls", "count", "calls"),
        Spec("longer by", "time", "extra_ns"),
        Spec("others waited", "time", "wait_ns"),
    ]
    parts: list[Part | None] = [
        Paragraph(
            f"{plural(len(comparison.members), 'rank')}, layout {layout_words(comparison.layout)}; "
            f"clocks by {comparison.clocks.method}."
        ),
        bullets([(_worth(finding.worth_us), visible(finding.message)) for finding in findings(comparison)]),
        plot(time_by_rank(comparison), "rankplot", "Bars: computing, exposed communication and idle time by rank"),
        table(
            "ranks-table",
            "Time of each rank over the recording",
            specs,
            per_rank(comparison),
        ),
        table("collectives", "Collectives", calls, collectives(comparison), limit=MOST_ROWS),
        table("causes", "What made ranks late", causes, comparison.causes.to_dicts(), limit=MOST_ROWS),
    ]
    return section("ranks", "Ranks", parts)


def _worth(worth_us: float | None) -> str:
    return "" if worth_us is None else f"{duration_us(worth_us)} per step:"


def serving_section(view: ServingView | None) -> Section | None:
    """Tokens/s over concurrency, the figures at each load, and the comparison of two sides."""
    if view is None:
        return None
    from traceanalyzer.commands.serving.plot import throughput_curves

    parts: list[Part | None] = []
    try:
        figure = throughput_curves(view.curves)
        named = ", ".join(visible(name) for name in list(view.curves)[:6])
        parts.append(plot(figure, "serveplot", f"Curves: output tokens/s over concurrent requests, for {named}"))
    except TraceError as error:
        parts.append(Paragraph(f"No plot: {error.reason}."))
    parts += [_comparison(view), _loads(view)]
    return section("serving", "Serving results", parts, short="Serving")


def _loads(view: ServingView) -> Part | None:
    rows = show_rows([Series(name, tuple(points)) for name, points in view.curves.items()])
    titles = {"p99_e2el_ms": "P99 latency, ms", "p99_ttft_ms": "P99 TTFT, ms", "p99_tpot_ms": "P99 TPOT, ms"}
    specs = [
        Spec("result", "text", "result"),
        Spec("concurrency", "number", "concurrency", 0),
        Spec("request rate", "number", "request_rate", 2),
        Spec("runs", "count", "runs"),
        *(
            Spec(
                titles.get(key, f"{title}, ms" if key.endswith("_ms") else title),
                "number",
                key,
                1 if key.endswith("_ms") else 2,
            )
            for key, title in SHOW_COLUMNS
        ),
        Spec("completed", "count", "completed"),
        Spec("failed", "count", "failed"),
    ]
    return table("loads", "Results at each load; means, where runs were repeated", specs, rows, limit=MOST_ROWS)


def _comparison(view: ServingView) -> Part | None:
    compared = view.comparison
    if compared is None:
        return None
    rows = [one for one in compared.metrics if one.metric in HEADLINE]
    specs = [
        Spec("concurrency", "text", lambda row: "any" if row.concurrency is None else f"{row.concurrency:g}"),
        Spec("metric", "text", lambda row: HEADLINE[row.metric]),
        Spec("before", "number", "before", 2),
        Spec("after", "number", "after", 2),
        Spec("change", "share", lambda row: None if row.change_percent is None else row.change_percent / 100),
        Spec("verdict", "text", lambda row: row.verdict or "not judged"),
    ]
    method = f"{compared.method[:1].upper()}{compared.method[1:]}."
    fair = "" if compared.comparable else " The two sides did different work: no verdicts."
    return table("compared", f"Before and after. {method}{fair}", specs, rows, filterable=True)
