"""The comparison in words: where the ranks lose time to each other, through which kernel, and what that is worth."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise

import polars as pl

from traceanalyzer.commands.ranks.compute import RankComparison
from traceanalyzer.commands.ranks.job_layout import AXES, JobLayout
from traceanalyzer.commands.ranks.result import RankFinding
from traceanalyzer.names import short_name
from traceanalyzer.wording import duration, us

NOTABLE_SHARE = 0.01
"""Shares of a step below this are not worth a sentence; chosen, not fitted."""

STANDS_OUT = 0.6
"""Share of the waiting that one rank must cause to be called the late one; chosen, not fitted."""

LONGEST_NAME = 80
"""Characters of a kernel's name in a sentence."""


def findings(comparison: RankComparison) -> tuple[RankFinding, ...]:
    """Say what limits a comparison, then what it shows, the largest worth first."""
    parts = (_communication, _pipeline, _experts, _dummies)
    shown = [finding for part in parts for finding in part(comparison)]
    return (*_limits(comparison), *sorted(shown, key=lambda finding: -(finding.worth_us or 0)))


def _limits(comparison: RankComparison) -> Iterator[RankFinding]:
    """Yield what keeps the comparison from telling more."""
    several = len(comparison.members) > 1
    missing = comparison.membership.missing
    if missing:
        message = f"{_named(list(missing))} {'is' if len(missing) == 1 else 'are'} missing"
        if several:
            message += ": transfer and waiting are those of the other ranks only, and the late rank may be missing"
        yield RankFinding("missing_ranks", message)
    if not several:
        message = "there is a trace of one rank only: its communication cannot be split into transfer and waiting"
        yield RankFinding("single_rank", message)
    if several and comparison.per_step["steps"].sum() == 0:
        yield RankFinding("no_steps", "no complete step: shares of a step are unknown")
    yield from _unequal(comparison)
    if several and not comparison.calls.height and not comparison.unpaired.height:
        yield RankFinding("no_communication", "no communication between these ranks was recorded")


def _unequal(comparison: RankComparison) -> Iterator[RankFinding]:
    """Ranks of one stage that run different numbers of layers: they are not replicas of each other."""
    if not comparison.layout.coordinates:
        return
    for (stage,), own in comparison.per_rank.drop_nulls("layers").group_by("stage", maintain_order=True):
        counts = own.group_by("layers").agg(pl.col("rank").sort()).sort("layers")
        if counts.height > 1:
            listed = ", ".join(f"{layers} on {_named(ranks)}" for layers, ranks in counts.iter_rows())
            where = f" of stage {stage}" if comparison.layout.size("pp") > 1 else ""
            message = f"the ranks{where} ran different numbers of layers ({listed}): other models, or other jobs"
            yield RankFinding("unequal_layers", message)


def _named(ranks: list[int]) -> str:
    named = ", ".join(map(str, ranks[:16])) + (f" and {len(ranks) - 16} more" if len(ranks) > 16 else "")
    return f"rank {named}" if len(ranks) == 1 else f"ranks {named}"


def axis_of(comparison: RankComparison, group: str) -> str | None:
    """Name the axis of the layout whose group this is: tp, pp, dp, ep; None where none fits."""
    ranks = tuple(json.loads(group))
    layout = comparison.layout
    if not layout.coordinates:
        return None
    basis = comparison.bases.get(group, "")
    order = sorted(("tp", "dp", "pp", "ep"), key=lambda axis: not basis.startswith(axis))
    for axis in order:
        groups = set(layout.groups(axis).values())
        if ranks in groups and (axis != "ep" or (layout.sizes.get("ep") or 0) > 1):
            return axis
    if any(abs(layout.coordinates[a]["pp"] - layout.coordinates[b]["pp"]) == 1 for a, b in pairwise(ranks)):
        return "pp"
    return None


