"""What a trace's roofline gives to an estimate: achieved shares by class, and what a faster hotspot brings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from traceanalyzer.commands.estimate.calibrate import Calibration, calibration
from traceanalyzer.commands.estimate.efficiencies import CLASSES, Efficiencies, EstimateError, Share
from traceanalyzer.commands.estimate.result import EstimateEffect, EstimatePrediction
from traceanalyzer.hardware import recognise
from traceanalyzer.problems import TraceWarning
from traceanalyzer.roofline import Assumption, Roofline, RooflineError, parse_assumption, what_if
from traceanalyzer.trace import Trace

LEAST_SHARE_TOLD = 0.01
"""A class with less of the step's time than this keeps its default; chosen, not fitted."""

CLASS_OF_ROLE = {
    "moe_gate_up": "experts",
    "moe_down": "experts",
    "attention": "attention",
    **dict.fromkeys(("qkv_proj", "o_proj", "router", "gate_up", "down", "lm_head"), "dense"),
    **dict.fromkeys(("norm", "rope", "kv_write", "moe_routing", "moe_combine", "activation"), "elementwise"),
    **dict.fromkeys(("quantize", "copy", "embedding", "sampler", "other"), "elementwise"),
}
"""Role -> class of op; communication has none."""

Work = tuple[float, float, float]
"""Measured time, kernels and floor of some work; times in ns per step."""


def calibrate(given: Efficiencies, roof: Roofline) -> Calibration:
    """Take achieved shares of the roofs, launch latency and the pause between steps from a trace's roofline.

    Rows that are limited by latency, not plausible, or redundant work tell no share. What the trace does not show keeps
    its default.

    Raises:
        EstimateError: no row tells a share.
    """
    work = _work(roof)
    if not work:
        raise EstimateError("the trace tells no share of a roof to calibrate with: see `traceanalyzer roofline`")
    kernel = roof.latency.ns if roof.latency.measured else given.kernel_ns
    shares, calibrated, kept = _shares(given, work, kernel)
    # Copies and redundant work are no part of the model, but of every step.
    unlisted = roof.copies_ns + sum(
        row.measured_ns for row in roof.rows if row.role != "communication" and (row.redundant or row.floor_ns is None)
    )
    # A trace of one step has no pause before it to measure.
    several = roof.steps > 1
    pause = max(roof.period_ns - roof.measured_ns - roof.copies_ns, 0.0) if several else given.step_ns
    step = pause + unlisted
    (calibrated if roof.latency.measured else kept).append(f"{kernel / 1000:.1f} µs per kernel")
    if unlisted:
        calibrated.append(f"{unlisted / 1e6:.2f} ms per step of work that the model does not have")
    (calibrated if several else kept).append(f"{(step - unlisted) / 1e6:.2f} ms per step for host and gaps")
    kept += ["the link", f"{given.request_ns / 1e6:g} ms before a request's first token"]
    basis = ("efficiencies from the trace, defaults where it does not tell them: see the calibration",)
    return calibration(Efficiencies(shares, kernel, step, given.request_ns, basis), calibrated, kept)


def _work(roof: Roofline) -> dict[tuple[str, str], list[Work]]:
    """Return the rows that tell a share, by class and by what limits them."""
    work: dict[tuple[str, str], list[Work]] = {}
    for row in roof.rows:
        name = CLASS_OF_ROLE.get(row.role)
        if name is None or row.bound not in ("compute", "memory") or not row.plausible or row.redundant:
            continue
        floor = row.compute_ns if row.bound == "compute" else row.memory_ns
        if floor is not None:
            work.setdefault((name, row.bound), []).append((row.measured_ns, row.count, floor))
    return work


def _shares(
    given: Efficiencies, work: dict[tuple[str, str], list[Work]], kernel_ns: float
) -> tuple[dict[str, Share], list[str], list[str]]:
    """Return the share of each class, and in words which are from the trace and which are defaults."""
    whole = sum(measured for rows in work.values() for measured, _, _ in rows)
    shares: dict[str, Share] = {}
    calibrated: list[str] = []
    kept: list[str] = []
    for name in CLASSES:
        reached = {}
        for bound, peak in (("compute", "arithmetic"), ("memory", "bandwidth")):
            share = _reached(work.get((name, bound), []), kernel_ns, whole)
            reached[bound] = getattr(given.shares[name], bound) if share is None else share
            (kept if share is None else calibrated).append(f"{name}: {reached[bound]:.0%} of peak {peak}")
        shares[name] = Share(**reached)
    return shares, calibrated, kept


def _reached(rows: Sequence[Work], kernel_ns: float, whole_ns: float) -> float | None:
    """Return the floor over the measured time, launch latency subtracted; None where there is too little work."""
    measured = sum(row[0] for row in rows)
    if not rows or measured < LEAST_SHARE_TOLD * whole_ns:
        return None
    floor = sum(row[2] for row in rows)
    working = measured - kernel_ns * sum(row[1] for row in rows)
    return min(floor / max(working, floor), 1.0) if floor > 0 else None


