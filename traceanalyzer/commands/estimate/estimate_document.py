"""Estimates as the JSON document, and what to warn of."""

from __future__ import annotations

from typing import Any, TypeVar

from traceanalyzer.commands.estimate.answer import Results
from traceanalyzer.commands.estimate.calibrate import Calibration, CalibrationPoint
from traceanalyzer.commands.estimate.compute import DeploymentEstimate, ErrorRange
from traceanalyzer.commands.estimate.memory_fit import Memory, layout_name
from traceanalyzer.commands.estimate.parallel import ParallelComparison
from traceanalyzer.commands.estimate.result import (
    AchievedShare,
    EstimateCalibration,
    EstimateDocument,
    EstimateLayout,
    EstimateLine,
    EstimateMemory,
    EstimateOnGpu,
    EstimateParallel,
    FittedLoad,
    GpuRatios,
    LayoutAtLoad,
    LayoutOrder,
)
from traceanalyzer.commands.estimate.times import op_sums
from traceanalyzer.declare import part_of
from traceanalyzer.problems import TraceWarning
from traceanalyzer.wording import us

L = TypeVar("L", bound=EstimateLine)


def warnings(results: Results) -> list[TraceWarning]:
    """Return what the user should know before using the estimates."""
    first = results.estimates[0]
    told = list(dict.fromkeys(results.warnings))
    fit, batch = first.memory.holds(first.traffic.concurrency), first.traffic.concurrency
    if first.memory.weights_fit is False:
        told.append(
            TraceWarning(
                "does_not_fit",
                f"{gigabytes(first.memory.weights)} of weights per GPU do not fit into "
                f"{gigabytes(first.memory.usable)} usable (--gpu-fit refuses such layouts)",
            )
        )
    elif fit is False:
        told.append(
            TraceWarning(
                "cache_too_small", f"the KV cache holds {first.memory.sequences} of {batch} sequences at full length"
            )
        )
    if first.largest is not None and first.largest.batch == 0:
        told.append(TraceWarning("slo_not_kept", "not even one sequence keeps the limits; the figures are for one"))
    return told


def document(results: Results) -> EstimateDocument:
    """Return the JSON document of ``estimate``; the top level is the estimate for the first batch."""
    first, second = results.estimates[0], results.second
    return _line(
        EstimateDocument,
        first,
        **_on_gpu(first),
        warnings=warnings(results),
        batches=[_line(EstimateLine, one) for one in results.estimates],
        second_gpu=_line(EstimateOnGpu, second, **_on_gpu(second)) if second else None,
        ratios=ratios(first, second) if second else None,
        shortcut=results.shortcut,
        parallel=_layouts(results.layouts) if results.layouts else None,
        calibration=_calibration(results.calibration) if results.calibration else None,
        prediction=results.prediction,
    )


def _line(part: type[L], estimate: DeploymentEstimate, **given: Any) -> L:
    """Return a part that says what clients see, with the fields that only it has."""
    return part_of(
        part,
        estimate.served,
        batch=estimate.traffic.concurrency,
        ttft_range_ms=_range(estimate.ttft, 1e6),
        ttft_at_once_ms=estimate.at_once_ttft_ns / 1e6,
        tpot_range_ms=_range(estimate.tpot, 1e6),
        tokens_per_s_range=_range(estimate.tokens, 1.0),
        **given,
    )


def _on_gpu(estimate: DeploymentEstimate) -> dict[str, Any]:
    """Return the fields of ``EstimateOnGpu`` that an ``EstimateLine`` lacks."""
    deployment, largest = estimate.deployment, estimate.largest
    known = largest is not None or estimate.memory.sequences is not None
    return {
        "model": deployment.architecture.name,
        "gpu": deployment.gpu.name,
        "layout": layout_name(deployment.parallel),
        "gpus": deployment.parallel.gpus,
        "isl": estimate.traffic.isl,
        "osl": estimate.traffic.osl,
        "max_num_batched_tokens": estimate.budget,
        "max_batch": largest.batch if largest else estimate.memory.sequences,
        "max_batch_limited_by": (largest.limited_by if largest else "memory") if known else None,
        "prefill_ms": estimate.prefill_ns / 1e6,
        "decode_step_ms": estimate.step_ns / 1e6,
        "compute_bound_share": estimate.decode_compute_share,
        "prefill_compute_bound_share": estimate.prefill_compute_share,
        "memory": _memory(estimate.memory, estimate.traffic.concurrency),
        "ops": [*op_sums("decode", estimate.decode), *op_sums("prefill", estimate.prefill)],
        "switches": list(estimate.switches),
        "assumptions": list(estimate.assumptions),
    }


def _memory(memory: Memory, batch: int) -> EstimateMemory:
    return EstimateMemory(
        usable_bytes=memory.usable,
        weight_bytes=memory.weights,
        workspace_bytes=memory.workspace,
        kv_bytes_a_sequence=memory.kv_a_sequence,
        sequences=memory.sequences,
        weights_fit=memory.weights_fit,
        batch_fits=memory.holds(batch),
    )


def ratios(first: DeploymentEstimate, second: DeploymentEstimate) -> GpuRatios:
    """Return the second GPU's times and tokens/s over those of the first."""
    a, b = first.served, second.served
    return GpuRatios(
        decode_step=second.step_ns / first.step_ns,
        prefill=second.prefill_ns / first.prefill_ns,
        ttft=b.ttft_ns / a.ttft_ns,
        tpot=b.tpot_ns / a.tpot_ns if a.tpot_ns and b.tpot_ns else None,
        tokens_per_s=b.tokens_per_s / a.tokens_per_s,
    )


def _layouts(comparison: ParallelComparison) -> EstimateParallel:
    return EstimateParallel(
        link_gbps=list(comparison.gbps),
        batches=list(comparison.batches),
        layouts=[
            EstimateLayout(
                layout=one.name,
                gpus=one.parallel.gpus,
                refused=one.refused,
                results=[
                    part_of(LayoutAtLoad, served, link_gbps=rate, batch=batch, itl_ms=_ms(served.tpot_ns))
                    for (rate, batch), served in one.served.items()
                ],
            )
            for one in comparison.layouts
        ],
        ratios=list(comparison.ratios),
        orders=[
            LayoutOrder(link_gbps=rate, batch=batch, order=list(order))
            for (rate, batch), order in comparison.orders.items()
        ],
        order_depends_on_link=comparison.depends_on_link,
        notes=list(comparison.notes),
    )


def _calibration(calibration: Calibration) -> EstimateCalibration:
    efficiencies = calibration.efficiencies
    return part_of(
        EstimateCalibration,
        calibration,
        slowness=calibration.line.slowness if calibration.line else None,
        step_ms=efficiencies.step_ns / 1e6,
        kernel_us=us(efficiencies.kernel_ns),
        shares={name: part_of(AchievedShare, share) for name, share in efficiencies.shares.items()},
        points=[_point(point) for point in calibration.points],
        not_calibrated=list(calibration.kept),
    )


def _point(point: CalibrationPoint) -> FittedLoad:
    seen = point.observed
    return part_of(FittedLoad, point, batch=seen.concurrency, isl=seen.isl, osl=seen.osl, tpot_ms=seen.tpot_ns / 1e6)


def gigabytes(size: float | None) -> str:
    """A size for people, in GB or MB."""
    return "unknown" if size is None else f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e6


def _range(span: ErrorRange | None, unit: float) -> tuple[float, float] | None:
    return None if span is None else (span.low / unit, span.high / unit)
