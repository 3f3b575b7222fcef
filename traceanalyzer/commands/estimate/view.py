"""Estimates as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.estimate.calibrate import Calibration, summary
from traceanalyzer.commands.estimate.compute import Estimate, Range
from traceanalyzer.commands.estimate.document import gigabytes, ratios
from traceanalyzer.commands.estimate.from_roofline import Prediction
from traceanalyzer.commands.estimate.gpu_comparison import Shortcut
from traceanalyzer.commands.estimate.memory_fit import Memory, layout_name
from traceanalyzer.commands.estimate.outcomes import Results
from traceanalyzer.commands.estimate.parallel import LayoutComparison
from traceanalyzer.commands.estimate.times import OpTime, by_op, total_ns
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import (
    cut_middle,
    duration,
    percent,
    plural,
    visible,
)

WIDE = 100
"""Terminal width from which on the times of arithmetic and memory have columns."""

LIMITS = {
    "ttft": "one more breaks the limit on TTFT",
    "tpot": "one more breaks the limit on TPOT",
    "memory": "the KV cache holds no more",
    "tokens": "a step has no more tokens (--max-num-batched-tokens)",
    "search": "the largest batch that is tried",
}


def render(found: Results, width: int, limit: int) -> Group:
    """Return the estimate as text; ``limit`` ops of each phase, 0 for all."""
    first = found.estimates[0]
    parts: list[Any] = [*_headline(first)]
    if len(found.estimates) > 1:
        parts += [Text(), _batch_table(found.estimates, width)]
    for phase, times in (("a decode step", first.decode), ("a prefill", first.prefill)):
        parts += [Text(), _op_heading(phase, times), _op_table(times, width, limit)]
    parts += [Text(f"  {line}") for line in _switch_lines(first)]
    if found.second is not None and found.shortcut is not None:
        parts += [Text(), *_second(first, found.second, found.shortcut, width)]
    if found.layouts is not None:
        parts += [Text(), *_layout_tables(found.layouts, width)]
    if found.calibration is not None:
        parts += [Text(), *_calibration_lines(found.calibration, width)]
    if found.prediction is not None:
        parts += [Text(), *_prediction_lines(found.prediction, width)]
    parts += [Text(), Text("Assumptions", style="bold")]
    return Group(*parts, *(Text(f"  - {visible(line)}") for line in first.assumptions))


def _headline(found: Estimate) -> list[Text]:
    deployment, traffic = found.deployment, found.traffic
    layout = layout_name(deployment.parallel)
    where = (
        f"{deployment.gpu.name}"
        if deployment.parallel.gpus == 1
        else f"{deployment.parallel.gpus} x {deployment.gpu.name}, {layout}"
    )
    title = (
        f"{deployment.architecture.name} on {where}: {traffic.isl:,} tokens in, {traffic.osl:,} out, "
        f"{plural(traffic.concurrency, 'request')} in flight"
    )
    served = found.served
    lines = [
        Text(visible(title), style="bold"),
        Text(
            f"  TTFT      {duration(served.ttft_ns)}{_between(found.ttft)}; if all are sent at once "
            f"{duration(found.at_once_ttft_ns)}"
        ),
        Text(f"  TPOT      {duration(served.tpot_ns)}{_between(found.tpot)}"),
        Text(
            f"  output    {_figure(served.tokens_per_s)}{_tokens_between(found.tokens)} tokens/s, "
            f"{_figure(served.requests_per_s)} requests/s by Little's law"
        ),
        Text(f"  memory    {_memory_line(found.memory, traffic.concurrency, deployment.parallel.dp)}"),
    ]
    if found.largest is not None:
        lines.append(Text(f"  in limits {found.largest.batch:,} requests at most: {LIMITS[found.largest.limited_by]}"))
    share = (
        f"{percent(found.decode_compute_share)} of a decode step, {percent(found.prefill_compute_share)} of a prefill"
    )
    lines.append(Text(f"  arithmetic bounds {share}, at the peaks"))
    return lines


def _memory_line(found: Memory, batch: int, copies: int) -> str:
    if found.weights is None or found.usable is None:
        return f"weights {gigabytes(found.weights)}, usable {gigabytes(found.usable)}"
    cache = f"{gigabytes(found.kv_a_sequence * -(-batch // copies))} of KV cache"
    if not found.weights_fit:
        fits = "the weights do NOT fit"
    elif found.holds(batch):
        fits = f"fits, up to {found.sequences:,} requests"
    elif found.sequences is None:
        fits = "fits"
    else:
        fits = f"does NOT fit: {found.sequences:,} requests at most"
    return f"{gigabytes(found.weights)} of weights and {cache} of {gigabytes(found.usable)} a GPU: {fits}"


def _batch_table(found: Iterable[Estimate], width: int) -> Any:
    rows = [
        (
            f"{one.traffic.concurrency:,}",
            duration(one.served.ttft_ns),
            duration(one.served.tpot_ns),
            f"{duration(one.tpot.low)} to {duration(one.tpot.high)}" if one.tpot else "n/a",
            f"{one.served.tokens_per_s:,.0f}",
            {True: "yes", False: "no", None: "?"}[one.memory.holds(one.traffic.concurrency)],
        )
        for one in found
    ]
    return table(("batch", "TTFT", "TPOT", "range", "tokens/s", "fits"), rows, name_column=None, width=width)


def _op_heading(phase: str, times: Sequence[OpTime]) -> Text:
    bounds: dict[str, float] = {}
    for entry in times:
        bounds[entry.bound] = bounds.get(entry.bound, 0.0) + entry.total_ns
    whole = total_ns(times)
    told = ", ".join(f"{bound} {percent(ns / whole)}" for bound, ns in sorted(bounds.items(), key=lambda b: -b[1]))
    return Text(f"{duration(whole)} of kernels in {phase}; bound by {told}", style="bold")


def _op_table(times: Sequence[OpTime], width: int, limit: int) -> Any:
    whole = total_ns(times)
    ordered = sorted(by_op(_kinds_merged(times)), key=lambda entry: -entry.total_ns)
    shown = ordered[: limit or len(ordered)]
    rows = [
        (
            " ".join(part for part in (entry.name, entry.kind) if part),
            f"{entry.count:,}",
            duration(entry.total_ns),
            percent(entry.total_ns / whole),
            *((duration(entry.compute_ns), duration(entry.memory_ns)) if width >= WIDE else ()),
            entry.bound,
        )
        for entry in shown
    ]
    details = ("arithmetic", "memory") if width >= WIDE else ()
    if rest := sum(entry.total_ns for entry in ordered[len(shown) :]):
        more = f"{len(ordered) - len(shown)} more (--limit 0)"
        rows.append((more, "", duration(rest), percent(rest / whole), *("" for _ in details), ""))
    columns = ("op", "n", "time", "share", *details, "bound")
    return table(columns, rows, name_column=0, width=width, shorten=cut_middle)


def _kinds_merged(times: Sequence[OpTime]) -> list[OpTime]:
    """Drop the kind of layer from ops that take the same time in layers of every kind."""
    distinct: dict[str, set[int]] = {}
    for entry in times:
        distinct.setdefault(entry.op.name, set()).add(round(entry.one_ns))
    return [
        replace(entry, op=replace(entry.op, kind=None)) if len(distinct[entry.op.name]) == 1 else entry
        for entry in times
    ]


def _switch_lines(found: Estimate) -> list[str]:
    if not found.switches:
        return ["memory or launching bounds every op of a decode step at any batch up to 4,096"]
    by_batch: dict[int, dict[str, None]] = {}
    for one in found.switches:
        alike = {other.batch for other in found.switches if other.name == one.name}
        name = one.name if len(alike) == 1 else " ".join(part for part in (one.name, one.kind) if part)
        by_batch.setdefault(one.batch, {})[name] = None
    return [
        f"arithmetic bounds from a batch of {batch:,} on: {', '.join(by_batch[batch])}" for batch in sorted(by_batch)
    ]


def _second(first: Estimate, second: Estimate, cut: Shortcut, width: int) -> list[Any]:
    relative = ratios(first, second)
    a, b = first.served, second.served
    rows = [
        ("decode step", duration(first.step_ns), duration(second.step_ns), _times(relative["decode_step"])),
        ("prefill", duration(first.prefill_ns), duration(second.prefill_ns), _times(relative["prefill"])),
        ("TTFT", duration(a.ttft_ns), duration(b.ttft_ns), _times(relative["ttft"])),
        ("TPOT", duration(a.tpot_ns), duration(b.tpot_ns), _times(relative["tpot"])),
        ("tokens/s", f"{a.tokens_per_s:,.0f}", f"{b.tokens_per_s:,.0f}", _times(relative["tokens_per_s"])),
    ]
    if first.largest is not None and second.largest is not None:
        rows.append(("largest batch", f"{first.largest.batch:,}", f"{second.largest.batch:,}", ""))
    names = (first.deployment.gpu.name, second.deployment.gpu.name)
    lines = [
        f"  decode  {_amdahl(cut.decode_share, cut)} = {cut.decode_factor:.3f} times the time",
        f"  prefill {_amdahl(cut.prefill_share, cut)} = {cut.prefill_factor:.3f} times the time",
        f"  batch   {cut.batch} / {cut.decode_factor:.3f} = {cut.batch_kept} at the same TPOT",
        *(f"  {note}" for note in cut.notes),
    ]
    return [
        Text(visible(f"{names[0]} and {names[1]}"), style="bold"),
        table(("", *names, "ratio"), rows, name_column=None, width=width),
        Text(),
        Text("Shortcut: Amdahl's law on the compute-bound share", style="bold"),
        *map(Text, lines),
    ]


def _amdahl(share: float, cut: Shortcut) -> str:
    return f"{share:.2f} / {cut.compute_ratio:.2f} + {1 - share:.2f} / {cut.bandwidth_ratio:.2f}"


def _layout_tables(found: LayoutComparison, width: int) -> list[Any]:
    middle = found.gbps[len(found.gbps) // 2]
    rows = []
    for one in found.layouts:
        if one.refused is not None:
            rows.append((one.name, "refused", "", "", "", ""))
            continue
        for batch in found.batches:
            served = one.served[middle, batch]
            rows.append(
                (
                    one.name,
                    f"{batch:,}",
                    f"{served.requests_per_s:,.2f}",
                    f"{served.tokens_per_s:,.0f}",
                    duration(served.ttft_ns),
                    duration(served.tpot_ns),
                )
            )
    ratios = [
        (
            f"{one.other} over {one.base}",
            f"{one.throughput[0]:.2f} to {one.throughput[1]:.2f}",
            _change(one.ttft),
            _change(one.itl),
        )
        for one in found.ratios
    ]
    return [
        Text(f"Layouts, at {middle:.1f} GB/s between GPUs", style="bold"),
        table(("layout", "batch", "requests/s", "tokens/s", "TTFT", "ITL"), rows, name_column=None, width=width),
        *(Text(visible(f"  {one.refused}")) for one in found.layouts if one.refused),
        Text(),
        Text("Ratios, lowest and highest over links and batches", style="bold"),
        table(("layouts", "RPS, TPS", "TTFT", "ITL"), ratios, name_column=None, width=width),
        *(Text(f"  {visible(note)}") for note in found.notes),
    ]


def _calibration_lines(found: Calibration, width: int) -> list[Any]:
    parts: list[Any] = [Text("Calibration", style="bold")]
    if found.points:
        rows = [
            (
                f"{point.observed.concurrency:,}",
                duration(point.observed.tpot_ns),
                duration(point.fitted_ns),
                f"{point.error:+.1%}",
                duration(point.held_out_ns),
                "" if point.held_out_error is None else f"{point.held_out_error:+.1%}",
            )
            for point in found.points
        ]
        columns = ("batch", "measured", "fitted", "error", "left out", "error")
        parts.append(table(columns, rows, name_column=None, width=width))
        errors = summary(found)
        parts.append(Text(f"  mean error in sample {percent(errors['error'])}"))
        if errors["held_out_error"] is not None:
            parts.append(
                Text(
                    f"  each point left out of the fit: mean error {percent(errors['held_out_error'])}, largest "
                    f"{percent(errors['largest_held_out_error'])}"
                )
            )
        else:
            parts.append(Text("  one load: nothing to hold out, so how far off the fit is stays unknown"))
    parts += [Text(f"  calibrated: {visible(line)}") for line in found.calibrated]
    return parts + [Text(f"  not calibrated: {visible(line)}") for line in found.kept]


def _prediction_lines(found: Prediction, width: int) -> list[Any]:
    rows = [(one.label, one.what, duration(one.before_ns), duration(one.after_ns)) for one in found.effects]
    if found.tpot_before_ns is not None and found.tpot_after_ns is not None:
        gain = f"{found.tokens_before:,.0f} to {found.tokens_after:,.0f} tokens/s" if found.tokens_after else ""
        told = f"TPOT {duration(found.tpot_before_ns)} to {duration(found.tpot_after_ns)}, {gain}"
    else:
        told = f"step {duration(found.step_before_ns)} to {duration(found.step_after_ns)}"
    return [
        Text(f"Faster hotspots: {told}", style="bold"),
        table(("work", "becomes", "before", "after"), rows, name_column=None, width=width),
        *(Text(f"  {line}") for line in found.basis),
    ]


def _between(found: Range | None) -> str:
    return f" ({duration(found.low)} to {duration(found.high)})" if found else ""


def _figure(value: float) -> str:
    """A rate with three digits at least."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _tokens_between(found: Range | None) -> str:
    return f" ({_figure(found.low)} to {_figure(found.high)})" if found else ""


def _change(change: tuple[float, float]) -> str:
    return f"{change[0]:+.0%} to {change[1]:+.0%}"


def _times(ratio: float | None) -> str:
    return "n/a" if ratio is None else f"x{ratio:.3f}"