def unlike(trace: Trace, roof: Roofline) -> list[TraceWarning]:
    """Return warnings where a trace is of another GPU, or lacks the layers of the model, than its roofline assumes."""
    source = trace.metadata.source.path
    warnings = [
        TraceWarning(finding.code, finding.message, source)
        for finding in roof.findings
        if finding.code == "model_mismatch"
    ]
    stated = roof.device.gpu
    for device in sorted(roof.kernels["device"].drop_nulls().unique().to_list()):
        own = recognise(trace.metadata.device_properties, device).gpu
        if stated is not None and own is not None and own.name != stated.name:
            message = f"the trace was recorded on {own.name}, the estimate is for {stated.name}"
            return [*warnings, TraceWarning("gpu_mismatch", message, source)]
    return warnings


CHANGE = re.compile(r"\s*([a-z_]+)(?::([a-z0-9_+ ]+))?\s*=\s*([\d.]+)\s*:\s*([\d.]+)\s*")


@dataclass(frozen=True)
class MeasuredChange:
    """A measured change of the kernels of a role: time before and after, in any one unit."""

    role: str
    kind: str | None
    before: float
    after: float

    @property
    def label(self) -> str:
        """As the user writes it."""
        return f"{self.role}:{self.kind}" if self.kind else self.role


def parse_change(text: str) -> MeasuredChange:
    """Read ``role=before:after`` or ``role:kind=before:after``, times in any one unit; else raise EstimateError."""
    match = CHANGE.fullmatch(text)
    try:
        before, after = (float(match[3]), float(match[4])) if match else (0.0, 0.0)
    except ValueError:
        before = after = 0.0
    if not match or before <= 0 or after <= 0:
        raise EstimateError(f"write a measured change as role=before:after, such as moe_down=156.7:60.2, not {text!r}")
    return MeasuredChange(match[1], match[2], before, after)


def predict(roof: Roofline, to_share: Sequence[str], changes: Sequence[str]) -> EstimatePrediction:
    """Predict TPOT and tokens/s of a trace after hotspots reach a share of their roof, or get faster as measured.

    Args:
        roof: the trace's roofline.
        to_share: such as ``moe_down=0.6``.
        changes: such as ``moe_down=156.7:60.2``, measured before and after.

    Raises:
        EstimateError: an assumption cannot be read, names no known row, or names one twice.
    """
    effects = _effects(roof, to_share, changes)
    saved = sum(before - after for _, before, after in effects)
    if saved >= roof.period_ns:
        raise EstimateError("nothing would be left of the step: check the times given")
    # Steps that do not give each sequence one token have neither TPOT nor tokens/s.
    counts = roof.requests if roof.decode else None
    return EstimatePrediction(
        effects=[
            EstimateEffect(role=role, what=what, before_us=before / 1e3, after_us=after / 1e3)
            for (role, what), before, after in effects
        ],
        step_before_us=roof.span_ns / 1e3,
        step_after_us=(roof.span_ns - saved) / 1e3,
        tpot_before_ms=roof.period_ns / 1e6 if counts else None,
        tpot_after_ms=(roof.period_ns - saved) / 1e6 if counts else None,
        tokens_per_s_before=counts / roof.period_ns * 1e9 if counts else None,
        tokens_per_s_after=counts / (roof.period_ns - saved) * 1e9 if counts else None,
        basis=[
            "every microsecond saved shortens the step: kernels run one after another, and the host keeps up",
            "a mean over the trace's complete steps of this phase, profiler overhead included",
        ],
    )


Effect = tuple[tuple[str, str], float, float]
"""What gets faster and how, time per step before and after in ns."""


def _effects(roof: Roofline, to_share: Sequence[str], changes: Sequence[str]) -> list[Effect]:
    try:
        assumed = [parse_assumption(text) for text in to_share]
        told = what_if(roof, assumed).effects if assumed else ()
    except RooflineError as error:
        raise EstimateError(str(error)) from error
    parsed = [parse_change(text) for text in changes]
    effects: list[Effect] = [
        ((one.assumption.label, f"at {one.assumption.share:.0%} of its roof"), one.before_ns, one.after_ns)
        for one in told
    ]
    effects += [_changed(roof, change) for change in parsed]
    _refuse_twice([*assumed, *parsed])
    if not effects:
        raise EstimateError("say what gets faster: --to-share ROLE=SHARE or --change ROLE=BEFORE:AFTER")
    return effects


def _changed(roof: Roofline, change: MeasuredChange) -> Effect:
    rows = [row for row in roof.rows if row.role == change.role and change.kind in (None, row.kind)]
    if not rows:
        roles = sorted({row.role for row in roof.rows})
        raise EstimateError(f"{change.label} is not a role of the trace; there are {', '.join(roles)}")
    before = sum(row.measured_ns for row in rows)
    ratio = change.after / change.before
    return (change.label, f"measured {change.before:g} -> {change.after:g}"), before, before * ratio


def _refuse_twice(given: Sequence[Assumption | MeasuredChange]) -> None:
    for i, one in enumerate(given):
        for other in given[:i]:
            if one.role == other.role and (one.kind == other.kind or None in (one.kind, other.kind)):
                raise EstimateError(f"{one.label} is assumed twice")
