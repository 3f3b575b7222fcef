"""What sets the variants of a group of steps apart, in words; and the towers that its blocks belong to."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import polars as pl

from traceanalyzer.names import short_name
from traceanalyzer.segment import Segmentation
from traceanalyzer.wording import duration, plural

_MOST_NAMED = 2
"""Kernels named in a sentence; of more, only their number is told."""
_LEAST_CHANGE = 0.05
"""Change of a role's time from which on it is worth a word. Chosen, not fitted."""
_NAME_WIDTH = 48


def tower_sentence(by_block: pl.DataFrame) -> str | None:
    """Say which towers there are, how deep, and how often each is passed; None where there is one model."""
    towers = [next((part for part in (kind or "").split("+") if "tower" in part), "") for kind in by_block["kind"]]
    runs = [(name, len(list(own))) for name, own in groupby(towers)]
    depths = dict(runs)
    if len(depths) < 2 or "" in depths:
        return None
    told = ", ".join(f"{name} with {plural(depth, 'block')}" for name, depth in depths.items())
    passes = Counter(name for name, _ in runs)
    often = max(passes.values())
    return f"{len(depths)} towers: {told}{f'; {often} passes' if often > 1 else ''}"


def apart_sentences(by_block: pl.DataFrame, blocks: pl.DataFrame, cut: Segmentation) -> list[str]:
    """Say of each variant but the most frequent one how it differs from the most frequent one of its kind, or of all.

    Args:
        by_block: one row per block of the group, with its variant.
        blocks: all blocks of the group's steps, columns of ``BLOCK_SCHEMA``.
        cut: the trace.
    """
    counts = by_block["variant"].value_counts(sort=True).sort("count", "variant", descending=[True, False])
    if counts.height < 2:
        return []
    keys = ["device", "step", "block"]
    first = blocks.filter(pl.col("variant").is_in(counts["variant"].implode())).unique("variant", maintain_order=True)
    kernels = (
        cut.events.filter("is_kernel")
        .join(first.select(*keys, "variant"), on=keys, nulls_equal=True, maintain_order="left")
        .select("variant", pl.col("name").cast(pl.String), "role", "dur_ns")
    )
    own = {str(variant): frame for (variant,), frame in kernels.partition_by("variant", as_dict=True).items()}
    kind_of = dict(by_block.select("variant", "kind").iter_rows())
    # Most frequent first: the first variant of a kind is what the others of the kind are compared with.
    ranked: list[str] = [variant for variant in counts["variant"].to_list() if variant in own]
    usual_of = {variant: next(v for v in ranked if kind_of[v] == kind_of[variant]) for variant in ranked}
    against = {variant: ranked[0] if usual == variant else usual for variant, usual in usual_of.items()}
    return [
        f"{variant} differs from {against[variant]}: {_difference(own[variant], own[against[variant]])}"
        for variant in sorted(ranked, key=lambda letter: (len(letter), letter))
        if variant != ranked[0]
    ]


def _difference(one: pl.DataFrame, usual: pl.DataFrame) -> str:
    """What a block has that the usual one lacks, or where its time is another."""
    mine, theirs = Counter(one["name"].to_list()), Counter(usual["name"].to_list())
    more, less = list((mine - theirs).elements()), list((theirs - mine).elements())
    if not more and not less:
        return _other_times(one, usual)
    if max(len(more), len(less)) > _MOST_NAMED:
        return f"{plural(max(len(more), len(less)), 'kernel')} of {max(one.height, usual.height)} differ"
    has, lacks = (Counter(_short(name) for name in names) for names in (more, less))
    forms, has, lacks = has & lacks, has - lacks, lacks - has
    parts = [f"another form of {_listed(forms)}"] if forms else []
    if has and lacks:
        parts.append(f"{_listed(has)} instead of {_listed(lacks)}")
    elif has or lacks:
        parts.append(f"has {_listed(has)}" if has else f"lacks {_listed(lacks)}")
    return "; ".join(parts)


def _other_times(one: pl.DataFrame, usual: pl.DataFrame) -> str:
    """The role whose time differs most, between blocks of the same kernels."""
    times = [dict(frame.group_by("role").agg(pl.col("dur_ns").sum()).iter_rows()) for frame in (one, usual)]
    role = max(sorted(times[0].keys() | times[1].keys()), key=lambda r: abs(times[0].get(r, 0) - times[1].get(r, 0)))
    mine, theirs = times[0].get(role, 0), times[1].get(role, 0)
    if abs(mine - theirs) <= _LEAST_CHANGE * max(mine, theirs):
        return "the same kernels, in about the same time"
    return f"the same kernels, but {role} takes {duration(mine)} instead of {duration(theirs)}"


def _listed(kernels: Counter[str]) -> str:
    return " and ".join(kernels.elements())


def _short(name: str) -> str:
    return short_name(name, _NAME_WIDTH)
