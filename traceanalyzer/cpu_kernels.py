"""Which CPU ops stand for kernels in a trace without a GPU.

An op's time contains that of the ops it calls, so that of each chain of calls only one op may count. The last one does
the work where it was written for the purpose, as vLLM's own ops are: a leaf. PyTorch's products, norms and attention
are no leaves: they first allocate their output, view it in another shape or copy the bias into it, by ops of their own.
"""

from __future__ import annotations

import polars as pl

_VIEWS = (
    "_conj _neg_view _reshape_alias _unsafe_view alias as_strided broadcast_tensors broadcast_to chunk conj detach "
    "detach_ diagonal expand expand_as flatten lift_fresh mH mT movedim narrow numpy_T permute ravel real reshape "
    "reshape_as resolve_conj resolve_neg select set_ slice split split_with_sizes squeeze squeeze_ swapaxes swapdims t "
    "T tensor_split transpose transpose_ unbind unflatten unfold unsafe_chunk unsafe_split unsafe_split_with_sizes "
    "unsqueeze unsqueeze_ view view_as view_as_complex view_as_real"
)
_ALLOCATIONS = "empty empty_like empty_permuted empty_strided new_empty new_empty_strided resize_ resize_as_"
_QUESTIONS = "_has_compatible_shallow_copy_type _local_scalar_dense can_cast is_nonzero item result_type"
_COPIES = (
    "_to_copy clone contiguous copy_ fill_ full full_like new_full new_ones new_zeros ones ones_like to zero_ zeros "
    "zeros_like"
)
AROUND_WORK = [f"aten::{op}" for op in f"{_VIEWS} {_ALLOCATIONS} {_QUESTIONS} {_COPIES}".split()]
"""Ops that other ops call around their own work: views, allocations, questions about a tensor, copies and fills."""


def standing_for_kernels(ops: pl.DataFrame) -> pl.Series:
    """Return ``index`` of the ops that stand for kernels: none contains another of its thread, all have a duration.

    These are the leaf ops: those within which no other op of their thread starts. But where ops that call only what
    belongs around work have more time of their own than all the working leaves, leaves would hide what the model does:
    then those ops count as a whole, in the place of the leaves below them.

    Args:
        ops: columns ``index``, ``name``, ``pid``, ``tid``, ``start_ns`` and ``dur_ns`` of CPU ops, in any order.
    """
    leaf = (pl.col("last") == pl.col("row")) & (pl.col("dur_ns") > 0)
    works = ~pl.col("name").cast(pl.String).is_in(AROUND_WORK)
    known = (
        _by_thread(ops)
        .with_columns(works=works, leaf=leaf, leaf_ns=pl.when(leaf).then("dur_ns").otherwise(0))
        .with_columns(called_work=_below(pl.col("works").cast(pl.Int64)), own_ns=pl.col("dur_ns") - _below("leaf_ns"))
        .with_columns(alone=pl.col("works") & ~pl.col("leaf") & (pl.col("called_work") == 0) & (pl.col("dur_ns") > 0))
    )
    hidden = known.filter("alone")["own_ns"].sum()
    shown = known.filter("leaf", "works")["dur_ns"].sum()
    if hidden <= shown:
        return known.filter("leaf")["index"]
    reached = pl.when("alone").then("last").otherwise(-1).cum_max().shift(1, fill_value=-1)
    return known.filter(pl.col("alone") | (pl.col("leaf") & (reached < pl.col("row"))))["index"]


def _by_thread(ops: pl.DataFrame) -> pl.DataFrame:
    """Number ops in order of thread and start (``row``), with the row of the last op that starts within (``last``)."""
    ordered = ops.sort("pid", "tid", "start_ns", -pl.col("dur_ns"), "index").with_columns(
        row=pl.int_range(pl.len()),
        thread=pl.struct("pid", "tid").rle_id(),
        end_ns=pl.col("start_ns") + pl.col("dur_ns"),
    )
    starts = ordered.select("thread", "start_ns", last="row").sort("start_ns", "last")
    ends = ordered.select("thread", "end_ns", "row").sort("end_ns")
    within = ends.join_asof(
        starts,
        left_on="end_ns",
        right_on="start_ns",
        by="thread",
        strategy="backward",
        allow_exact_matches=False,
        check_sortedness=False,
    )
    last = within.sort("row")["last"].fill_null(-1)
    # An op without a duration has nothing within, itself included.
    return ordered.with_columns(last=pl.max_horizontal(last, "row"))


def _below(column: str | pl.Expr) -> pl.Expr:
    """Sum of a column over the rows after each op's own, up to its last."""
    total = (pl.col(column) if isinstance(column, str) else column).cum_sum()
    return total.gather(pl.col("last")) - total
