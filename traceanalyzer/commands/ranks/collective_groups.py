"""Which ranks take part in a collective: from its arguments, else from the layout, tested by where its calls end."""

from __future__ import annotations

import json
from collections.abc import Sequence

import polars as pl

from traceanalyzer.commands.ranks.job_layout import JobLayout
from traceanalyzer.commands.ranks.together import SLACK_NS, neighbours, size_ending_together, spread_ns

CANDIDATES: dict[str, tuple[str, ...]] = {
    "all_reduce": ("tp", "dp", "ep"),
    "all_gather": ("tp", "ep", "dp"),
    "reduce_scatter": ("tp", "ep", "dp"),
    "all_to_all": ("ep", "dp", "tp"),
    "dispatch": ("ep", "dp", "tp"),
    "combine": ("ep", "dp", "tp"),
}
"""Axes that may explain a kind of collective, the usual one first."""

ANY_AXIS = ("tp", "ep", "dp", "pp")


def with_groups(calls: pl.DataFrame, layout: JobLayout, ranks: Sequence[int]) -> tuple[pl.DataFrame, dict[str, str]]:
    """Add to every collective the ranks that share it.

    Args:
        calls: kind, name, members, rank, start_ns, dur_ns, step; without point-to-point transfers.
        layout: of the job.
        ranks: those at hand.

    Returns:
        The frame with ``group`` (the ranks at hand as JSON text), and by group how it is known.
    """
    stated = calls.filter(pl.col("members").is_not_null())
    unstated = calls.filter(pl.col("members").is_null())
    present = {text: _present(text, ranks) for text in stated["members"].unique().to_list()}
    group = pl.col("members").replace_strict(present, return_dtype=pl.String) if present else pl.col("members")
    parts = [stated.with_columns(group=group)]
    basis = dict.fromkeys(present.values(), "process group in the trace")
    # In order: the first kind of call that has a group says how it is known.
    for (kind, _), own in unstated.group_by("kind", "name", maintain_order=True):
        groups, how = _groups_for(str(kind), own, layout, ranks)
        texts = {rank: json.dumps(list(group)) for rank, group in groups.items()}
        parts.append(own.with_columns(group=pl.col("rank").replace_strict(texts, return_dtype=pl.String)))
        for text in texts.values():
            basis.setdefault(text, how)
    return pl.concat(parts).sort("rank", "start_ns"), basis


def _present(text: str, ranks: Sequence[int]) -> str:
    return json.dumps([rank for rank in json.loads(text) if rank in ranks])


def _groups_for(
    kind: str, own: pl.DataFrame, layout: JobLayout, ranks: Sequence[int]
) -> tuple[dict[int, tuple[int, ...]], str]:
    """The group of every rank that makes these calls, and how it is known."""
    callers = sorted(own["rank"].unique().to_list())
    if not layout.coordinates:
        size = size_ending_together(own, max(ranks) + 1) or max(ranks) + 1
        return neighbours(callers, size), "ranks on which its calls end together (layout unknown)"
    tried = _candidates(kind, layout, callers)
    if not tried:
        return {rank: (rank,) for rank in ranks}, "alone"
    usual = next(iter(tried))
    if len(tried) == 1:
        return tried[usual], f"{usual} group of the layout"
    spreads = {axis: spread_ns(own, groups) for axis, groups in tried.items()}
    measured = {axis: spread for axis, spread in spreads.items() if spread is not None}
    if not measured:
        return tried[usual], f"{usual} group of the layout"
    limit = 2 * min(measured.values()) + SLACK_NS
    axis = next(axis for axis, spread in measured.items() if spread <= limit)
    return tried[axis], f"{axis} group of the layout, in which its calls end together"


def _candidates(kind: str, layout: JobLayout, callers: Sequence[int]) -> dict[str, dict[int, tuple[int, ...]]]:
    """Different groupings of the callers that may explain a kind of collective, by axis, the usual one first."""
    tried: dict[str, dict[int, tuple[int, ...]]] = {}
    for axis in (*CANDIDATES.get(kind, ANY_AXIS), "world"):
        groups = layout.groups(axis)
        if any(len(groups[rank]) > 1 for rank in callers) and groups not in tried.values():
            tried[axis] = groups
    return tried