def _communication(comparison: RankComparison) -> Iterator[RankFinding]:
    """One sentence per axis: share of the step, part that is waiting, the late rank and its kernel, and the savings."""
    calls = comparison.calls.filter("counts")
    if calls.is_empty() or comparison.per_step["span_ns"].sum() == 0:
        return
    axes = {group: axis_of(comparison, group) or "?" for group in calls["group"].unique().to_list()}
    labelled = calls.with_columns(axis=pl.col("group").cast(pl.String).replace_strict(axes, return_dtype=pl.String))
    for (axis,), own in labelled.filter(pl.col("axis") != "pp").group_by("axis", maintain_order=True):
        if (finding := _of_axis(comparison, str(axis), own)) is not None:
            yield finding


def _of_axis(comparison: RankComparison, axis: str, own: pl.DataFrame) -> RankFinding | None:
    # Steps whose calls could not be paired would thin out the shares.
    here = comparison.by_step.join(own, on=["rank", "step"], how="semi")
    span = float(here["span_ns"].sum())
    communicating = float(own["dur_ns"].sum())
    if not span or communicating / span < NOTABLE_SHARE:
        return None
    step_ns, steps = span / here.height, here.height / here["rank"].n_unique()
    visible = min(1.0, float(here["exposed_comm_ns"].sum()) / max(1.0, float(here["comm_ns"].sum())))
    share = communicating * visible / span
    waiting = float(own["wait_ns"].sum()) / communicating
    link = float(own["transfer_ns"].sum()) * visible / span
    size, at_hand = comparison.layout.sizes.get(axis), f"{len(json.loads(own['group'][0]))} ranks"
    label = at_hand if axis == "?" else f"{axis.upper()} {size}" if size else f"{axis.upper()} ({at_hand} at hand)"
    begun = f"{label}: {_percent(share)} of the step is communication"
    if _lacks_ranks(comparison, axis, own):
        # What the ranks at hand take alike may be waiting for one that is missing.
        message = (
            f"{begun}, at minimum {_percent(waiting)} of that waiting{_culprit(comparison, own, waiting)}; "
            f"a faster link saves at most {_percent(link)}"
        )
        return RankFinding("communication", message)
    longest = own.group_by("group", "call").agg(pl.col("wait_ns").max()).group_by("group").agg(pl.col("wait_ns").sum())
    together = _mean(longest["wait_ns"]) / steps * visible
    message = (
        f"{begun}, {_percent(waiting)} of that waiting{_culprit(comparison, own, waiting)}; "
        f"all ranks arriving together saves at most {_percent(together / step_ns)}, "
        f"a faster link at most {_percent(link)}"
    )
    return RankFinding("communication", message, us(together), together / step_ns)


def _lacks_ranks(comparison: RankComparison, axis: str, own: pl.DataFrame) -> bool:
    """Whether a rank of these groups has no trace."""
    if not comparison.membership.missing:
        return False
    sizes = [len(json.loads(group)) for group in own["group"].unique().to_list()]
    whole = comparison.layout.sizes.get(axis)
    return whole is None or min(sizes) < whole


def _culprit(comparison: RankComparison, own: pl.DataFrame, waiting: float) -> str:
    """Who is waited for and why, as the middle of a sentence."""
    late = own.filter(pl.col("late").is_not_null())
    if waiting < NOTABLE_SHARE or late.is_empty():
        return ""
    each = late.group_by("call").agg(
        pl.col("group").first(), rank=pl.col("late").first(), caused=pl.col("wait_ns").max()
    )
    caused = (
        each.group_by("group", "rank")
        .agg(pl.col("caused").sum(), calls=pl.len())
        .with_columns(share=pl.col("caused") / pl.col("caused").sum().over("group"))
        .sort(["caused", "rank"], descending=[True, False])
    )
    group, rank, share, last = caused.select("group", "rank", "share", "calls").row(0)
    where = "" if own["group"].n_unique() == 1 else f" in its group of {len(json.loads(group))}"
    if share < STANDS_OUT:
        return f", for no rank in particular (rank {rank}, most often the last, causes {_percent(share)}{where})"
    calls = own.filter(pl.col("group") == group)["call"].n_unique()
    text = f", mostly for rank {rank} (last in {last} of {calls} calls{where})"
    why = comparison.causes.filter(pl.col("rank") == rank, pl.col("group").is_in(own["group"].unique().to_list()))
    return f"{text}, {_because(why.row(0, named=True))}" if why.height else text


