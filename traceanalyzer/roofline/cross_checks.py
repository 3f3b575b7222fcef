"""Cross-checks of the model with what the trace says itself."""

from __future__ import annotations

import polars as pl

from traceanalyzer.findings import Finding

TOLERANCE = 0.05
"""Difference between the FLOP of shapes and of the model that is worth a finding. Chosen, not fitted."""

LEAST_APART = 0.5
"""Share of the attention layers that must be of another kind in the trace to be worth a finding. Chosen."""


def cross_checks(kernels: pl.DataFrame) -> list[Finding]:
    """Compare the FLOP of matrix products and attention by the trace's shapes with those of the model, by role."""
    compared = (
        kernels.filter(pl.col("what").is_in(["gemm", "attention"]), pl.col("model_flops") > 0)
        .group_by("role", maintain_order=True)
        .agg(
            shapes=pl.col("flops").sum(),
            model=pl.col("model_flops").sum(),
            note=pl.col("note").first(),
        )
        .with_columns(ratio=pl.col("shapes") / pl.col("model"))
        .filter((pl.col("ratio") - 1).abs() > TOLERANCE)
    )
    return [
        Finding(
            "shape_mismatch",
            f"{row['role']}: the shapes in the trace ({row['note']}) need {row['ratio']:.2f} times the FLOP of the "
            "model. The shapes are used; the model, its parallel layout or the workload is not what ran.",
        )
        for row in compared.iter_rows(named=True)
    ]


def message_checks(kernels: pl.DataFrame) -> list[Finding]:
    """Compare the bytes of collectives that the trace states with those of the model."""
    both = kernels.filter(pl.col("role") == "communication", pl.col("source") == "shapes", pl.col("model_bytes") > 0)
    stated, modelled = float(both["bytes"].sum()), float(both["model_bytes"].sum())
    if both.is_empty() or abs(stated / modelled - 1) <= TOLERANCE:
        return []
    text = (
        f"communication: the messages that the trace states ({both['message'][0]}) are {stated / modelled:.2f} times "
        "the bytes of the model. The trace is believed; the parallel layout or the workload is not what ran."
    )
    return [Finding("shape_mismatch", text)]


def kind_checks(kernels: pl.DataFrame) -> list[Finding]:
    """Say where attention times tell other layers to be the sliding ones than the model does."""
    if "attention_kind" not in kernels.columns:
        return []
    told = (
        kernels.filter(pl.col("role") == "attention", pl.col("trace_kind").is_in(["sliding", "full"]))
        .filter(pl.col("attention_kind").is_in(["sliding", "full"]))
        .select("layer", "trace_kind", "attention_kind")
        .unique()
    )
    if told.is_empty():
        return []
    apart = told.filter(pl.col("trace_kind") != pl.col("attention_kind"))["layer"].n_unique()
    if apart <= LEAST_APART * told["layer"].n_unique():
        return []
    text = (
        f"Attention is faster in the layers that the model calls full ({apart} of {told['layer'].n_unique()} layers "
        "differ): the model or the order of its layers is not what ran."
    )
    return [Finding("kind_mismatch", text)]
