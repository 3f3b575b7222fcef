"""Everything a report shows, computed: one frozen dataclass each for a trace, a comparison and serving results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import polars as pl

from traceanalyzer.commands.diff.compute import Diff
from traceanalyzer.commands.hotspots.advice import advice
from traceanalyzer.commands.hotspots.compute import Hotspots, rankings
from traceanalyzer.commands.idle.compute import Idle, idle
from traceanalyzer.commands.ingest.compute import Timeline, engine_of, timelines
from traceanalyzer.commands.ranks.compute import RankComparison, compare, warnings_of_job
from traceanalyzer.commands.report.figures import Pictures, draw
from traceanalyzer.findings import NO_TARGET, Finding
from traceanalyzer.problems import TraceError, TraceWarning
from traceanalyzer.roofline import Request, Roofline, RooflineError
from traceanalyzer.roofline.attempt import roofline_or_reason
from traceanalyzer.roofline.bounds import Bound, bounds_by
from traceanalyzer.segment import Segmentation, segment
from traceanalyzer.segment.outliers import Outlier, find_outliers
from traceanalyzer.serving.comparison import compare as compare_serving
from traceanalyzer.serving.grouping import RunGroup, group
from traceanalyzer.serving.read import read
from traceanalyzer.serving.result import ServingDocument
from traceanalyzer.serving.series import series
from traceanalyzer.trace import Trace, TraceSet


@dataclass(frozen=True, eq=False)
class TraceView:
    """One rank's trace, analysed.

    Attributes:
        trace, cut, timelines, engine: the trace, its segmentation, its overview by device, what wrote it.
        phase: the phase that the figures are of: decode where there are complete decode steps, else the one with most
            kernel time; None without complete steps: the figures are then of the whole trace.
        steps: the complete steps of that phase.
        kernels, roles: the ranking by kernel and by role.
        kernel_bounds, role_bounds: what the roofline says of each kernel name and role.
        roofline: None where it cannot be made; ``roofline_refusal`` then says why.
        findings: what to act on, most worth first; the last one says what to attack.
        idle, outliers: gaps, and outlier blocks.
        pictures: figures of it, drawn.
        warnings: everything odd about the trace, each once.
    """

    trace: Trace
    cut: Segmentation
    timelines: tuple[Timeline, ...]
    engine: str
    phase: str | None
    steps: pl.DataFrame
    kernels: Hotspots
    roles: Hotspots
    kernel_bounds: Mapping[str, Bound]
    role_bounds: Mapping[str, Bound]
    roofline: Roofline | None
    roofline_refusal: str | None
    findings: tuple[Finding, ...]
    idle: Idle
    outliers: tuple[Outlier, ...]
    pictures: Pictures
    warnings: tuple[TraceWarning, ...]

    @property
    def path(self) -> str:
        """The file as the user gave it."""
        return self.trace.metadata.source.path

    @property
    def step_name(self) -> str | None:
        """``decode step``, ``step`` where the phase is unknown, None without complete steps."""
        return _step_name(self.phase, self.steps)

    @property
    def split_title(self) -> str:
        """What the ranking by role is of."""
        return _split_title(self.roles, self.phase, self.steps)


@dataclass(frozen=True, eq=False)
class Sides:
    """Two traces and what changed between them."""

    before: TraceView
    after: TraceView
    diff: Diff


@dataclass(frozen=True, eq=False)
class ServingView:
    """Serving results: curves by name, and the comparison where there are two sides."""

    curves: Mapping[str, Sequence[RunGroup]]
    comparison: ServingDocument | None
    warnings: tuple[TraceWarning, ...]


@dataclass(frozen=True, eq=False)
class PageData:
    """What goes on one page.

    Attributes:
        trace: the trace looked at; None on a page of two traces or of serving results only.
        sides: two traces compared.
        ranks: the job's ranks, where there are several.
        serving: results of serving benchmarks.
        warnings: of the input as a whole.
        again: what opens the trace looked at, or the one after the change, again on a command line, quoted.
    """

    trace: TraceView | None = None
    sides: Sides | None = None
    ranks: RankComparison | None = None
    serving: ServingView | None = None
    warnings: tuple[TraceWarning, ...] = field(default=())
    again: str = "PATH"


def gather_trace(trace: Trace, request: Request | None = None) -> TraceView:
    """Run every analysis of one trace.

    Raises:
        RooflineError: what is stated contradicts the trace, or it has no such phase.
    """
    asked = request or Request()
    cut = segment(trace)
    chosen, steps = _main_steps(cut.steps, asked.phase)
    # The two longest analyses release the interpreter's lock; the others and the drawing, which hold it, run meanwhile.
    with ThreadPoolExecutor(max_workers=2) as pool:
        assessed = pool.submit(roofline_or_reason, trace, replace(asked, phase=chosen))
        waited = pool.submit(idle, trace)
        told = advice(trace, phase=chosen)
        by_kernel, by_role = rankings(trace, ("kernel", "role"), chosen)
        devices, outliers = timelines(trace), tuple(find_outliers(cut))
        pictures = draw(by_role, _split_title(by_role, chosen, steps), cut, chosen, trace.rank, outliers)
        gaps = waited.result()
        held, refusal = assessed.result()
    source = trace.metadata.source.path
    warnings = [*trace.metadata.warnings, *cut.warnings, *gaps.warnings]
    return TraceView(
        trace=trace,
        cut=cut,
        timelines=devices,
        engine=engine_of([trace]),
        phase=chosen,
        steps=steps,
        kernels=by_kernel,
        roles=by_role,
        kernel_bounds=bounds_by(held, "kernel") if held else {},
        role_bounds=bounds_by(held, "role") if held else {},
        roofline=held,
        roofline_refusal=refusal,
        findings=_merged(held, told),
        idle=gaps,
        outliers=outliers,
        pictures=pictures,
        warnings=tuple(dict.fromkeys(w if w.source else w.at(source) for w in warnings)),
    )


def _step_name(phase: str | None, steps: pl.DataFrame) -> str | None:
    if steps.is_empty():
        return None
    return "step" if phase in (None, "unknown") else f"{phase} step"


def _split_title(roles: Hotspots, phase: str | None, steps: pl.DataFrame) -> str:
    return f"Kernel time per {_step_name(phase, steps)}, by role" if roles.steps else "Kernel time, by role"


def _main_steps(steps: pl.DataFrame, phase: str | None) -> tuple[str | None, pl.DataFrame]:
    whole = steps.filter("complete", pl.col("kernels") > 0, pl.col("phase") != "dummy")
    if phase is not None:
        own = steps.filter("complete", pl.col("kernels") > 0, pl.col("phase") == phase)
        if own.is_empty():
            known = ", ".join(sorted(whole["phase"].unique().to_list())) or "none"
            raise RooflineError(f"the trace has no complete {phase} step (phases of its complete steps: {known})")
        return phase, own
    if whole.is_empty():
        return None, whole
    sums = whole.group_by("phase").agg(pl.col("kernel_sum_ns").sum()).sort("kernel_sum_ns", "phase", descending=True)
    phases = sums["phase"].to_list()
    main = "decode" if "decode" in phases else phases[0]
    return main, whole.filter(pl.col("phase") == main)


def _merged(held: Roofline | None, told: list[Finding]) -> tuple[Finding, ...]:
    """Findings of the roofline and of the names; what both say, once; the recommendation last.

    The roofline knows what can be saved, so its recommendation is taken unless it has none.
    """
    if held is None:
        return tuple(told)
    known = {finding.code for finding in held.findings}
    extra = [finding for finding in told if finding.code not in known]
    ordered = sorted(
        [*held.findings[:-1], *extra], key=lambda finding: (finding.worth_us is None, -(finding.worth_us or 0.0))
    )
    own = held.findings[-1:]
    target = next((finding for finding in told if finding.code == "target"), None)
    if target is not None and (not own or own[0].message.startswith(NO_TARGET)):
        return (*ordered, *own, target)
    return (*ordered, *own)


def gather_ranks(traces: TraceSet) -> tuple[RankComparison | None, tuple[TraceWarning, ...]]:
    """Compare the ranks where there are several, with all warnings about them and the input as a whole.

    Where the ranks cannot be compared, a warning says why.
    """
    if len(traces) < 2:
        return None, traces.warnings
    try:
        comparison = compare(traces)
    except TraceError as error:
        reason = TraceWarning("ranks_not_compared", f"ranks were not compared: {error.reason}")
        return None, (*traces.warnings, reason)
    return comparison, warnings_of_job(traces, comparison)


def gather_serving(paths: Sequence[str]) -> ServingView:
    """Read serving results: one curve per configuration; two paths are also compared as before and after.

    Raises:
        TraceError: a path holds no result.
    """
    results = [read(path) for path in paths]
    warnings = [warning for one in results for warning in one.warnings]
    if len(results) != 2:
        listed = series([result for one in results for result in one.results])
        return ServingView({one.name: one.points for one in listed}, None, tuple(warnings))
    curves = {name: group(one.results) for name, one in zip(("before", "after"), results, strict=True)}
    try:
        compared = compare_serving(results[0].results, results[1].results)
    except TraceError as error:
        warnings.append(TraceWarning("serving_not_compared", f"the serving results were not compared: {error}"))
        return ServingView(curves, None, tuple(warnings))
    return ServingView(curves, compared, (*warnings, *compared.warnings))
