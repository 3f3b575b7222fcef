"""`parse` and `parse_many`: kernel names to KernelName."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import first_reading

if TYPE_CHECKING:
    import polars as pl


def parse(name: str, *, block: tuple[int, int, int] | None = None, warp_size: int | None = None) -> KernelName:
    """What the name of a kernel says.

    `block` is the trace event's thread block and `warp_size` the device's (32, on CDNA 64); only the two
    together give `num_warps`, which is in no name. Never raises: a name of no known scheme has scheme null
    and kind "unknown".
    """
    reading = _cached(name) if len(name) <= _CACHED_LENGTH else _read(name)
    warps = _num_warps(block, warp_size)
    return reading if warps is None else replace(reading, num_warps=warps)


def parse_many(names: Iterable[str]) -> pl.DataFrame:
    """One row a distinct name, in order of first appearance.

    Columns: the fields of KernelName, with `dtypes` as dtype_output, dtype_activation, dtype_weight, and
    `normalised`, the key to group by. `num_warps` is null throughout: it belongs to an event.
    """
    import polars as pl

    from traceanalyzer.names.normalising import normalise

    rows = []
    for name in dict.fromkeys(names):
        reading = parse(name)
        rows.append(
            (
                name,
                normalise(name),
                reading.scheme,
                reading.family,
                reading.kind,
                reading.block_m,
                reading.block_n,
                reading.block_k,
                reading.split_k,
                reading.stages,
                reading.num_warps,
                None if reading.cluster is None else list(reading.cluster),
                reading.dtypes.output,
                reading.dtypes.activation,
                reading.dtypes.weight,
                reading.epilogue,
                reading.retunable,
                reading.knob,
                reading.ambiguous,
                reading.library,
                reading.fused_ops,
                reading.role,
            )
        )
    text, integer = pl.String, pl.Int64
    schema: dict[str, pl.DataType | type[pl.DataType]] = {
        "name": text,
        "normalised": text,
        "scheme": text,
        "family": text,
        "kind": text,
        "block_m": integer,
        "block_n": integer,
        "block_k": integer,
        "split_k": integer,
        "stages": integer,
        "num_warps": integer,
        "cluster": pl.List(integer),
        "dtype_output": text,
        "dtype_activation": text,
        "dtype_weight": text,
        "epilogue": text,
        "retunable": pl.Boolean,
        "knob": text,
        "ambiguous": text,
        "library": text,
        "fused_ops": text,
        "role": text,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _read(name: str) -> KernelName:
    reading = first_reading(NameView(name))
    if reading is not None:
        return reading
    return KernelName(name=name, scheme=None, family="unknown", kind="unknown")


_CACHED_LENGTH = 4096
_cached = lru_cache(maxsize=32_768)(_read)


def _num_warps(block: tuple[int, int, int] | None, warp_size: int | None) -> int | None:
    if block is None or not warp_size or warp_size < 0 or len(block) != 3:
        return None
    if any(extent is None or extent <= 0 for extent in block):
        return None
    return -(-math.prod(block) // warp_size)
