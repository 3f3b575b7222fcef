"""A tuning plan as the contract's JSON and as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import fill
from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.plan.candidates import LEAST_WORTH, Candidate
from traceanalyzer.commands.tune.plan.compute import Plan, Target
from traceanalyzer.names import short_name
from traceanalyzer.names.kernel_text import tile_text
from traceanalyzer.show.terminal import NARROWEST_NAME, table
from traceanalyzer.wording import (
    duration,
    percent,
    us,
    visible,
)

SCHEMA = "traceanalyzer/tune-plan/1"
NAME_WIDTH = 76
UNIT = re.compile(r"(?<=\d) (?=(?:s|ms|µs|ns|%)(?:\W|$))")
UNBROKEN = "\u00a0"
"""Stands between a figure and its unit while lines are broken, and is not printed."""


def document(found: Plan, commands: Sequence[str]) -> dict[str, Any]:
    """Return the JSON document of ``tune plan``.

    Args:
        found: the plan.
        commands: what to run next.
    """
    roof = found.roofline
    return {
        "schema": SCHEMA,
        "target": _target(found.target) if found.target else None,
        "reason": found.reason,
        "refused": [
            {
                "kernel": one.candidate.kernel.name,
                "role": one.candidate.role,
                "measured_us": us(one.candidate.measured_ns),
                "worth_us_per_step": us(one.candidate.worth_ns),
                "reason": one.reason,
            }
            for one in found.refused
        ],
        "candidates": [_candidate(one) for one in found.others],
        "next": list(commands),
        "model": roof.model.name if roof.model else None,
        "model_source": roof.model_source,
        "gpu": roof.ceilings.gpu.name if roof.ceilings else None,
        "phase": roof.phase,
        "steps": roof.steps,
        "step_us": us(found.period_ns),
        "least_worth_percent": LEAST_WORTH * 100,
        "basis": list(roof.basis),
    }


def _candidate(one: Candidate) -> dict[str, Any]:
    product = one.product
    return {
        "kernel": one.kernel.name,
        "role": one.role,
        "roles": list(one.roles),
        "n": product.n if product else None,
        "k": product.k if product else None,
        "tile": tile_text(one.kernel),
        "measured_us": us(one.measured_ns),
        "floor_us": us(one.floor_ns),
        "worth_us_per_step": us(one.worth_ns),
        "knob": one.kernel.knob,
    }


def _target(target: Target) -> dict[str, Any]:
    one, product, cached = target.candidate, target.candidate.product, target.compiled
    return {
        **_candidate(one),
        "m": list(target.m),
        "m_seen": list(product.m) if product else [],
        "m_flips": [{"m": flip.m, "why": flip.why} for flip in target.flips],
        "experts": product.experts if product else None,
        "top_k": product.top_k if product else None,
        "distinct_experts": [{"m": m, "experts": hit} for m, hit in target.distinct],
        "executed_n": target.executed[0] if target.executed else None,
        "executed_k": target.executed[1] if target.executed else None,
        "dtypes": {
            "output": target.dtypes.output,
            "activation": target.dtypes.activation,
            "weight": target.dtypes.weight,
        },
        "tile": _tile(target),
        "split_k": one.kernel.split_k,
        "num_warps": target.num_warps,
        "num_stages": one.kernel.stages or (cached.num_stages if cached else None),
        "registers": cached.registers if cached else None,
        "spills": cached.spills if cached else None,
        "count": one.count,
        "bound": one.bound,
        "worth_reachable_us_per_step": us(one.reachable_ns),
        "worth_tpot_percent": None if target.tpot_share is None else target.tpot_share * 100,
        "measurable": target.bench is not None,
        "not_measurable": target.no_bench,
        "basis": list(target.notes),
    }


def _tile(target: Target) -> str | None:
    named, cached = tile_text(target.candidate.kernel), target.compiled
    if named is not None or cached is None:
        return named
    sides = (cached.block_m, cached.block_n, cached.block_k)
    return None if sides == (None, None, None) else "x".join("?" if side is None else str(side) for side in sides)


def render(found: Plan, width: int) -> Group:
    """Return the plan for people: the target and what it is worth, what comes then, what was refused."""
    parts: list[Any] = [_broken(line, width, 0 if i == 0 else 2) for i, line in enumerate(_headline(found))]
    parts[0].stylize("bold")
    if found.target:
        parts += [_broken(line, width, 2) for line in _lines(found.target)]
    if found.others:
        parts += [Text(), Text("Then" if found.target else "Known to be worth it", style="bold")]
        rows = [(one.kernel.name, one.role, duration(one.measured_ns), duration(one.worth_ns)) for one in found.others]
        parts.append(table(("kernel", "role", "a step", "worth at most"), rows, name_column=0, width=width))
    if found.refused:
        parts += [Text(), Text("Refused", style="bold")]
        for reason, members in _by_reason(found).items():
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


def _headline(found: Plan) -> list[str]:
    target = found.target
    if target is None:
        return [f"No target: {found.reason}"]
    one = target.candidate
    share = "" if target.tpot_share is None else f", {percent(target.tpot_share)} of TPOT"
    return [
        f"Tune {short_name(one.kernel.name, NAME_WIDTH)} ({' and '.join(one.roles)})",
        f"{duration(one.measured_ns)} a step in {one.count:,.0f} launches, at least {duration(one.floor_ns)}: "
        f"a win is worth at most {duration(one.worth_ns)} a step{share}",
    ]


def _lines(target: Target) -> list[str]:
    one, product, cached = target.candidate, target.candidate.product, target.compiled
    lines = []
    if one.reachable_ns is not None:
        lines.append(f"under the achievable roof {duration(one.reachable_ns)}")
    if product:
        experts = f", {product.experts} experts here, {product.top_k} a token" if product.experts else ""
        executed = target.executed
        padded = f" (run as {executed[0]} x {executed[1]})" if executed and executed != (product.n, product.k) else ""
        lines.append(f"n = {product.n}, k = {product.k}{padded}{experts}")
        hit = dict(target.distinct)
        rows = [f"{m} ({hit[m]:.1f} experts hit)" if m in hit else str(m) for m in target.m]
        lines.append(f"m = {', '.join(rows)}")
        lines += [f"m = {flip.m}: {flip.why}" for flip in target.flips]
    dtypes = " x ".join(name or "?" for name in (target.dtypes.activation, target.dtypes.weight))
    warps = "unknown" if target.num_warps is None else str(target.num_warps)
    spills = f", {cached.spills} registers spilled" if cached and cached.spills else ""
    lines.append(f"tile {_tile(target) or 'unknown'}, warps {warps}{spills}; {dtypes}")
    lines.append(f"changed through {one.kernel.knob}")
    lines += [target.no_bench] if target.no_bench else []
    if target.bench and not target.bench.same_code:
        lines.append("tune run measures a kernel of this package that does the same work, not the one of the trace")
    return [*lines, *target.notes]


def _by_reason(found: Plan) -> dict[str, list[Candidate]]:
    told: dict[str, list[Candidate]] = {}
    for refusal in found.refused:
        told.setdefault(refusal.reason, []).append(refusal.candidate)
    return told


def _refused(one: Candidate, width: int) -> str:
    """A refused kernel on one line. Names that were cut can be alike: role and tile come first."""
    tile = tile_text(one.kernel)
    what = f"{one.role}, {duration(one.measured_ns)}{f', tile {tile}' if tile else ''}: "
    return what + short_name(visible(one.kernel.name), max(NARROWEST_NAME, min(NAME_WIDTH, width - len(what))))
