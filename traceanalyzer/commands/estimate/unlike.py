"""Whether a trace or results that an estimate is calibrated with can be of that model and GPU."""

from __future__ import annotations

from traceanalyzer.commands.estimate.calibrate import Calibration
from traceanalyzer.commands.estimate.validation import TPOT_RANGE
from traceanalyzer.hardware import recognise
from traceanalyzer.problems import TraceWarning
from traceanalyzer.roofline import Roofline
from traceanalyzer.trace import Trace


def unlike(trace: Trace, roof: Roofline) -> list[TraceWarning]:
    """Say where a trace was recorded on another GPU, or does not have the model's layers.

    Args:
        trace: the trace.
        roof: its roofline under the model and GPU of the estimate.
    """
    source = trace.metadata.source.path
    told = [
        TraceWarning(finding.code, finding.message, source)
        for finding in roof.findings
        if finding.code == "model_mismatch"
    ]
    stated = roof.device.gpu
    for device in sorted(roof.kernels["device"].drop_nulls().unique().to_list()):
        own = recognise(trace.metadata.device_properties, device).gpu
        if stated is not None and own is not None and own.name != stated.name:
            message = f"the trace was recorded on {own.name}, the estimate is for {stated.name}"
            told.append(TraceWarning("gpu_mismatch", message, source))
            break
    return told


def far_off(fitted: Calibration) -> list[TraceWarning]:
    """Say where a fit misses what it was fitted to by more than uncalibrated estimates were ever off."""
    low, high = TPOT_RANGE
    missed = [ratio for ratio in fitted.in_sample_ratios if not low <= ratio <= high]
    if not missed:
        return []
    worst = max(missed, key=lambda ratio: max(ratio, 1 / ratio))
    message = (
        f"measured TPOT is {worst:.2f} times the fitted one: the results are hardly of this model, GPU and layout, "
        f"or something beside the kernels sets it"
    )
    return [TraceWarning("calibration_far_off", message, count=len(missed))]
