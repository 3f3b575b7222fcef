"""Findings in words: where the time above the roofs is, what is not plausible, and what to pass to know more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from traceanalyzer.findings import NO_TARGET, Finding
from traceanalyzer.roofline.roofline_result import Roofline, Row
from traceanalyzer.segment.opening import KEEP_BUSY, is_idle
from traceanalyzer.wording import duration, us

LEAST_SHARE = 0.02
"""Share of the kernel time that headroom, launches or unknown work must have to be worth a sentence. Chosen."""

ENOUGH_EXPLAINED = 0.5
"""Below this share of explained time no target is named. Chosen, not fitted."""

MOST_IMPLAUSIBLE = 0.1
"""Share of the kernel time in implausible rows above which no target is named. Chosen, not fitted."""

CLOSE = 0.9
"""A row that reaches this share of its achievable roof is as good as done. Chosen, not fitted."""

CAUSES = (
    "the shape is not what ran (wrong model, parallel layout or workload), the GPU is another one, fewer experts were "
    "hit than expected, or the data came from a cache"
)


def with_findings(result: Roofline, more: Sequence[Finding], first: Sequence[Finding] = ()) -> Roofline:
    """Return the result with its findings, those that are worth most first; the last one names the target and why.

    Args:
        result: the rows and what they come to.
        more: findings that others made.
        first: what to know before any of them; a trace that is no inference gets no others.
    """
    if any(finding.code == "workload" for finding in first):
        return replace(result, findings=tuple(first))
    findings = [
        *more,
        *_redundant(result),
        *_far_from_roof(result),
        *_launches(result),
        *_implausible(result),
        *_unknown(result),
    ]
    findings.sort(key=lambda finding: (finding.worth_us is None, -(finding.worth_us or 0.0)))
    target = _target(result)
    if is_idle(first):
        kernels = "Kernels come after that." if target.message.startswith(NO_TARGET) else f"Then: {target.message}"
        target = Finding("target", f"{KEEP_BUSY} {kernels}")
    return replace(result, findings=(*first, *findings, target))


def _pct(share: float) -> str:
    return f"{share * 100:.1f} %"


def _is_worth_it(row: Row, result: Roofline) -> bool:
    return (row.headroom_ns or 0.0) >= LEAST_SHARE * result.measured_ns


def _is_done(row: Row) -> bool:
    return not row.redundant and row.reachable_ns is not None and row.reachable_ns >= CLOSE * row.measured_ns


def _redundant(result: Roofline) -> list[Finding]:
    return [
        Finding(
            "repeated_work",
            f"{row.names[0]} runs {row.count:.0f} times per step to cast the rotary table, which is the same in every "
            f"block: {duration(row.measured_ns)} per step can be saved.",
            us(row.measured_ns),
        )
        for row in result.rows
        if row.redundant
    ]


def _far_from_roof(result: Roofline) -> list[Finding]:
    return [
        Finding("headroom", _headroom_text(row, result), us(row.headroom_ns))
        for row in result.rows
        if row.bound in ("memory", "compute", "communication") and _is_worth_it(row, result) and not row.redundant
    ]


def _headroom_text(row: Row, result: Roofline) -> str:
    share, headroom = row.roof_share or 0.0, row.headroom_ns or 0.0
    roof = {"memory": "memory", "compute": "arithmetic", "communication": "link"}[row.bound]
    reachable = row.reachable_headroom_ns
    realistic = f", {duration(reachable)} of it under the achievable roof" if reachable is not None else ""
    return (
        f"{row.label} reaches {_pct(share)} of its {roof} roof: {duration(row.measured_ns)} measured, "
        f"{duration(row.floor_ns or 0.0)} at minimum. At most {duration(headroom)} per step "
        f"({_pct(headroom / result.measured_ns)}) can be saved{realistic}."
    )


def _launches(result: Roofline) -> list[Finding]:
    return [
        Finding("launches", _launches_text(row), us(row.headroom_ns))
        for row in result.rows
        if row.bound == "latency" and row.measured_ns >= LEAST_SHARE * result.measured_ns
    ]


def _launches_text(row: Row) -> str:
    lead = f"{row.label}: {row.count:.0f} kernels of {duration(row.measured_ns / row.count)} with next to no work."
    fused = f"saves up to {duration(row.measured_ns)} per step"
    if row.headroom_ns is None:
        return f"{lead} Fusing them away {fused}."
    return f"{lead} A faster kernel saves at most {duration(row.headroom_ns)}; fusing them away {fused}."


def _implausible(result: Roofline) -> list[Finding]:
    return [
        Finding(
            "implausible",
            f"{row.label}: {duration(row.measured_ns)} measured is less than the floor of "
            f"{duration(row.floor_ns or 0.0)} ({_pct(row.roof_share or 0.0)} of the {row.bound} roof), which cannot "
            f"be. Likely causes: {CAUSES}.",
        )
        for row in result.rows
        if not row.plausible
    ]


def _unknown(result: Roofline) -> list[Finding]:
    unknown = [row for row in result.rows if row.bound == "unknown"]
    time = sum(row.measured_ns for row in unknown)
    if not unknown or time < LEAST_SHARE * result.measured_ns:
        return []
    reasons: dict[str, float] = {}
    for row in unknown:
        reason = row.basis[-1] if row.basis else "no reason known"
        reasons[reason] = reasons.get(reason, 0.0) + row.measured_ns
    most = sorted(reasons.items(), key=lambda item: -item[1])[:3]
    told = "; ".join(f"{duration(ns)}: {reason}" for reason, ns in most)
    return [
        Finding("unknown", f"What limits {_pct(time / result.measured_ns)} of the kernel time is unknown ({told}).")
    ]


def _target(result: Roofline) -> Finding:
    return Finding("target", _target_text(result))


def _target_text(result: Roofline) -> str:
    if result.kernels.is_empty():
        return f"{NO_TARGET} the trace holds no kernels."
    ranked = sorted(
        (row for row in result.rows if row.headroom_ns is not None and row.bound in ("memory", "compute", "latency")),
        key=lambda row: -(row.headroom_ns or 0.0),
    )
    if not ranked or not ranked[0].headroom_ns or result.explained_share < ENOUGH_EXPLAINED:
        text = f"{NO_TARGET} the roofline is unknown for {_pct(1 - result.explained_share)} of kernel time."
        return f"{text} {_what_to_pass(result)}".strip()
    impossible = sum(row.measured_ns for row in result.rows if not row.plausible)
    if impossible > MOST_IMPLAUSIBLE * result.measured_ns:
        text = f"{_pct(impossible / result.measured_ns)} of the kernel time is below its floor, which cannot be"
        return f"Clear that up first: {text}. Likely causes: {CAUSES}."
    far = [row for row in ranked if not _is_done(row) and _is_worth_it(row, result)]
    if not far:
        largest = f"{duration(ranked[0].headroom_ns)} per step, in {ranked[0].label}"
        return (
            f"No kernel is far from its roof: the largest headroom is {largest}. "
            "Less work (smaller weights, fewer bytes of KV cache) or larger batches are what is left."
        )
    return _attack(far, result)


def _attack(far: Sequence[Row], result: Roofline) -> str:
    """Say which row to attack, why, and the next two; ``far`` has most headroom first."""
    top = far[0]
    headroom, share = top.headroom_ns or 0.0, _pct(top.roof_share or 0.0)
    lead = f"Attack {top.label} first"
    if top.redundant:
        return f"{lead}: all of its {duration(headroom)} per step can be saved."
    why = {
        "memory": f"it moves its bytes at {share} of peak bandwidth",
        "compute": f"it computes at {share} of the peak",
        "latency": "it does next to no work for its time",
    }[top.bound]
    others = [f"{row.label} ({duration(row.headroom_ns or 0.0)})" for row in far[1:3]]
    then = f" Then {' and '.join(others)}." if others else ""
    above = f"{duration(headroom)} per step ({_pct(headroom / result.measured_ns)}) lie above its floor"
    return f"{lead}: {why}; {above}.{then}"


def _what_to_pass(result: Roofline) -> str:
    if result.kernels["device"].null_count() == result.kernels.height:
        return "The trace has CPU ops only: record GPU activity (ProfilerActivity.CUDA)."
    missing = []
    if result.model is None:
        missing.append("--model NAME or config.json")
    if result.ceilings is None:
        missing.append("--gpu NAME (traceanalyzer gpus lists them)")
    return f"Pass {' and '.join(missing)}." if missing else ""