def _because(cause: dict[str, object]) -> str:
    if cause["name"] is None:
        return "which is idle before it arrives: its launches come late"
    name = short_name(str(cause["name"]), LONGEST_NAME)
    what = name if cause["role"] in (None, "other") else f"{cause['role']} ({name})"
    own, others = cause["own_ns"], cause["others_ns"]
    if isinstance(own, int) and isinstance(others, float) and others > 0:
        return f"whose {what} takes {_percent(own / others - 1)} longer"
    return f"whose {what} takes longer"


def _pipeline(comparison: RankComparison) -> Iterator[RankFinding]:
    pipeline = comparison.pipeline
    if pipeline is None:
        return
    layers = " + ".join("?" if count is None else str(count) for count in pipeline.layers)
    text = f"PP {len(pipeline.layers)} ({layers} layers)"
    stages = pipeline.stages
    if pipeline.bubble_share is None or stages.is_empty():
        yield RankFinding("pipeline", f"{text}: no complete step, so its bubbles are unknown")
        return
    cycle = _mean(stages["cycle_ns"])
    busiest = float((stages["work_ns"] + stages["transfer_ns"]).max() or 0)  # type: ignore[arg-type]
    waiting = stages.sort("wait_ns", descending=True).row(0, named=True)
    saved = max(0.0, cycle - busiest)
    message = (
        f"{text}: stages have no work for {_percent(pipeline.bubble_share)} of their cycle of {duration(cycle)}"
        f"{_waits_in_transfer(waiting)}; with enough batches in flight a cycle takes at minimum {duration(busiest)}, "
        f"the time of the busiest stage"
    )
    yield RankFinding("pipeline_bubble", message, us(saved), saved / cycle if cycle else None)


def _waits_in_transfer(stage: dict[str, object]) -> str:
    wait = stage["wait_ns"]
    if not isinstance(wait, float) or wait <= 0:
        return ""
    return f" (stage {stage['stage']} spends {duration(wait)} of it waiting in send and receive)"


def _experts(comparison: RankComparison) -> Iterator[RankFinding]:
    experts = comparison.experts
    if experts is None or (experts.max_over_mean or 0) < 1 + NOTABLE_SHARE or len(experts.per_rank_ns) < 2:
        return
    step_ns = _mean(comparison.by_step["span_ns"])
    share = experts.excess_ns / step_ns if step_ns else None
    waited = experts.mean_combine_wait_ns
    text = f"; the ranks wait {duration(waited)} per step for it in the exchange that follows" if waited else ""
    message = (
        f"experts: rank {experts.busiest} computes {experts.max_over_mean:.2f} times the mean "
        f"(variation {_percent(experts.coefficient_of_variation)}){text}; an even load saves at most {_percent(share)}"
    )
    yield RankFinding("expert_imbalance", message, us(experts.excess_ns), share)


def _dummies(comparison: RankComparison) -> Iterator[RankFinding]:
    for row in comparison.dummies.iter_rows(named=True):
        place = comparison.layout.coordinates.get(row["rank"])
        who = f"rank {row['rank']}" + (f" (dp {place['dp']})" if place and comparison.layout.size("dp") > 1 else "")
        message = (
            f"{who} ran {row['dummy_steps']} of {row['steps']} steps without requests, "
            f"{duration(row['dummy_ns'] / row['dummy_steps'])} each: it had no work of its own"
        )
        yield RankFinding("dummy_steps", message)


def layout_words(layout: JobLayout) -> str:
    """The layout in a few words, such as ``tp 4 x pp 2``."""
    if layout.source is None:
        return "unknown"
    used = [f"{axis} {layout.sizes.get(axis) or '?'}" for axis in reversed(AXES) if layout.sizes.get(axis) != 1]
    return " x ".join(used) or "one rank"


def _mean(values: pl.Series) -> float:
    """The mean; 0 of nothing."""
    mean = values.mean()
    return float(mean) if isinstance(mean, int | float) else 0.0


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{share * 100:.0f} %" if share >= 0.1 else f"{share * 100:.1f} %"
