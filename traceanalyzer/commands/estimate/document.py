"""Estimates as the contract's JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from traceanalyzer.commands.estimate.calibrate import Calibration, summary
from traceanalyzer.commands.estimate.compute import Estimate, Range
from traceanalyzer.commands.estimate.from_roofline import Prediction
from traceanalyzer.commands.estimate.gpu_comparison import Shortcut
from traceanalyzer.commands.estimate.memory_fit import Memory, layout_name
from traceanalyzer.commands.estimate.outcomes import Results
from traceanalyzer.commands.estimate.parallel import LayoutComparison
from traceanalyzer.commands.estimate.slo import LargestBatch
from traceanalyzer.commands.estimate.times import OpTime, by_op, total_ns
from traceanalyzer.problems import TraceWarning
from traceanalyzer.wording import us

SCHEMA = "traceanalyzer/estimate/1"


def warnings(results: Results) -> list[TraceWarning]:
    """Return what the user should know before using the estimates."""
    found = results.estimates[0]
    told = list(dict.fromkeys(results.warnings))
    fit, batch = found.memory.holds(found.traffic.concurrency), found.traffic.concurrency
    if found.memory.weights_fit is False:
        told.append(
            TraceWarning(
                "does_not_fit",
                f"{gigabytes(found.memory.weights)} of weights a GPU do not fit into "
                f"{gigabytes(found.memory.usable)} usable (--gpu-fit refuses such layouts)",
            )
        )
    elif fit is False:
        told.append(
            TraceWarning(
                "cache_too_small", f"the KV cache holds {found.memory.sequences} of {batch} sequences at full length"
            )
        )
    if found.largest is not None and found.largest.batch == 0:
        told.append(TraceWarning("slo_not_kept", "not even one sequence keeps the limits; the figures are for one"))
    return told


def document(found: Results) -> dict[str, Any]:
    """Return the JSON document of ``estimate``; the top level is the estimate for the first batch."""
    first = found.estimates[0]
    return {
        "schema": SCHEMA,
        **_estimate(first),
        "warnings": [warning.to_dict() for warning in warnings(found)],
        "batches": [_line(one) for one in found.estimates],
        "second_gpu": _estimate(found.second) if found.second else None,
        "ratios": ratios(first, found.second) if found.second else None,
        "shortcut": _shortcut(found.shortcut) if found.shortcut else None,
        "parallel": _layouts(found.layouts) if found.layouts else None,
        "calibration": _calibration(found.calibration) if found.calibration else None,
        "prediction": _prediction(found.prediction) if found.prediction else None,
    }


def _estimate(found: Estimate) -> dict[str, Any]:
    deployment = found.deployment
    largest = found.largest or LargestBatch(found.memory.sequences or 0, None, "memory")
    return {
        "model": deployment.architecture.name,
        "gpu": deployment.gpu.name,
        "layout": layout_name(deployment.parallel),
        "gpus": deployment.parallel.gpus,
        "isl": found.traffic.isl,
        "osl": found.traffic.osl,
        "max_num_batched_tokens": found.budget,
        **_line(found),
        "max_batch": None if found.largest is None and found.memory.sequences is None else largest.batch,
        "max_batch_limited_by": largest.limited_by if found.largest or found.memory.sequences is not None else None,
        "prefill_ms": _ms(found.prefill_ns),
        "decode_step_ms": _ms(found.step_ns),
        "compute_bound_share": found.decode_compute_share,
        "prefill_compute_bound_share": found.prefill_compute_share,
        "memory": _memory(found.memory, found.traffic.concurrency),
        "ops": [*_ops("decode", found.decode), *_ops("prefill", found.prefill)],
        "switches": [
            {"op": one.name, "kind": one.kind, "batch": one.batch, "from": one.before, "to": "compute"}
            for one in found.switches
        ],
        "assumptions": list(found.assumptions),
    }


def _line(found: Estimate) -> dict[str, Any]:
    served = found.served
    return {
        "batch": found.traffic.concurrency,
        "ttft_ms": _ms(served.ttft_ns),
        "ttft_range_ms": _range(found.ttft, 1e6),
        "ttft_p99_ms": _ms(served.ttft_p99_ns),
        "ttft_at_once_ms": _ms(found.at_once_ttft_ns),
        "tpot_ms": _ms(served.tpot_ns),
        "tpot_range_ms": _range(found.tpot, 1e6),
        "tpot_p99_ms": _ms(served.tpot_p99_ns),
        "tokens_per_s": served.tokens_per_s,
        "tokens_per_s_range": _range(found.tokens, 1.0),
        "requests_per_s": served.requests_per_s,
        "latency_ms": _ms(served.latency_ns),
        "bubble_share": served.bubble_share,
    }


def _memory(found: Memory, batch: int) -> dict[str, Any]:
    return {
        "usable_bytes": found.usable,
        "weight_bytes": found.weights,
        "workspace_bytes": found.workspace,
        "kv_bytes_a_sequence": found.kv_a_sequence,
        "sequences": found.sequences,
        "weights_fit": found.weights_fit,
        "batch_fits": found.holds(batch),
    }


def _ops(phase: str, times: Sequence[OpTime]) -> list[dict[str, Any]]:
    whole = total_ns(times)
    return [
        {
            "phase": phase,
            "op": entry.name,
            "role": entry.role,
            "kind": entry.kind,
            "count": entry.count,
            "time_us": us(entry.total_ns),
            "share": entry.total_ns / whole if whole else 0.0,
            "compute_us": us(entry.compute_ns),
            "memory_us": us(entry.memory_ns),
            "latency_us": us(entry.latency_ns),
            "communication_us": us(entry.communication_ns),
            "flops": entry.flops,
            "bytes": entry.bytes,
            "intensity": entry.flops / entry.bytes if entry.bytes else None,
            "bound": entry.bound,
            "notes": list(entry.notes),
        }
        for entry in by_op(times)
    ]


def ratios(first: Estimate, second: Estimate) -> dict[str, float | None]:
    """Return the second GPU's times and tokens/s over those of the first."""
    a, b = first.served, second.served
    return {
        "decode_step": second.step_ns / first.step_ns,
        "prefill": second.prefill_ns / first.prefill_ns,
        "ttft": b.ttft_ns / a.ttft_ns,
        "tpot": b.tpot_ns / a.tpot_ns if a.tpot_ns and b.tpot_ns else None,
        "tokens_per_s": b.tokens_per_s / a.tokens_per_s,
    }


