"""Findings in words: where the time above the roofs is, what is not plausible, and what to pass to know more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from traceanalyzer.findings import Finding
from traceanalyzer.roofline.roofline_result import Roofline, Row
from traceanalyzer.wording import duration

LEAST_SHARE = 0.02
"""Share of the kernel time that headroom, launches or unknown work must have to be worth a sentence."""

ENOUGH_EXPLAINED = 0.5
"""Below this share of explained time nothing is said to be the first to attack."""

MOST_IMPLAUSIBLE = 0.1
"""Share of the kernel time in rows that are not plausible above which nothing is said to be the first to attack."""

CLOSE = 0.9
"""A row that reaches this share of its achievable roof is as good as done."""

CAUSES = (
    "the shape is not what ran (wrong model, parallel layout or workload), the GPU is another one, fewer experts were "
    "hit than expected, or the data came from a cache"
)


def findings_of(result: Roofline, more: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings, those that are worth most first; the last one says what to attack and why.

    Args:
        result: the rows and what they come to.
        more: findings that others made.
    """
    found = [
        *more,
        *_redundant(result),
        *_far_from_roof(result),
        *_launches(result),
        *_implausible(result),
        *_unknown(result),
    ]
    ordered = sorted(found, key=lambda finding: (finding.worth_ns is None, -(finding.worth_ns or 0.0)))
    return (*ordered, _target(result))


def _pct(share: float) -> str:
    return f"{share * 100:.1f} %"


def _worth(row: Row, result: Roofline) -> bool:
    return (row.headroom_ns or 0.0) >= LEAST_SHARE * result.measured_ns


def _as_good_as_done(row: Row) -> bool:
    return not row.redundant and row.reachable_ns is not None and row.reachable_ns >= CLOSE * row.measured_ns


def _redundant(result: Roofline) -> list[Finding]:
    return [
        Finding(
            "repeated_work",
            f"{row.names[0]} runs {row.count:.0f} times a step to cast the rotary table, which is the same in every "
            f"block: {duration(row.measured_ns)} a step need not be spent.",
            row.measured_ns,
        )
        for row in result.rows
        if row.redundant
    ]


def _far_from_roof(result: Roofline) -> list[Finding]:
    return [
        Finding("headroom", _headroom_text(row, result), row.headroom_ns)
        for row in result.rows
        if row.bound in ("memory", "compute", "communication") and _worth(row, result) and not row.redundant
    ]


def _headroom_text(row: Row, result: Roofline) -> str:
    share, headroom = row.roof_share or 0.0, row.headroom_ns or 0.0
    roof = {"memory": "memory", "compute": "arithmetic", "communication": "link"}[row.bound]
    reachable = row.reachable_headroom_ns
    realistic = f", {duration(reachable)} of it under the achievable roof" if reachable is not None else ""
    return (
        f"{row.label} reaches {_pct(share)} of its {roof} roof: {duration(row.measured_ns)} measured, "
        f"{duration(row.floor_ns or 0.0)} at the least. At most {duration(headroom)} a step "
        f"({_pct(headroom / result.measured_ns)}) can be won{realistic}."
    )


def _launches(result: Roofline) -> list[Finding]:
    def faster(row: Row) -> str:
        return "" if row.headroom_ns is None else f"A faster kernel can win {duration(row.headroom_ns)} at most, and "

    return [
        Finding(
            "launches",
            f"{row.label}: {row.count:.0f} kernels of {duration(row.measured_ns / row.count)} with next to no work. "
            f"{faster(row)}fusing them away up to {duration(row.measured_ns)} a step.".replace(". fusing", ". Fusing"),
            row.headroom_ns,
        )
        for row in result.rows
        if row.bound == "latency" and row.measured_ns >= LEAST_SHARE * result.measured_ns
    ]


def _implausible(result: Roofline) -> list[Finding]:
    return [
        Finding(
            "implausible",
            f"{row.label}: {duration(row.measured_ns)} measured is less than the floor of "
            f"{duration(row.floor_ns or 0.0)} ({_pct(row.roof_share or 0.0)} of the {row.bound} roof), which cannot "
            f"be. Likely causes: {CAUSES}.",
            None,
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
    share = _pct(time / result.measured_ns)
    return [Finding("unknown", f"The bound of {share} of the kernel time is unknown ({told}).", None)]


def _target(result: Roofline) -> Finding:
    ranked = sorted(
        (row for row in result.rows if row.headroom_ns is not None and row.bound in ("memory", "compute", "latency")),
        key=lambda row: -(row.headroom_ns or 0.0),
    )
    if not ranked or not ranked[0].headroom_ns or result.explained_share < ENOUGH_EXPLAINED:
        unknown = _pct(1 - result.explained_share)
        text = f"What to attack is not known, as the bound of {unknown} of the kernel time is not."
        return Finding("target", f"{text} {_what_to_pass(result)}".strip(), None)
    impossible = sum(row.measured_ns for row in result.rows if not row.plausible)
    if impossible > MOST_IMPLAUSIBLE * result.measured_ns:
        text = f"{_pct(impossible / result.measured_ns)} of the kernel time is below its floor, which cannot be"
        return Finding("target", f"Clear that up first: {text}. Likely causes: {CAUSES}.", None)
    far = [row for row in ranked if not _as_good_as_done(row) and _worth(row, result)]
    if not far:
        largest = f"{duration(ranked[0].headroom_ns)} a step, in {ranked[0].label}"
        return Finding(
            "target",
            f"No kernel is far from its roof: the largest headroom is {largest}. "
            "Less work (smaller weights, fewer bytes of KV cache) or larger batches are what is left.",
            None,
        )
    top = far[0]
    headroom = top.headroom_ns or 0.0
    lead = f"Attack {top.label} first"
    if top.redundant:
        return Finding("target", f"{lead}: its {duration(headroom)} a step need not be spent at all.", None)
    why = {
        "memory": f"it moves its bytes at {_pct(top.roof_share or 0.0)} of peak bandwidth",
        "compute": f"it computes at {_pct(top.roof_share or 0.0)} of the peak",
        "latency": "it does next to no work for its time",
    }[top.bound]
    others = [f"{row.label} ({duration(row.headroom_ns or 0.0)})" for row in far[1:3]]
    then = f" Then {' and '.join(others)}." if others else ""
    above = f"{duration(headroom)} a step ({_pct(headroom / result.measured_ns)}) lie above its floor"
    return Finding("target", f"{lead}: {why}, and {above}.{then}", None)


def _what_to_pass(result: Roofline) -> str:
    if result.kernels["device"].null_count() == result.kernels.height:
        return "The trace has CPU ops only: record GPU activity (ProfilerActivity.CUDA)."
    missing = []
    if result.model is None:
        missing.append("--model NAME or config.json")
    if result.ceilings is None:
        missing.append("--gpu NAME (traceanalyzer gpus lists them)")
    return f"Pass {' and '.join(missing)}." if missing else ""


def with_findings(result: Roofline, more: Sequence[Finding]) -> Roofline:
    """Return the result with its findings."""
    return replace(result, findings=findings_of(result, more))
