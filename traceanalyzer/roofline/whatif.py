"""What a step would take if work reached a given share of its roof."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from traceanalyzer.roofline.roofline_result import Roofline, RooflineError, Row


@dataclass(frozen=True)
class Assumption:
    """A role (of one block kind, or of all) that reaches this share of its peak roof."""

    role: str
    kind: str | None
    share: float

    @property
    def label(self) -> str:
        """As the user writes it."""
        return f"{self.role}:{self.kind}" if self.kind else self.role


@dataclass(frozen=True)
class AssumedEffect:
    """What one assumption changes; times in ns per step."""

    assumption: Assumption
    before_ns: float
    after_ns: float
    share_before: float


@dataclass(frozen=True)
class WhatIf:
    """A step under assumptions. Times in ns.

    Attributes:
        effects: what each assumption changes.
        step_before_ns: span of the step as measured.
        step_after_ns: less what the assumptions save.
        tpot_before_ns: time per output token as measured: the step and the pause before it; None unless every step
            generates one token per sequence.
        tpot_after_ns: the same under the assumptions.
        tokens_before: tokens per second of all sequences; None likewise.
        tokens_after: the same under the assumptions.
    """

    effects: tuple[AssumedEffect, ...]
    step_before_ns: float
    step_after_ns: float
    tpot_before_ns: float | None = None
    tpot_after_ns: float | None = None
    tokens_before: float | None = None
    tokens_after: float | None = None


def parse_assumption(text: str) -> Assumption:
    """Read ``role=share`` or ``role:kind=share``; the share may be a fraction of 1 or in percent.

    Raises:
        RooflineError: it is neither.
    """
    read = re.fullmatch(r"\s*([a-z_]+)(?::([a-z0-9_+ ]+))?\s*=\s*(\d+(?:\.\d+)?|\.\d+)\s*(%?)\s*", text)
    share = float(read[3]) / (100 if read[4] else 1) if read else 0.0
    if not read or not 0 < share <= 1:
        raise RooflineError(
            f"write what to assume as role=share with a share of up to 1, such as moe_down=0.8, not {text!r}"
        )
    return Assumption(read[1], read[2], share)


def what_if(result: Roofline, assumptions: Sequence[Assumption]) -> WhatIf:
    """Return the step under assumptions: each row takes its floor over the share, but no less than its launches.

    Every microsecond saved is taken to shorten the step, as kernels of a step run one after another.

    Raises:
        RooflineError: no row of that role has a known floor, or two assumptions are of one row.
    """
    taken: set[int] = set()
    effects = []
    for assumption in assumptions:
        rows = _rows(result, assumption)
        if taken & {id(row) for row in rows}:
            raise RooflineError(f"{assumption.label} is assumed twice")
        taken |= {id(row) for row in rows}
        effects.append(_effect(assumption, rows))
    saved = sum(effect.before_ns - effect.after_ns for effect in effects)
    step = WhatIf(tuple(effects), result.span_ns, result.span_ns - saved)
    if not (result.decode and result.requests):
        return step
    before, after = result.period_ns, result.period_ns - saved
    return replace(
        step,
        tpot_before_ns=before,
        tpot_after_ns=after,
        tokens_before=result.requests / before * 1e9,
        tokens_after=result.requests / after * 1e9 if after > 0 else None,
    )


def _effect(assumption: Assumption, rows: Sequence[Row]) -> AssumedEffect:
    before = sum(row.measured_ns for row in rows)
    floor = sum(row.floor_ns or 0.0 for row in rows)
    after = sum(max((row.floor_ns or 0.0) / assumption.share, row.latency_ns) for row in rows)
    return AssumedEffect(assumption, before, after, floor / before)


def _rows(result: Roofline, assumption: Assumption) -> list[Row]:
    own = [row for row in result.rows if row.role == assumption.role and assumption.kind in (None, row.kind)]
    known = [row for row in own if row.floor_ns is not None and row.plausible and not row.redundant]
    if known:
        return known
    possible = sorted({row.role for row in result.rows if row.floor_ns is not None and row.plausible})
    others = f"roles with a known floor are {', '.join(possible)}" if possible else "pass --model and --gpu for floors"
    why = "has no known and plausible floor" if own else "is not among the rows"
    raise RooflineError(f"{assumption.label} {why}; {others}")
