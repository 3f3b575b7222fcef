"""A tuning plan as a JSON document and as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import fill
from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.plan.candidates import LEAST_WORTH, PlanCandidate
from traceanalyzer.commands.tune.plan.compute import Plan, PlannedTarget
from traceanalyzer.commands.tune.plan.result import (
    ExpertsHit,
    NotTuned,
    PlannedKernel,
    TunePlanDocument,
    TuningTarget,
)
from traceanalyzer.declare import part_of
from traceanalyzer.names import short_name
from traceanalyzer.names.kernel_text import tile_text
from traceanalyzer.show.terminal import NARROWEST_NAME, table
from traceanalyzer.wording import duration, percent, us, visible

NAME_WIDTH = 76
"""Characters of a kernel's name in a line of text: its role and time fit beside it in 100 columns."""
UNIT = re.compile(r"(?<=\d) (?=(?:s|ms|µs|ns|%)(?:\W|$))")
UNBROKEN = "\u00a0"
"""Stands between a figure and its unit while lines are broken, and is not printed."""


def document(plan: Plan, commands: Sequence[str]) -> TunePlanDocument:
    """Return the JSON document of ``tune plan``, with the commands to run next."""
    roof = plan.roofline
    return part_of(
        TunePlanDocument,
        roof,
        target=_target(plan.target) if plan.target else None,
        reason=plan.reason,
        refused=[
            part_of(NotTuned, one, kernel=one.kernel.name, worth_us_per_step=us(one.worth_ns)) for one in plan.refused
        ],
        candidates=[part_of(PlannedKernel, one, **_kernel(one)) for one in plan.others],
        next=list(commands),
        model=roof.model.name if roof.model else None,
        gpu=roof.ceilings.gpu.name if roof.ceilings else None,
        step_us=us(plan.period_ns),
        least_worth_percent=LEAST_WORTH * 100,
    )


def _kernel(one: PlanCandidate) -> dict[str, Any]:
    product = one.product
    return {
        "kernel": one.kernel.name,
        "n": product.n if product else None,
        "k": product.k if product else None,
        "tile": tile_text(one.kernel),
        "worth_us_per_step": us(one.worth_ns),
        "knob": one.kernel.knob,
    }


def _target(target: PlannedTarget) -> TuningTarget:
    one, product, cached = target.candidate, target.candidate.product, target.compiled
    executed_n, executed_k = target.executed or (None, None)
    return part_of(
        TuningTarget,
        one,
        **{**_kernel(one), "tile": _tile(target)},
        m=list(target.m),
        m_seen=list(product.m) if product else [],
        m_flips=list(target.m_flips),
        experts=product.experts if product else None,
        top_k=product.top_k if product else None,
        distinct_experts=[ExpertsHit(m=m, experts=hit) for m, hit in target.distinct],
        executed_n=executed_n,
        executed_k=executed_k,
        dtypes=target.dtypes,
        split_k=one.kernel.split_k,
        num_warps=target.num_warps,
        num_stages=one.kernel.stages or (cached.num_stages if cached else None),
        registers=cached.registers if cached else None,
        spills=cached.spills if cached else None,
        worth_reachable_us_per_step=us(one.reachable_ns),
        worth_tpot_percent=None if target.tpot_share is None else target.tpot_share * 100,
        measurable=target.bench is not None,
        not_measurable=target.not_measurable,
        basis=list(target.basis),
    )


def _tile(target: PlannedTarget) -> str | None:
    named, cached = tile_text(target.candidate.kernel), target.compiled
    if named is not None or cached is None:
        return named
    sides = (cached.block_m, cached.block_n, cached.block_k)
    return None if sides == (None, None, None) else "x".join("?" if side is None else str(side) for side in sides)


