"""The model's ops of each step as a frame that kernels can be joined with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from traceanalyzer.model import Architecture, Execution, ExpertRouting, Op, Parallel, Step, Workload, rope_table_cast
from traceanalyzer.model.architecture import Mla
from traceanalyzer.model.model_step import stage_layers
from traceanalyzer.model.ops import ops_by_layers
from traceanalyzer.roofline.ceilings import Ceilings

OP_SCHEMA: dict[str, pl.DataType] = {
    "workload": pl.Int32(),  # number of the workload among the distinct ones
    "layer": pl.Int32(),  # null before the first block and after the last
    "role": pl.String(),
    "part": pl.String(),  # empty: the role's own work; else the name of the op
    "op": pl.String(),
    "optional": pl.Boolean(),  # may be fused into another kernel
    "communication": pl.Boolean(),
    "flops": pl.Float64(),
    "bytes": pl.Float64(),
    "compute_ns": pl.Float64(),
    "memory_ns": pl.Float64(),
    "dtype": pl.String(),
    "notes": pl.String(),  # one per line
}

OWN_PARTS = frozenset({"moe_pad", "rope_table_cast", "shared_gate"})
"""Ops whose kernels can be told from others of their role, so that they have rows of their own."""


def model_ops(
    model: Architecture,
    workloads: Sequence[Workload],
    parallel: Parallel,
    stage: int | None,
    execution: Execution,
    routing: ExpertRouting,
    ceilings: Ceilings | None,
) -> pl.DataFrame:
    """Return the ops of each workload (columns of OP_SCHEMA), with their time at the peak roofs (None without a GPU).

    Raises:
        ModelError: the layout does not fit the model.
    """
    rows: list[dict[str, Any]] = []
    cast = rope_table_cast(model)
    layers = tuple(stage_layers(len(model.layers), parallel.pp, stage))
    for number, workload in enumerate(workloads):
        ops = ops_by_layers(Step(model, workload, parallel, routing, execution, stage))
        ops += [(replace(cast, role="copy"), layers)] if cast else []
        rows += [
            {**_row(number, part, ceilings), "layer": list(own) or [None]}
            for op, own in ops
            for part in _by_place(op, model.mla)
        ]
    return pl.DataFrame(rows, schema={**OP_SCHEMA, "layer": pl.List(pl.Int32())}).explode("layer").select(*OP_SCHEMA)


def layer_kinds(model: Architecture) -> pl.DataFrame:
    """Return layer, layer_kind and attention_kind of each layer; None where all layers are alike in it."""
    kinds = {(layer.attention, layer.window) for layer in model.layers if layer.attention}
    return pl.DataFrame(
        [
            (number, model.kind_of(number), layer.attention if len(kinds) > 1 else None)
            for number, layer in enumerate(model.layers)
        ],
        schema={"layer": pl.Int32(), "layer_kind": pl.String(), "attention_kind": pl.String()},
        orient="row",
    )


def _by_place(op: Op, mla: Mla | None) -> list[Op]:
    """Split the products that latent attention absorbs: W_UK is done with the queries' projections, W_UV with o_proj.

    Of H heads, W_UK is [nope, r] and turns nope values of each query into r; W_UV is [r, v].
    """
    if op.name != "absorb" or mla is None:
        return [op]
    weights, values = mla.nope + mla.v, mla.nope + 2 * mla.kv_rank + mla.v
    return [
        replace(
            op,
            name=name,
            role=role,
            flops=None if op.flops is None else op.flops * width / weights,
            weight_bytes=op.weight_bytes * width / weights,
            activation_bytes=op.activation_bytes * (width + mla.kv_rank) / values,
            kernels=1,
            notes=(note,),
        )
        for name, role, width, note in (
            ("absorb_k", "qkv_proj", mla.nope, "W_UK on the queries, as batched products in the activations' format"),
            ("absorb_v", "o_proj", mla.v, "W_UV on the outputs, as batched products in the activations' format"),
        )
    ]


def _row(workload: int, op: Op, ceilings: Ceilings | None) -> dict[str, Any]:
    compute, memory, more = _times(op, ceilings)
    return {
        "workload": workload,
        "role": op.role,
        "part": op.name if op.name in OWN_PARTS else "",
        "op": op.name,
        "optional": op.role == "norm" and op.kernels is None,
        "communication": op.collective is not None,
        "flops": op.flops,
        "bytes": op.wire_bytes if op.collective else op.bytes,
        "compute_ns": compute,
        "memory_ns": memory,
        "dtype": op.dtype,
        "notes": "\n".join((*op.notes, *_shape_note(op), *more)),
    }


def _times(op: Op, ceilings: Ceilings | None) -> tuple[float | None, float | None, tuple[str, ...]]:
    if ceilings is None:
        return None, None, ()
    if op.collective:
        link = ceilings.gpu.link_gbps
        if link is None or op.wire_bytes is None:
            return None, None, (f"the bandwidth between GPUs is unknown for {ceilings.gpu.name}",)
        name = f"{op.collective} over {op.ranks} ranks at {link:g} GB/s; measured time includes waiting for others"
        return 0.0, op.wire_bytes / link, (name,)
    peak = ceilings.peak_tflops(op.dtype)
    memory = op.memory_ns(ceilings.gpu.bandwidth_gbps)
    if peak is not None:
        return op.compute_ns(peak), memory, ()
    if op.m is None and op.role != "attention":
        return 0.0, memory, ()
    return None, memory, (f"no peak of {op.dtype} is known for {ceilings.gpu.name}",)


def _shape_note(op: Op) -> tuple[str, ...]:
    if op.m is None:
        return ()
    tiles = ""
    if op.executed_flops and op.flops and op.executed_flops > 1.1 * op.flops:
        tiles = f"; tiles compute {op.executed_flops / op.flops:.1f} times the FLOP that the result needs"
    return (f"{op.name}: {op.m} rows x {op.k} -> {op.n}{tiles}",)