def _shortcut(found: Shortcut) -> dict[str, Any]:
    return {
        "compute_ratio": found.compute_ratio,
        "bandwidth_ratio": found.bandwidth_ratio,
        "decode_share": found.decode_share,
        "prefill_share": found.prefill_share,
        "decode_factor": found.decode_factor,
        "prefill_factor": found.prefill_factor,
        "batch": found.batch,
        "batch_kept": found.batch_kept,
        "tokens_per_s": found.tokens_per_s,
        "tokens_per_s_kept": found.tokens_kept,
        "notes": list(found.notes),
    }


def _layouts(found: LayoutComparison) -> dict[str, Any]:
    return {
        "link_gbps": list(found.gbps),
        "batches": list(found.batches),
        "layouts": [
            {
                "layout": one.name,
                "gpus": one.parallel.gpus,
                "refused": one.refused,
                "results": [
                    {
                        "link_gbps": rate,
                        "batch": batch,
                        "requests_per_s": served.requests_per_s,
                        "tokens_per_s": served.tokens_per_s,
                        "ttft_ms": _ms(served.ttft_ns),
                        "itl_ms": _ms(served.tpot_ns),
                        "bubble_share": served.bubble_share,
                    }
                    for (rate, batch), served in one.served.items()
                ],
            }
            for one in found.layouts
        ],
        "ratios": [
            {
                "base": one.base,
                "other": one.other,
                "throughput": list(one.throughput),
                "ttft_change": list(one.ttft),
                "itl_change": list(one.itl),
            }
            for one in found.ratios
        ],
        "orders": [
            {"link_gbps": rate, "batch": batch, "order": list(order)} for (rate, batch), order in found.orders.items()
        ],
        "order_depends_on_link": found.depends_on_link,
        "notes": list(found.notes),
    }


def _calibration(found: Calibration) -> dict[str, Any]:
    return {
        "slowness": found.line.slowness if found.line else None,
        "step_ms": _ms(found.efficiencies.step_ns),
        "kernel_us": us(found.efficiencies.kernel_ns),
        "shares": {
            name: {"compute": share.compute, "memory": share.memory}
            for name, share in found.efficiencies.shares.items()
        },
        **summary(found),
        "points": [
            {
                "batch": point.observed.concurrency,
                "isl": point.observed.isl,
                "osl": point.observed.osl,
                "tpot_ms": _ms(point.observed.tpot_ns),
                "fitted_ms": _ms(point.fitted_ns),
                "error": point.error,
                "held_out_ms": _ms(point.held_out_ns),
                "held_out_error": point.held_out_error,
            }
            for point in found.points
        ],
        "calibrated": list(found.calibrated),
        "not_calibrated": list(found.kept),
    }


def _prediction(found: Prediction) -> dict[str, Any]:
    return {
        "effects": [
            {"role": one.label, "what": one.what, "before_us": us(one.before_ns), "after_us": us(one.after_ns)}
            for one in found.effects
        ],
        "step_before_us": us(found.step_before_ns),
        "step_after_us": us(found.step_after_ns),
        "tpot_before_ms": _ms(found.tpot_before_ns),
        "tpot_after_ms": _ms(found.tpot_after_ns),
        "tokens_per_s_before": found.tokens_before,
        "tokens_per_s_after": found.tokens_after,
        "basis": list(found.basis),
    }


def gigabytes(size: float | None) -> str:
    """A size for people, in GB or MB."""
    return "unknown" if size is None else f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e6


def _range(found: Range | None, unit: float) -> list[float] | None:
    return None if found is None else [found.low / unit, found.high / unit]
