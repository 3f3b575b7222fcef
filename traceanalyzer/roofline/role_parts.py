"""Parts of a role: kernels whose work is not that of the role's op, told by their names."""

from __future__ import annotations

import re
from collections.abc import Collection

import polars as pl

from traceanalyzer.model import Architecture
from traceanalyzer.names import normalise, parse, short_name
from traceanalyzer.roofline.facts import EXPERT_ROLES, pads
from traceanalyzer.roofline.scope import STEP

REDUCES = re.compile(r"(?i)reduce|combine|merge|metadata|segments")
"""Names of kernels that reduce what split-KV attention or a split-K product computed in parallel."""

MIXED_ROLES = frozenset({"copy", "other"})
"""Roles that hold work of many sorts: one row per op, or per kernel name where no op is known."""

NAMED_PARTS = ("rope_table_cast", "moe_pad")
"""Parts that are told by the kernel's name and that the model has ops for."""

SPLIT_ROLES = frozenset({"attention", "qkv_proj", "o_proj", "router", "gate_up", "down", "lm_head"})
"""Roles whose op may be split into parts that another kernel reduces."""

NAME_WIDTH = 60


def with_parts(kernels: pl.DataFrame, redundant: Collection[str], *, own_rows: bool) -> pl.DataFrame:
    """Add ``part``: empty for the role's own work.

    Args:
        kernels: with name, role, block and the columns of ``with_shape_work``.
        redundant: names of kernels that repeat the cast of the rotary table in every block.
        own_rows: whether kernels outside of any block get a row for each name and shape, as their role says little.
    """
    distinct = kernels.select("name", "role").unique()
    named = [(name, role, _part(name, role, redundant)) for name, role in distinct.rows()]
    whole = {role for _, role, part in named if part == ""}
    # What looks like a helper is the role's own work where nothing else is.
    parts = pl.DataFrame(
        [(name, role, "" if part == f"{role} reduce" and role not in whole else part) for name, role, part in named],
        schema={"name": kernels.schema["name"], "role": pl.String(), "part": pl.String()},
        orient="row",
    )
    joined = kernels.join(parts, on=["name", "role"], how="left", nulls_equal=True, maintain_order="left")
    told = pl.col("role").is_in(MIXED_ROLES) & pl.col("what").is_not_null() & ~pl.col("part").is_in(NAMED_PARTS)
    joined = joined.with_columns(part=pl.when(told).then("op").otherwise("part"))
    if not own_rows:
        return joined
    shape = pl.when(pl.col("note").is_not_null()).then(pl.lit(": ") + pl.col("note")).otherwise(pl.lit(""))
    shown = kernels["name"].unique()
    short = dict(zip(shown.to_list(), [short_name(name, NAME_WIDTH) for name in shown], strict=True))
    alone = pl.col("name").cast(pl.String).replace_strict(short, return_dtype=pl.String) + shape
    return joined.with_columns(part=pl.when(pl.col("block").is_null()).then(alone).otherwise(pl.col("part")))


def with_shared_gates(kernels: pl.DataFrame, model: Architecture) -> pl.DataFrame:
    """Set ``part`` of the products that weigh the shared experts' output, in models that have such a gate.

    It is the one product of a block with experts that has no role of its own, unless shapes tell of another width than
    its single column. Where several could be it, none is taken.

    Args:
        kernels: of ``with_parts``.
        model: what they carry out.
    """
    if model.moe is None or not model.moe.shared_gate:
        return kernels
    names = kernels.filter(pl.col("role") == "other")["name"].unique().to_list()
    products = [name for name in names if parse(name).kind == "gemm"]
    experts = pl.col("role").is_in(EXPERT_ROLES).any().over(*STEP, "block")
    fits = (pl.col("role") == "other") & pl.col("name").is_in(products) & (pl.col("n").is_null() | (pl.col("n") == 1))
    could = (fits & experts & pl.col("block").is_not_null()).fill_null(False)
    alone = could & (could.sum().over(*STEP, "block") == 1)
    return kernels.with_columns(part=pl.when(alone).then(pl.lit("shared_gate")).otherwise("part"))


def _part(name: str, role: str | None, redundant: Collection[str]) -> str:
    if role == "copy" and name in redundant:
        return "rope_table_cast"
    if role == "copy" and pads(name):
        return "moe_pad"
    if role in MIXED_ROLES or role is None:
        return short_name(normalise(name), NAME_WIDTH)
    if role in SPLIT_ROLES and (REDUCES.search(name) or parse(name).kind == "gemm_helper"):
        return f"{role} reduce"
    return ""
