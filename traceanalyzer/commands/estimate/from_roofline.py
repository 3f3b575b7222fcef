"""What a trace's roofline gives to an estimate: achieved shares by class, and what a faster hotspot brings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from traceanalyzer.commands.estimate.calibrate import Calibration, ClassTime, from_trace
from traceanalyzer.commands.estimate.efficiencies import Efficiencies
from traceanalyzer.commands.estimate.estimate_error import EstimateError
from traceanalyzer.commands.estimate.result import EstimateEffect, EstimatePrediction
from traceanalyzer.declare import part_of
from traceanalyzer.roofline import Assumption, Roofline, RooflineError, parse_assumption, what_if

CLASS_OF_ROLE = {
    "moe_gate_up": "experts",
    "moe_down": "experts",
    "attention": "attention",
    **dict.fromkeys(("qkv_proj", "o_proj", "router", "gate_up", "down", "lm_head"), "dense"),
    **dict.fromkeys(("norm", "rope", "kv_write", "moe_routing", "moe_combine", "activation"), "elementwise"),
    **dict.fromkeys(("quantize", "copy", "embedding", "sampler", "other"), "elementwise"),
}
"""Role -> class of op; communication has none."""


def calibrate(given: Efficiencies, roof: Roofline) -> Calibration:
    """Take achieved shares of the roofs, launch latency and the pause between steps from a trace's roofline.

    Rows that are limited by latency, not plausible, or repeat work that need not be done, tell no share.

    Raises:
        EstimateError: no row tells a share.
    """
    rows = []
    for row in roof.rows:
        name = CLASS_OF_ROLE.get(row.role)
        if name is None or row.bound not in ("compute", "memory") or not row.plausible or row.redundant:
            continue
        floor = row.compute_ns if row.bound == "compute" else row.memory_ns
        if floor is not None:
            rows.append(ClassTime(name, row.bound, row.measured_ns, row.count, floor))
    if not rows:
        raise EstimateError("the trace tells no share of a roof to calibrate with: see `traceanalyzer roofline`")
    kernel = roof.latency.ns if roof.latency.measured else None
    unlisted = roof.copies_ns + sum(
        row.measured_ns for row in roof.rows if row.role != "communication" and (row.redundant or row.floor_ns is None)
    )
    # A trace of one step has no pause before it to measure.
    pause = max(roof.period_ns - roof.measured_ns - roof.copies_ns, 0.0) if roof.steps > 1 else None
    return from_trace(given, rows, kernel_ns=kernel, pause_ns=pause, unlisted_ns=unlisted)


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
    """Read ``role=before:after`` or ``role:kind=before:after``, times in any one unit.

    Raises:
        EstimateError: it is neither.
    """
    match = CHANGE.fullmatch(text)
    try:
        before, after = (float(match[3]), float(match[4])) if match else (0.0, 0.0)
    except ValueError:
        before = after = 0.0
    if not match or before <= 0 or after <= 0:
        raise EstimateError(f"write a measured change as role=before:after, such as moe_down=156.7:60.2, not {text!r}")
    return MeasuredChange(match[1], match[2], before, after)


@dataclass(frozen=True)
class HotspotEffect:
    """What one assumption or measured change does to a step; times in ns."""

    role: str
    what: str
    before_ns: float
    after_ns: float


def predict(roof: Roofline, to_share: Sequence[str], changes: Sequence[str]) -> EstimatePrediction:
    """Predict TPOT and tokens/s after hotspots reach a share of their roof, or after measured changes of a tile.

    Args:
        roof: the trace's roofline.
        to_share: such as ``moe_down=0.6``.
        changes: such as ``moe_down=156.7:60.2``, measured before and after.

    Raises:
        EstimateError: an assumption cannot be read, names no known row, or names one twice.
    """
    effects = _effects(roof, to_share, changes)
    saved = sum(effect.before_ns - effect.after_ns for effect in effects)
    if saved >= roof.period_ns:
        raise EstimateError("nothing would be left of the step: check the times given")
    # Steps that do not give each sequence one token have neither TPOT nor tokens/s.
    counts = roof.requests if roof.decode else None
    return EstimatePrediction(
        effects=[part_of(EstimateEffect, effect) for effect in effects],
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


def _effects(roof: Roofline, to_share: Sequence[str], changes: Sequence[str]) -> list[HotspotEffect]:
    try:
        assumed = [parse_assumption(text) for text in to_share]
        told = what_if(roof, assumed).effects if assumed else ()
    except RooflineError as error:
        raise EstimateError(str(error)) from error
    parsed = [parse_change(text) for text in changes]
    effects = [_reached(effect.assumption, effect.before_ns, effect.after_ns) for effect in told]
    effects += [_changed(roof, change) for change in parsed]
    _refuse_twice([*assumed, *parsed])
    if not effects:
        raise EstimateError("say what gets faster: --to-share ROLE=SHARE or --change ROLE=BEFORE:AFTER")
    return effects


def _reached(assumption: Assumption, before: float, after: float) -> HotspotEffect:
    return HotspotEffect(assumption.label, f"at {assumption.share:.0%} of its roof", before, after)


def _changed(roof: Roofline, change: MeasuredChange) -> HotspotEffect:
    rows = [row for row in roof.rows if row.role == change.role and change.kind in (None, row.kind)]
    if not rows:
        roles = sorted({row.role for row in roof.rows})
        raise EstimateError(f"{change.label} is not a role of the trace; there are {', '.join(roles)}")
    before = sum(row.measured_ns for row in rows)
    ratio = change.after / change.before
    return HotspotEffect(change.label, f"measured {change.before:g} -> {change.after:g}", before, before * ratio)


def _refuse_twice(given: Sequence[Assumption | MeasuredChange]) -> None:
    for i, one in enumerate(given):
        for other in given[:i]:
            if one.role == other.role and (one.kind == other.kind or None in (one.kind, other.kind)):
                raise EstimateError(f"{one.label} is assumed twice")