def render(plan: Plan, width: int) -> Group:
    """Return the plan for people: the target and what it saves, what to tune next, what cannot be tuned."""
    parts: list[Any] = [_broken(line, width, 0 if i == 0 else 2) for i, line in enumerate(_headline(plan))]
    parts[0].stylize("bold")
    if plan.target:
        parts += [_broken(line, width, 2) for line in _lines(plan.target)]
    if plan.others:
        parts += [Text(), Text("Then" if plan.target else "Known to be worth tuning", style="bold")]
        rows = [(one.kernel.name, one.role, duration(one.measured_ns), duration(one.worth_ns)) for one in plan.others]
        parts.append(table(("kernel", "role", "per step", "saves at most"), rows, name_column=0, width=width))
    if plan.refused:
        parts += [Text(), Text("Cannot be tuned, or not worth it", style="bold")]
        for reason in dict.fromkeys(one.reason or "" for one in plan.refused):
            members = [one for one in plan.refused if one.reason == reason]
            parts += [Text(f"  {_refused(one, width - 2)}") for one in members] + [_broken(reason, width, 4)]
    return Group(*parts)


def _broken(line: str, width: int, indent: int) -> Text:
    """Break a line at the width, every part of it indented, and no figure parted from its unit."""
    margin = " " * indent
    kept = UNIT.sub(UNBROKEN, visible(line))
    lines = fill(
        kept, width, initial_indent=margin, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False
    )
    return Text(lines.replace(UNBROKEN, " "))


def _headline(plan: Plan) -> list[str]:
    target = plan.target
    if target is None:
        return [f"No target: {plan.reason}"]
    one = target.candidate
    share = "" if target.tpot_share is None else f", {percent(target.tpot_share)} of TPOT"
    return [
        f"Tune {short_name(one.kernel.name, NAME_WIDTH)} ({' and '.join(one.roles)})",
        f"{duration(one.measured_ns)} per step in {one.count:,.0f} launches, floor {duration(one.floor_ns)}: "
        f"a better tile saves at most {duration(one.worth_ns)} per step{share}",
    ]


def _lines(target: PlannedTarget) -> list[str]:
    one, cached = target.candidate, target.compiled
    lines = [] if one.reachable_ns is None else [f"under the achievable roof {duration(one.reachable_ns)}"]
    lines += _product_lines(target)
    dtypes = " x ".join(name or "?" for name in (target.dtypes.activation, target.dtypes.weight))
    warps = "unknown" if target.num_warps is None else str(target.num_warps)
    spills = f", {cached.spills} registers spilled" if cached and cached.spills else ""
    lines.append(f"tile {_tile(target) or 'unknown'}, warps {warps}{spills}; {dtypes}")
    lines.append(f"tuned through {one.kernel.knob}")
    lines += [target.not_measurable] if target.not_measurable else []
    if target.bench and not target.bench.same_code:
        lines.append("tune run measures a kernel of this package that does the same work, not the one in the trace")
    return [*lines, *target.basis]


def _product_lines(target: PlannedTarget) -> list[str]:
    product, executed = target.candidate.product, target.executed
    if product is None:
        return []
    experts = f", {product.experts} experts here, {product.top_k} per token" if product.experts else ""
    padded = f" (run as {executed[0]} x {executed[1]})" if executed and executed != (product.n, product.k) else ""
    hit = dict(target.distinct)
    rows = [f"{m} ({hit[m]:.1f} experts hit)" if m in hit else str(m) for m in target.m]
    return [
        f"n = {product.n}, k = {product.k}{padded}{experts}",
        f"m = {', '.join(rows)}",
        *(f"m = {flip.m}: {flip.why}" for flip in target.m_flips),
    ]


def _refused(one: PlanCandidate, width: int) -> str:
    """A kernel that is not tuned, on one line. Shortened names can look the same: role and tile come first."""
    tile = tile_text(one.kernel)
    what = f"{one.role}, {duration(one.measured_ns)}{f', tile {tile}' if tile else ''}: "
    return what + short_name(visible(one.kernel.name), max(NARROWEST_NAME, min(NAME_WIDTH, width - len(what))))
