"""AITER's tuned CSV tables: dense products (one row per shape and kernel) and fused MoE.

    cu_num,M,N,K,kernelId,splitK,us,kernelName,tflops,bw,errRatio
    cu_num,token,model_dim,inter_dim,expert,topk,act_type,dtype,...,block_m,ksplit,us1,kernelName1,...,us,...

Times are microseconds. ``splitK`` and ``ksplit`` are kept under their own names: what they count differs by kernel.
"""

from __future__ import annotations

from traceanalyzer.commands.tune.formats.csv_tables import milliseconds, rows, rows_of, tile_of
from traceanalyzer.commands.tune.formats.point_collector import PointCollector
from traceanalyzer.commands.tune.formats.sweep import SweepPoint
from traceanalyzer.commands.tune.formats.sweep_source import SweepSource
from traceanalyzer.commands.tune.tile_config import AITER_DENSE, AITER_MOE, Value, from_columns

NAME = "aiter"
TITLE = "an AITER tuned table (CSV)"

_DENSE_SHAPE = {"N": "n", "K": "k", "dtype": "dtype", "outdtype": "output_dtype", "q_dtype_w": "weight_dtype"}
_DENSE_SHAPE |= {"bias": "bias", "scaleAB": "scaled", "bpreshuffle": "bpreshuffle"}
_MOE_SHAPE = {"model_dim": "model_dim", "inter_dim": "inter_dim", "expert": "experts", "topk": "top_k"}
_MOE_SHAPE |= {key: key for key in ("act_type", "dtype", "q_dtype_a", "q_dtype_w", "q_type", "use_g1u1")}
_MOE_SHAPE |= {"doweight_stage1": "doweight_stage1"}


def recognises(source: SweepSource) -> bool:
    """Return whether the heading is that of a tuned table."""
    heading = set(source.header)
    return {"cu_num", "us"} <= heading and ({"M", "N", "K"} <= heading or {"token", "expert", "topk"} <= heading)


def read(source: SweepSource, into: PointCollector) -> None:
    """Add every row."""
    moe = "token" in source.header
    for line, cells in rows(source, into):
        size = rows_of(cells.get("token" if moe else "M"))
        if size is None:
            into.malformed("the number of rows is not a positive whole number", line)
            continue
        shape = _named(cells, _MOE_SHAPE if moe else _DENSE_SHAPE)
        config = from_columns(cells, {key: key for key in (AITER_MOE if moe else AITER_DENSE)})
        top_k = shape.get("top_k") if moe else None
        if moe and not isinstance(top_k, int):
            into.malformed("topk is not a whole number", line)
            continue
        point = SweepPoint(
            kernel="fused_moe" if moe else "gemm",
            m=size * top_k if isinstance(top_k, int) else size,
            concurrency=size,
            config=config if moe else config.over(tile_of(cells.get("kernelName"))),
            shape=shape,
            device=_device(cells),
        )
        into.add(point, milliseconds(cells.get("us"), 1e-3), line)


def _named(cells: dict[str, Value], names: dict[str, str]) -> dict[str, Value]:
    return {ours: cells[theirs] for theirs, ours in names.items() if cells.get(theirs) is not None}


def _device(cells: dict[str, Value]) -> dict[str, str | None]:
    units = cells.get("cu_num")
    device = {"target": cells.get("gfx"), "compute_units": units}
    return {key: str(value) for key, value in device.items() if value is not None}
