"""Which operations of a CPU stand for kernels in a trace without a GPU: those that compute, each counted once.

PyTorch records an operation with those it calls. Its time belongs to the innermost one that computes:

    aten::linear             16 µs   dispatches: never counted
      aten::t                 1 µs   a view: never
      aten::addmm            13 µs   computes, and nothing in it does: counted whole
        aten::copy_           2 µs   within what is counted: not again
    aten::to                  5 µs   dispatches
      aten::_to_copy          4 µs   dispatches
        aten::copy_           2 µs   a copy that nothing counted encloses: counted

What is counted never overlaps on a thread, so that the sum is at most the thread's busy time.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

COMPUTES, MOVES, DISPATCHES = "computes", "moves", "dispatches"

_MOVES = re.compile(
    r"aten::(copy_|fill_|zero_|copy|fill|_copy_from|_copy_from_and_resize|cat|_cat|stack|_stack|arange|full_out|eye"
    r"|concat|concatenate|constant_pad_nd|pad|repeat|repeat_interleave|tile|roll|flip|set_data|_?pin_memory)"
)
"""Operations that only write or move elements. Those that call one of the others are counted by it."""

_VIEWS = """
view as_strided as_strided_ slice narrow select detach detach_ alias expand expand_as t t_ reshape permute transpose
transpose_ unsqueeze unsqueeze_ squeeze squeeze_ flatten unflatten split split_with_sizes chunk tensor_split hsplit
vsplit dsplit unbind _unsafe_view _reshape_alias movedim moveaxis swapaxes swapdims numpy_T mT mH adjoint view_as
reshape_as unfold diagonal broadcast_to broadcast_tensors real imag view_as_real view_as_complex conj _conj
resolve_conj resolve_neg lift lift_fresh values indices atleast_1d atleast_2d atleast_3d ravel meshgrid
_nested_view_from_buffer
"""
_ALLOCATIONS = """
empty empty_strided empty_like empty_permuted empty_quantized new_empty new_empty_strided _empty_affine_quantized
resize_ resize_as_ _resize_output_ set_ zeros zeros_like new_zeros ones ones_like new_ones full full_like new_full
scalar_tensor tensor _efficientzerotensor
"""
_DISPATCH = """
to _to_copy type type_as contiguous clone cpu cuda float half bfloat16 double int long bool item _local_scalar_dense
is_nonzero result_type promote_types can_cast size sym_size numel dim is_same_size infer_size data is_leaf output_nr
_version requires_grad_ retain_grad record_stream _backward _has_compatible_shallow_copy_type _assert_async
_assert_tensor_metadata _autocast_to_reduced_precision _autocast_to_full_precision
"""
_NEVER = frozenset(f"aten::{name}" for name in f"{_VIEWS} {_ALLOCATIONS} {_DISPATCH}".split())
"""Views, allocations, and operations that only choose which other to call."""

_NO_OPERATION = re.compile(
    r"autograd::.*|torch::autograd::.*|torch::jit::.*|profiler::.*|\w*Backward\d*|record_param_comms|detach"
    r"|.*[ #/$<>(\[].*|[A-Z]\w*(\.\w+)*|\w+\.\w+.*"
)
"""Names of nodes of autograd, of a compiler's wrappers, and of labels (several words, `Module.method`, `X#1`)."""


@lru_cache(maxsize=65_536)
def work_of(name: str) -> str:
    """Return what an operation does by its name: it computes, moves elements, or dispatches to others.

    A name that is not known is an engine's own operation, which computes.
    """
    plain = name.partition(".")[0] if "::" in name else name
    if plain in _NEVER or _NO_OPERATION.fullmatch(plain):
        return DISPATCHES
    return MOVES if _MOVES.fullmatch(plain) else COMPUTES


def compute_ops(ops: pl.DataFrame) -> pl.DataFrame:
    """Return the operations that count, in order of start.

    Args:
        ops: operations of a CPU; any order, columns of ``EVENT_SCHEMA``.
    """
    ops = ops.filter(pl.col("dur_ns") > 0, pl.col("name").is_not_null())
    thread = ops.select(pl.struct("pid", "tid").rank("dense")).to_series().alias("thread")
    ops = ops.with_columns(thread).sort("thread", "start_ns", -pl.col("dur_ns"), "index")
    if ops.is_empty():
        return ops.drop("thread")
    work = {name: work_of(name) for name in ops["name"].cast(pl.String).unique()}
    kind = ops["name"].cast(pl.String).replace_strict(work, return_dtype=pl.String)
    computes, moves = ((kind == wanted).to_numpy() for wanted in (COMPUTES, MOVES))
    bounds = np.flatnonzero(np.diff(ops["thread"].to_numpy(), prepend=-1, append=-1))
    start, dur = ops["start_ns"].to_numpy(), ops["dur_ns"].to_numpy()
    parts = [slice(a, b) for a, b in pairwise(bounds.tolist())]
    counted = np.concatenate([_counted(start[at], dur[at], computes[at], moves[at]) for at in parts])
    return ops.filter(pl.Series(counted)).drop("thread").sort("start_ns", "index")


def _counted(
    start: npt.NDArray[np.int64],
    dur: npt.NDArray[np.int64],
    computes: npt.NDArray[np.bool_],
    moves: npt.NDArray[np.bool_],
) -> npt.NDArray[np.bool_]:
    """Say which operations of one thread count; they are in order of start, the outer one first."""
    end = start + dur
    here = np.arange(len(start))
    # What an operation calls follows it, up to the first that starts after its end.
    behind = np.maximum(np.searchsorted(start, end, side="left"), here + 1)
    whole = computes & (_within(computes, here, behind) == 0)
    copies = moves & (_within(computes | moves, here, behind) == 0)
    # Those counted whole do not overlap, so only the last one before can enclose a copy.
    last = np.maximum.accumulate(np.where(whole, here, -1))
    enclosed = (last >= 0) & (start < end[np.maximum(last, 0)])
    counted: npt.NDArray[np.bool_] = whole | (copies & ~enclosed)
    return counted


def _within(
    wanted: npt.NDArray[np.bool_], here: npt.NDArray[np.int64], behind: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Count the wanted operations within each."""
    before = np.concatenate(([0], np.cumsum(wanted)))
    counts: npt.NDArray[np.int64] = before[behind] - before[here + 1]
    return counts
