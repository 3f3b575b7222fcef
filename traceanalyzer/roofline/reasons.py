"""Why the work of some kernels is unknown, and what to pass."""

from __future__ import annotations

from typing import Any

import polars as pl

from traceanalyzer.model import Architecture
from traceanalyzer.roofline.role_parts import MIXED_ROLES
from traceanalyzer.roofline.workloads import PASS_WORKLOAD

PASS_MODEL = "no shapes in the trace and no model: pass --model NAME or config.json"
PASS_GPU = "the GPU is unknown: pass --gpu NAME"
PASS_CONTEXT = "the context length is unknown: pass --kv-tokens"
PART_UNKNOWN = "part of its work is unknown"
NO_SHAPE = "no shapes in the trace, and no such op in the model"


def reasons_of(kernels: pl.DataFrame, *, model: Architecture | None, gpu: bool) -> dict[int, str]:
    """Return row number -> why it is unknown what limits it, for rows where there is something to say.

    Args:
        kernels: of ``with_row_numbers``.
        model: the model; None without.
        gpu: whether the GPU is known.
    """
    rows = kernels.group_by("row").agg(
        pl.col("role").first(),
        pl.col("part").first(),
        pl.col("known").first(),
        work=pl.col("workload").is_not_null().any() if "workload" in kernels.columns else pl.lit(False),
        fits=pl.col("fits").any() if "fits" in kernels.columns else pl.lit(False),
    )
    return {row["row"]: _reason(row, model, gpu) for row in rows.iter_rows(named=True)}


def _reason(row: dict[str, Any], model: Architecture | None, gpu: bool) -> str:
    if row["known"]:
        return PASS_CONTEXT if gpu and row["role"] == "attention" else PART_UNKNOWN if gpu else PASS_GPU
    if model is not None and row["part"] != f"{row['role']} reduce":
        return _not_in(model, row)
    if row["part"] == f"{row['role']} reduce":
        return "split-K / split-KV reduction"
    return PASS_MODEL


def _not_in(model: Architecture, row: dict[str, Any]) -> str:
    if not row["fits"]:
        return f"the blocks do not fit {model.name}"
    if not row["work"]:
        return PASS_WORKLOAD
    if row["role"] in MIXED_ROLES or row["role"] is None:
        return NO_SHAPE
    return f"{model.name} has no such op at this place"
