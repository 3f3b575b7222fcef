"""`parse` and `parse_many`: kernel names to KernelName."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import structs

from traceanalyzer.declare import frame_schema
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.direction import direction
from traceanalyzer.names.kernel_name import Dtypes, KernelName
from traceanalyzer.names.registry import first_reading

if TYPE_CHECKING:
    import polars as pl


def parse(name: str, *, block: tuple[int, int, int] | None = None, warp_size: int | None = None) -> KernelName:
    """Return what a kernel's name says; a name of no known scheme has the kind ``unknown``. Never raises.

    Args:
        name: of the kernel.
        block: the trace event's thread block.
        warp_size: the device's, 32 or, on CDNA, 64; with ``block`` it gives ``num_warps``, which no name holds.
    """
    reading = _cached(name) if len(name) <= _CACHED_LENGTH else _read(name)
    warps = _num_warps(block, warp_size)
    return reading if warps is None else structs.replace(reading, num_warps=warps)


def parse_many(names: Iterable[str]) -> pl.DataFrame:
    """Return one row per distinct name, in order of first appearance.

    Columns: the fields of KernelName, with `dtypes` as dtype_output, dtype_activation and dtype_weight, and
    `normalised`, the key to group by. `num_warps` is unknown throughout: it belongs to an event.
    """
    import polars as pl

    from traceanalyzer.names.normalising import normalise

    rows = [
        {
            **structs.asdict(reading),
            "normalised": normalise(reading.name),
            **{f"dtype_{side}": dtype for side, dtype in structs.asdict(reading.dtypes).items()},
        }
        for reading in map(parse, dict.fromkeys(names))
    ]
    return pl.DataFrame(rows, schema=_frame_columns(), orient="row")


def _frame_columns() -> dict[str, pl.DataType]:
    import polars as pl

    schema: dict[str, pl.DataType] = {}
    declared = frame_schema(KernelName)
    for name in KernelName.__struct_fields__:
        if name == "dtypes":
            schema |= {f"dtype_{side}": dtype for side, dtype in frame_schema(Dtypes).items()}
        else:
            schema[name] = pl.List(pl.Int64) if name == "cluster" else declared[name]
        if name == "name":
            schema["normalised"] = pl.String()
    return schema


def _read(name: str) -> KernelName:
    view = NameView(name)
    reading = first_reading(view) or KernelName(name=name, scheme=None, family="unknown", kind="unknown")
    told = direction(view.lower)
    return reading if told is None else structs.replace(reading, direction=told)


_CACHED_LENGTH = 4096
_cached = lru_cache(maxsize=32_768)(_read)


def _num_warps(block: tuple[int, int, int] | None, warp_size: int | None) -> int | None:
    if block is None or not warp_size or warp_size < 0 or len(block) != 3:
        return None
    if any(extent is None or extent <= 0 for extent in block):
        return None
    return -(-math.prod(block) // warp_size)
