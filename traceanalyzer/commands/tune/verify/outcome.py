"""What a change of tile brought end to end: two traces compared, and how much of the change is the tile's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import polars as pl
from msgspec import structs

from traceanalyzer.commands.diff.compute import Diff, change, diff
from traceanalyzer.commands.tune.verify.compute import SAME
from traceanalyzer.commands.tune.verify.result import Attribution, RetunedKernel, StepVerdict
from traceanalyzer.declare import part_of
from traceanalyzer.names import parse
from traceanalyzer.problems import TraceWarning
from traceanalyzer.segment import segment
from traceanalyzer.segment.selection import with_num_warps
from traceanalyzer.trace import Trace

FEWEST_STEPS = 3
"""Steps of a kind on either side without which nothing is said about noise. Chosen, not fitted."""

DEVIATIONS = 1.96
"""Standard errors of a 95 % interval, normal approximation."""

MOSTLY = 0.8
"""From this share of the step's change on, the change is called the tile's. Chosen, not fitted."""

LAUNCH = ("grid", "thread_block", "shared_memory")


@dataclass(frozen=True)
class TimeChange:
    """A mean before and after, in ns per step.

    Attributes:
        before_ns, after_ns: the means.
        half_interval_ns: half of the 95 % interval of their difference; None with too few steps.
    """

    before_ns: float
    after_ns: float
    half_interval_ns: float | None

    @property
    def delta_ns(self) -> float:
        """After less before."""
        return self.after_ns - self.before_ns

    @property
    def change_percent(self) -> float | None:
        """The difference over the mean before."""
        return self.delta_ns / self.before_ns * 100 if self.before_ns else None

    @property
    def verdict(self) -> StepVerdict:
        """``faster``, ``slower``, ``same`` (certainly within 1 %) or ``unclear``."""
        if self.half_interval_ns is None:
            return "unclear"
        if abs(self.delta_ns) + self.half_interval_ns < SAME * self.before_ns:
            return "same"
        if abs(self.delta_ns) <= self.half_interval_ns:
            return "unclear"
        return "faster" if self.delta_ns < 0 else "slower"


@dataclass(frozen=True, eq=False)
class TileOutcome:
    """What changed between two traces.

    Attributes:
        compared: the comparison it is based on.
        step: device time of a step.
        period: a step with the pause before it; None where no pause is known.
        tpot: whether ``period`` is the time of an output token: every step gives each sequence one.
        kernels: those that changed, the largest change first.
        tile: time of the kernels whose tile changed; None where none did.
        hidden: retunable kernels that take noticeably longer or shorter under the same name, which does not hold the
            tile: a configuration may be the reason.
        attribution: what explains the step's change:
            ``tile``: most of it is the tile's; ``partly``: some of it;
            ``other``: it has other reasons, or goes against the tile;
            ``hidden``: no tile visibly changed, and most of it is of ``hidden``;
            ``none``: no tile changed; ``unclear``: it drowns in noise, or there are too few steps.
        warnings: reservations about the comparison.
    """

    compared: Diff
    step: TimeChange
    period: TimeChange | None
    tpot: bool
    kernels: tuple[RetunedKernel, ...]
    tile: TimeChange | None
    hidden: tuple[RetunedKernel, ...]
    attribution: Attribution
    warnings: tuple[TraceWarning, ...]

    @property
    def rest_ns(self) -> float:
        """The step's change that is not the tile's."""
        return self.step.delta_ns - (self.tile.delta_ns if self.tile else 0.0)


def outcome(before: Trace, after: Trace, phase: str | None = None) -> TileOutcome:
    """Compare the steps that one rank's traces have in common, of one phase or of all, and tell the tile's share.

    Raises:
        TraceError: no phase occurs in both.
    """
    compared = diff(before, after, phase)
    changes = _changes(compared, before, after)
    steps = [_steps(trace, compared.matched) for trace in (before, after)]
    of_tile = [one for one in changes if one.tile]
    hidden = _hidden(compared, changes)
    sides = [
        _sums(trace, own, _named(of_tile, side))
        for trace, own, side in zip((before, after), steps, ("before", "after"), strict=True)
    ]
    step = _measured(*(own.with_columns(ns=pl.col("sum_ns")) for own in steps))
    tile = _measured(*sides) if of_tile else None
    known = [own.filter(pl.col("idle_before_ns").is_not_null()) for own in steps]
    whole = all(_keys(a).equals(_keys(b)) for a, b in zip(known, steps, strict=True))
    periods = [own.with_columns(ns=pl.col("span_ns") + pl.col("idle_before_ns")) for own in known]
    return TileOutcome(
        compared=compared,
        step=step,
        period=_measured(*periods) if whole else None,
        tpot=all(_one_token_each(own) for own in steps),
        kernels=tuple(changes),
        tile=tile,
        hidden=hidden,
        attribution=_attribution(step, tile) if tile else _without_tile(step, hidden),
        warnings=compared.warnings,
    )


def _named(changes: Sequence[RetunedKernel], side: str) -> set[tuple[str, str]]:
    """Role and name of the kernels that changed, as they were before or after."""
    return {(one.role or "other", name) for one in changes if (name := getattr(one, f"name_{side}"))}


def _without_tile(step: TimeChange, hidden: Sequence[RetunedKernel]) -> Attribution:
    share = 1e3 * sum(one.delta_us for one in hidden) / step.delta_ns if hidden and step.delta_ns else 0.0
    return "hidden" if share >= MOSTLY else "none"


def _attribution(step: TimeChange, tile: TimeChange) -> Attribution:
    if step.half_interval_ns is None or step.verdict in ("same", "unclear"):
        return "unclear"
    if tile.delta_ns * step.delta_ns <= 0:
        return "other"
    share = tile.delta_ns / step.delta_ns
    if MOSTLY <= share <= 2 - MOSTLY:
        return "tile"
    return "partly" if tile.verdict in ("faster", "slower") else "other"


def _steps(trace: Trace, matched: pl.DataFrame) -> pl.DataFrame:
    """The steps compared: STEP_SCHEMA, sum_ns, key (number of the row of ``matched``), weight (of the key)."""
    cut = segment(trace)
    sums = cut.events.group_by("device", "step").agg(sum_ns=pl.col("dur_ns").sum())
    on = ["phase", "requests"] if matched["requests"].null_count() < matched.height else ["phase"]
    keys = matched.with_row_index("key").with_columns(weight=pl.col("steps_before") / pl.col("steps_before").sum())
    return (
        cut.steps.filter("complete")
        .join(sums, on=["device", "step"], nulls_equal=True)
        .join(keys.select(*on, "key", "weight"), on=on, nulls_equal=True)
    )


def _keys(steps: pl.DataFrame) -> pl.Series:
    return steps["key"].unique().sort()


def _sums(trace: Trace, steps: pl.DataFrame, wanted: set[tuple[str, str]]) -> pl.DataFrame:
    """Add ns: time of the kernels wanted, by role and name, in each step."""
    chosen = pl.DataFrame(sorted(wanted), schema={"role": pl.String, "name": pl.String}, orient="row")
    events = segment(trace).events.with_columns(pl.col("name").cast(pl.String), pl.col("role").cast(pl.String))
    sums = (
        events.join(chosen, on=["role", "name"], how="semi").group_by("device", "step").agg(ns=pl.col("dur_ns").sum())
    )
    joined = steps.join(sums, on=["device", "step"], how="left", nulls_equal=True, maintain_order="left")
    return joined.with_columns(pl.col("ns").fill_null(0))


def _measured(before: pl.DataFrame, after: pl.DataFrame) -> TimeChange:
    """Weighted means of ns over the keys, with the error of their difference."""
    means, variance = [], 0.0
    enough = True
    for side in (before, after):
        of_key = side.group_by("key").agg(
            pl.col("weight").first(), mean=pl.col("ns").mean(), variance=pl.col("ns").var(), steps=pl.len()
        )
        means.append(float((of_key["mean"] * of_key["weight"]).sum()))
        enough = enough and bool((of_key["steps"] >= FEWEST_STEPS).all())
        variance += float((of_key["weight"] ** 2 * of_key["variance"].fill_null(0.0) / of_key["steps"]).sum())
    return TimeChange(means[0], means[1], DEVIATIONS * sqrt(variance) if enough else None)


def _one_token_each(steps: pl.DataFrame) -> bool:
    alike = (steps["tokens"] == steps["requests"]).fill_null(False).all()
    return bool(steps.height and alike and (steps["phase"] == "decode").all())


def _changes(compared: Diff, before: Trace, after: Trace) -> list[RetunedKernel]:
    launches = [_launches(trace) for trace in (before, after)]
    made = []
    for row in compared.rows.iter_rows(named=True):
        what, tile = _what(row["role"], row["name_before"], row["name_after"], launches)
        if what is not None:
            made.append(_retuned(row, what, tile=tile))
    return _with_split_helpers(made)


def _retuned(row: dict[str, Any], what: str, *, tile: bool) -> RetunedKernel:
    return part_of(RetunedKernel, row, role=row["role"] or "other", what=what, tile=tile)


def _hidden(compared: Diff, changes: Sequence[RetunedKernel]) -> tuple[RetunedKernel, ...]:
    """Retunable kernels without a tile in their name whose time changed by 1 % of the step and more."""
    seen = {(one.role, one.name_before, one.name_after) for one in changes}
    least = SAME * compared.before_step_ns
    return tuple(
        _retuned(row, "same name and launch, as far as the traces tell", tile=False)
        for row in compared.rows.filter(pl.col("delta_ns").abs() >= least).iter_rows(named=True)
        if row["name_before"]
        and row["name_after"]
        and (row["role"] or "other", row["name_before"], row["name_after"]) not in seen
        and _hides_its_tile(row["name_before"])
    )


def _hides_its_tile(name: str) -> bool:
    kernel = parse(name)
    return kernel.retunable and kernel.tile is None


_Launches = dict[tuple[str | None, str], dict[str, frozenset[str]]]


def _launches(trace: Trace) -> _Launches:
    """Role and name -> warps, grids, blocks and shared memory that its launches had; empty sets where unknown."""
    kernels = with_num_warps(trace, segment(trace).events.filter("is_kernel"))
    sets = kernels.group_by(pl.col("role").cast(pl.String), pl.col("name").cast(pl.String)).agg(
        pl.col(column).cast(pl.String).drop_nulls().unique() for column in ("num_warps", *LAUNCH)
    )
    return {
        (row["role"], row["name"]): {column: frozenset(row[column]) for column in ("num_warps", *LAUNCH)}
        for row in sets.iter_rows(named=True)
    }


def _what(
    role: str | None, name_before: str | None, name_after: str | None, launches: Sequence[_Launches]
) -> tuple[str | None, bool]:
    """What changed in words, and whether it is the tile (or how the same kernel is launched)."""
    if name_before is None or name_after is None:
        return ("added" if name_before is None else "removed"), False
    old, new = parse(name_before), parse(name_after)
    told = change(name_before, name_after)
    retuned = old.retunable and new.retunable and old.scheme == new.scheme
    differing = _launch_change(launches[0].get((role, name_before)), launches[1].get((role, name_after)))
    if told is None:
        return (differing, True) if retuned and differing else (None, False)
    sizes = (old.tile, old.split_k, old.num_warps) != (new.tile, new.split_k, new.num_warps)
    extra = f", {differing}" if retuned and differing and differing.startswith("warps") else ""
    return told + extra, retuned and (sizes or bool(differing))


def _launch_change(before: dict[str, frozenset[str]] | None, after: dict[str, frozenset[str]] | None) -> str | None:
    """The first way in which launches differ, warps before the rest; None where none is known to."""
    if before is None or after is None:
        return None
    words = {"num_warps": "warps", "grid": "grid", "thread_block": "block", "shared_memory": "shared memory"}
    for column, word in words.items():
        old, new = before[column], after[column]
        if old and new and not old & new:
            return f"{word} {_some(old)} -> {_some(new)}"
    return None


def _some(values: frozenset[str]) -> str:
    return sorted(values)[0] if len(values) == 1 else f"{sorted(values)[0]} and others"


def _with_split_helpers(changes: list[RetunedKernel]) -> list[RetunedKernel]:
    """Count the kernels that add up the parts of a split as the tile's, where a tile's split changed."""

    def split(name: str | None) -> int | None:
        return parse(name).split_k if name else None

    if not any(one.tile and split(one.name_before) != split(one.name_after) for one in changes):
        return changes
    return [structs.replace(one, tile=True) if _helper(one) else one for one in changes]


def _helper(one: RetunedKernel) -> bool:
    return any(parse(name).kind == "gemm_helper" for name in (one.name_before, one.name_after) if name)
