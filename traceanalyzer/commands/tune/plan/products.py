"""The matrix product behind each kernel of a roofline: rows, columns, inner size, experts, on one rank."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceanalyzer.model import Architecture, Execution, ModelError, Op, Parallel, Step
from traceanalyzer.model.ops import ops_by_layers
from traceanalyzer.names import parse
from traceanalyzer.roofline import Request, Roofline, RooflineError
from traceanalyzer.roofline.facts import execution_of, layout_of
from traceanalyzer.roofline.scope import Scope
from traceanalyzer.roofline.workloads import workloads_of
from traceanalyzer.trace import Trace

PRODUCT = ("m", "n", "k", "experts", "top_k", "distinct")
"""Columns that ``with_products`` sets: sizes of the product, and for a mixture of experts the experts on this rank,
those a token goes to, and how many of the former are expected to get a token. Null where unknown."""

_KEYS = ("workload", "layer", "role", "position")
_OPS: dict[str, pl.DataType] = {
    "workload": pl.Int32(),
    "layer": pl.Int32(),
    "role": pl.String(),
    "position": pl.Int64(),
    "products": pl.UInt32(),
    "op_m": pl.Int64(),
    "op_n": pl.Int64(),
    "op_k": pl.Int64(),
    "experts": pl.Int64(),
    "top_k": pl.Int64(),
    "distinct": pl.Float64(),
}


@dataclass(frozen=True)
class TuningLayout:
    """How the model is spread over ranks and carried out, as the roofline took it."""

    parallel: Parallel
    execution: Execution


def with_products(
    trace: Trace, request: Request, roof: Roofline, scope: Scope
) -> tuple[pl.DataFrame, TuningLayout | None, tuple[str, ...]]:
    """Return the roofline's kernels with PRODUCT, the layout (None without a model), and what both are based on.

    Shapes that the trace gives come first. Else the n-th matrix product of a role and layer is the model's n-th op of
    that role, if there are as many kernels as ops; where the numbers differ the sizes stay unknown.

    Raises:
        RooflineError: the layout contradicts the model.
    """
    given = pl.col("what") == "gemm"
    kernels = roof.kernels.with_columns(
        pl.when(given).then(pl.col(name)).cast(pl.Int64).alias(name) for name in ("m", "n", "k")
    )
    if roof.model is None:
        nothing = {name: pl.lit(None, dtype=_OPS[name]) for name in ("experts", "top_k", "distinct")}
        return kernels.with_columns(**nothing), None, ()
    try:
        parallel, stage, notes = layout_of(trace, scope, roof.model, (request.tp, request.pp, request.ep))
        execution, assumed = execution_of(scope, roof.kernels, roof.model)
        ops = _ops_frame(roof.model, request, scope, (parallel, execution, stage))
    except ModelError as error:
        raise RooflineError(str(error)) from error
    joined = _positioned(kernels).join(ops, on=list(_KEYS), how="left", nulls_equal=True, maintain_order="left")
    fits = pl.col("products") == pl.col("kernels_of_role")
    return (
        joined.with_columns(
            *(pl.coalesce(name, pl.when(fits).then(f"op_{name}")).alias(name) for name in ("m", "n", "k")),
            *(pl.when(fits).then(pl.col(name)).alias(name) for name in ("experts", "top_k", "distinct")),
        ),
        TuningLayout(parallel, execution),
        (*notes, *assumed),
    )


def _ops_frame(
    model: Architecture, request: Request, scope: Scope, layout: tuple[Parallel, Execution, int | None]
) -> pl.DataFrame:
    """The model's matrix products of each distinct workload, numbered within layer and role."""
    parallel, execution, stage = layout
    workloads = workloads_of(scope.steps, request.stated)
    distinct = list(dict.fromkeys(one for one in workloads if one is not None))
    outside: list[int | None] = [None]
    rows = [
        (number, list(layers) or outside, op.role, op.m, op.n, op.k, op.experts, op.top_k, op.distinct_experts)
        for number, workload in enumerate(distinct)
        for op, layers in ops_by_layers(Step(model, workload, parallel, request.routing, execution, stage))
        if _is_product(op)
    ]
    names = ("workload", "layer", "role", "op_m", "op_n", "op_k", "experts", "top_k", "distinct")
    schema = {name: pl.List(pl.Int32()) if name == "layer" else _OPS[name] for name in names}
    frame = pl.DataFrame(rows, schema=schema, orient="row").explode("layer")
    of_role = ["workload", "layer", "role"]
    return frame.with_columns(
        position=pl.int_range(pl.len(), dtype=pl.Int64).over(of_role), products=pl.len().over(of_role)
    ).select(*_OPS)


def _is_product(op: Op) -> bool:
    return op.m is not None and op.n is not None and op.k is not None


def _positioned(kernels: pl.DataFrame) -> pl.DataFrame:
    """Number the matrix products of a role within each layer of a step, in order of start; None for other kernels."""
    names = kernels["name"].unique().to_list()
    products = [name for name in names if parse(name).kind == "gemm"]
    group = ["device", "step", "layer", "role"]
    is_product = pl.col("name").is_in(products)
    numbered = (
        kernels.filter(is_product)
        .sort("device", "start_ns", "index")
        .with_columns(
            position=pl.int_range(pl.len(), dtype=pl.Int64).over(group),
            kernels_of_role=pl.len().over(group),
        )
        .select("index", "position", "kernels_of_role")
    )
    return kernels.drop(["position", "kernels_of_role"], strict=False).join(
        numbered, on="index", how="left", maintain_order="left"
    )
