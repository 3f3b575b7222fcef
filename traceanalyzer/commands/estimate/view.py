"""Estimates as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.estimate.answer import EstimateResults
from traceanalyzer.commands.estimate.compute import DeploymentEstimate
from traceanalyzer.commands.estimate.memory_fit import gigabytes
from traceanalyzer.commands.estimate.result import (
    EstimateCalibration,
    EstimateMemory,
    EstimateParallel,
    EstimatePrediction,
    GpuRatios,
    Shortcut,
)
from traceanalyzer.commands.estimate.step_time import OpTime, op_sums, total_ns
from traceanalyzer.show.part_table import part_table
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import cut_middle, duration, duration_us, percent, plural, visible

WIDE = 100
"""Terminal width from which on the times of arithmetic and memory have columns."""

LIMITS = {
    "ttft": "one more exceeds the limit on TTFT",
    "tpot": "one more exceeds the limit on TPOT",
    "memory": "the KV cache is full",
    "tokens": "one token per request fills a step (--max-num-batched-tokens)",
    "search": "the largest batch that is tried",
}

Span = tuple[float, float]


def render(results: EstimateResults, width: int, limit: int) -> Group:
    """Return the estimate as text; ``limit`` ops of each phase, 0 for all."""
    first, answer = results.estimates[0], results.document
    parts: list[Any] = [*_headline(first)]
    if len(results.estimates) > 1:
        parts += [Text(), _batch_table(results.estimates, width)]
    parts += [Text(), _op_heading("a decode step", first.decode), _op_table("decode", first.decode, width, limit)]
    parts += [Text(), _op_heading("a prefill", first.prefill), _op_table("prefill", first.prefill, width, limit)]
    parts += [Text(f"  {line}") for line in _switch_lines(first)]
    if results.second is not None and answer.shortcut is not None and answer.ratios is not None:
        parts += [Text(), *_second(first, results.second, answer.ratios, answer.shortcut, width)]
    if answer.parallel is not None:
        parts += [Text(), *_layout_tables(answer.parallel, width)]
    if answer.calibration is not None:
        parts += [Text(), *_calibration_lines(answer.calibration, width)]
    if answer.prediction is not None:
        parts += [Text(), *_prediction_lines(answer.prediction, width)]
    parts += [Text(), Text("Assumptions", style="bold")]
    return Group(*parts, *(Text(f"  - {visible(line)}") for line in answer.assumptions))


def _headline(first: DeploymentEstimate) -> list[Text]:
    answer, served = first.answer, first.served
    where = answer.gpu if answer.gpus == 1 else f"{answer.gpus} x {answer.gpu}, {answer.layout}"
    title = (
        f"{answer.model} on {where}: {answer.isl:,} tokens in, {answer.osl:,} out, "
        f"{plural(answer.batch, 'request')} in flight"
    )
    at_once = duration(answer.ttft_at_once_ms * 1e6)
    tokens = answer.tokens_per_s_range
    between = f" ({_figure(tokens[0])} to {_figure(tokens[1])})" if tokens else ""
    shares = (percent(answer.compute_bound_share), percent(answer.prefill_compute_bound_share))
    lines = [
        f"  TTFT      {duration(served.ttft_ns)}{_between(answer.ttft_range_ms)}; if all are sent at once {at_once}",
        f"  TPOT      {duration(served.tpot_ns)}{_between(answer.tpot_range_ms)}",
        f"  output    {_figure(served.tokens_per_s)}{between} tokens/s, "
        f"{_figure(served.requests_per_s)} requests/s by Little's law",
        f"  memory    {_memory_line(answer.memory, answer.batch, first.deployment.parallel.dp)}",
    ]
    if first.largest is not None:
        lines.append(f"  in limits {first.largest.batch:,} requests at most: {LIMITS[first.largest.limited_by]}")
    lines.append(f"  limited by arithmetic, at the peaks: {shares[0]} of a decode step, {shares[1]} of a prefill")
    return [Text(visible(title), style="bold"), *map(Text, lines)]


def _memory_line(memory: EstimateMemory, batch: int, copies: int) -> str:
    weights, usable = gigabytes(memory.weight_bytes), gigabytes(memory.usable_bytes)
    if memory.weights_fit is None:
        return f"weights {weights}, usable {usable}"
    if not memory.weights_fit:
        fits = "the weights do NOT fit"
    elif memory.sequences is None:
        fits = "fits"
    elif memory.batch_fits:
        fits = f"fits, up to {memory.sequences:,} requests"
    else:
        fits = f"does NOT fit: {memory.sequences:,} requests at most"
    cache = gigabytes(memory.kv_bytes_a_sequence * -(-batch // copies))
    return f"{weights} of weights and {cache} of KV cache of {usable} per GPU: {fits}"


def _batch_table(estimates: Sequence[DeploymentEstimate], width: int) -> Any:
    rows = [
        (
            f"{one.answer.batch:,}",
            duration(one.served.ttft_ns),
            duration(one.served.tpot_ns),
            _span(one.answer.tpot_range_ms) or "n/a",
            f"{one.served.tokens_per_s:,.0f}",
            {True: "yes", False: "no", None: "?"}[one.answer.memory.batch_fits],
        )
        for one in estimates
    ]
    return table(("batch", "TTFT", "TPOT", "range", "tokens/s", "fits"), rows, name_column=None, width=width)


def _op_heading(phase: str, times: Sequence[OpTime]) -> Text:
    bounds: dict[str, float] = {}
    for entry in times:
        bounds[entry.bound] = bounds.get(entry.bound, 0.0) + entry.total_ns
    whole = total_ns(times)
    told = ", ".join(f"{bound} {percent(ns / whole)}" for bound, ns in sorted(bounds.items(), key=lambda b: -b[1]))
    return Text(f"{duration(whole)} of kernels in {phase}; limited by {told}", style="bold")


def _op_table(phase: Literal["decode", "prefill"], times: Sequence[OpTime], width: int, limit: int) -> Any:
    ordered = sorted(op_sums(phase, _kinds_merged(times)), key=lambda entry: -entry.time_us)
    shown, rest = ordered[: limit or len(ordered)], ordered[limit or len(ordered) :]
    rows = [
        (
            " ".join(part for part in (entry.op, entry.kind) if part),
            f"{entry.count:,}",
            duration_us(entry.time_us),
            percent(entry.share),
            *((duration_us(entry.compute_us), duration_us(entry.memory_us)) if width >= WIDE else ()),
            entry.bound,
        )
        for entry in shown
    ]
    details = ("arithmetic", "memory") if width >= WIDE else ()
    if rest:
        left = (duration_us(sum(entry.time_us for entry in rest)), percent(sum(entry.share for entry in rest)))
        rows.append((f"{len(rest)} more (--limit 0)", "", *left, *("" for _ in details), ""))
    columns = ("op", "n", "time", "share", *details, "limited by")
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


def _switch_lines(first: DeploymentEstimate) -> list[str]:
    switches = first.answer.switches
    if not switches:
        return ["memory or launch latency limits every op of a decode step at every batch up to 4,096"]
    by_batch: dict[int, dict[str, None]] = {}
    for one in switches:
        alike = {other.batch for other in switches if other.op == one.op}
        name = one.op if len(alike) == 1 else " ".join(part for part in (one.op, one.kind) if part)
        by_batch.setdefault(one.batch, {})[name] = None
    return [
        f"arithmetic limits from a batch of {batch:,} on: {', '.join(by_batch[batch])}" for batch in sorted(by_batch)
    ]


def _second(
    first: DeploymentEstimate, second: DeploymentEstimate, relative: GpuRatios, cut: Shortcut, width: int
) -> list[Any]:
    a, b = first.served, second.served
    rows = [
        ("decode step", duration(first.step_ns), duration(second.step_ns), _times(relative.decode_step)),
        ("prefill", duration(first.prefill_ns), duration(second.prefill_ns), _times(relative.prefill)),
        ("TTFT", duration(a.ttft_ns), duration(b.ttft_ns), _times(relative.ttft)),
        ("TPOT", duration(a.tpot_ns), duration(b.tpot_ns), _times(relative.tpot)),
        ("tokens/s", f"{a.tokens_per_s:,.0f}", f"{b.tokens_per_s:,.0f}", _times(relative.tokens_per_s)),
    ]
    if first.largest is not None and second.largest is not None:
        rows.append(("largest batch", f"{first.largest.batch:,}", f"{second.largest.batch:,}", ""))
    names = (first.answer.gpu, second.answer.gpu)
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


def _layout_tables(comparison: EstimateParallel, width: int) -> list[Any]:
    middle = comparison.link_gbps[len(comparison.link_gbps) // 2]
    rows = []
    for one in comparison.layouts:
        if one.refused is not None:
            rows.append((one.layout, "cannot run", "", "", "", ""))
        rows += [
            (
                one.layout,
                f"{served.batch:,}",
                f"{served.requests_per_s:,.2f}",
                f"{served.tokens_per_s:,.0f}",
                duration(served.ttft_ms * 1e6),
                duration(None if served.itl_ms is None else served.itl_ms * 1e6),
            )
            for served in one.results
            if served.link_gbps == middle
        ]
    ratios = [
        (
            f"{one.other} over {one.base}",
            f"{one.throughput[0]:.2f} to {one.throughput[1]:.2f}",
            _change(one.ttft_change),
            _change(one.itl_change),
        )
        for one in comparison.ratios
    ]
    return [
        Text(f"Layouts, at {middle:.1f} GB/s between GPUs", style="bold"),
        table(("layout", "batch", "requests/s", "tokens/s", "TTFT", "ITL"), rows, name_column=None, width=width),
        *(Text(visible(f"  {one.refused}")) for one in comparison.layouts if one.refused),
        Text(),
        Text("Ratios, lowest and highest over links and batches", style="bold"),
        table(("layouts", "RPS, TPS", "TTFT", "ITL"), ratios, name_column=None, width=width),
        *(Text(f"  {visible(note)}") for note in comparison.notes),
    ]


def _calibration_lines(calibration: EstimateCalibration, width: int) -> list[Any]:
    parts: list[Any] = [Text("Calibration", style="bold")]
    if calibration.points:
        columns = ("batch", "tpot_ms", "fitted_ms", "error", "held_out_ms", "held_out_error")
        parts.append(part_table(calibration.points, columns, width=width, unknown={"held_out_error": ""}))
        parts.append(Text(f"  mean error in sample {percent(calibration.error)}"))
        told = "one load: none to hold out, so the error of the fit is unknown"
        if calibration.held_out_error is not None:
            told = (
                f"each load left out of the fit: mean error {percent(calibration.held_out_error)}, "
                f"largest {percent(calibration.largest_held_out_error)}"
            )
        parts.append(Text(f"  {told}"))
    parts += [Text(f"  calibrated: {visible(line)}") for line in calibration.calibrated]
    return parts + [Text(f"  not calibrated: {visible(line)}") for line in calibration.not_calibrated]


def _prediction_lines(prediction: EstimatePrediction, width: int) -> list[Any]:
    before, after = prediction.tpot_before_ms, prediction.tpot_after_ms
    if before is not None and after is not None:
        told = f"TPOT {duration(before * 1e6)} to {duration(after * 1e6)}"
        if prediction.tokens_per_s_after:
            told += f", {prediction.tokens_per_s_before:,.0f} to {prediction.tokens_per_s_after:,.0f} tokens/s"
    else:
        told = f"step {duration_us(prediction.step_before_us)} to {duration_us(prediction.step_after_us)}"
    return [
        Text(f"Faster hotspots: {told}", style="bold"),
        part_table(prediction.effects, ("role", "what", "before_us", "after_us"), width=width),
        *(Text(f"  {line}") for line in prediction.basis),
    ]


def _span(span_ms: Span | None) -> str:
    return f"{duration(span_ms[0] * 1e6)} to {duration(span_ms[1] * 1e6)}" if span_ms else ""


def _between(span_ms: Span | None) -> str:
    return f" ({_span(span_ms)})" if span_ms else ""


def _figure(value: float) -> str:
    """A rate with at least three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _change(change: Span) -> str:
    return f"{change[0]:+.0%} to {change[1]:+.0%}"


def _times(ratio: float | None) -> str:
    return "n/a" if ratio is None else f"x{ratio:.3f}"
