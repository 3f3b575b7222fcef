"""The join of work with measured kernels: explicit shapes first, else the model's op of the same layer and role."""

from __future__ import annotations

import polars as pl

from traceanalyzer.names import parse
from traceanalyzer.roofline.ceilings import Ceilings
from traceanalyzer.roofline.role_parts import REDUCES
from traceanalyzer.roofline.shape_work import ShapeWork, shape_work

GROUP = ("device", "step", "layer", "role", "part")
"""Kernels that share one piece of the model's work."""

OPS = ["workload", "layer", "role", "part"]
"""What tells a piece of the model's work."""

_SUMS = ["group_ns", "group_kernels", "shaped"]

WORK = ("flops", "bytes", "compute_ns", "memory_ns", "floor_ns", "reachable_ns")
"""Amounts of work; a group's are spread over its kernels in proportion to their time."""


def with_shape_work(kernels: pl.DataFrame) -> pl.DataFrame:
    """Add what explicit shapes say: what, shape_flops, shape_bytes, shape_dtype, note, m, n, k; None where unknown.

    Of the kernels of one call, those that compute share its work by their time; its helpers get none.
    """
    keys = ["op", "dims", "types", "concrete", "name"]
    distinct = kernels.filter(pl.col("dims").is_not_null()).select(keys).unique()
    work = [shape_work(*row) for row in distinct.iter_rows()]
    table = distinct.with_columns(
        what=_column(work, "what", pl.String()),
        shape_flops=_column(work, "flops", pl.Float64()),
        shape_bytes=_column(work, "bytes", pl.Float64()),
        shape_dtype=_column(work, "dtype", pl.String()),
        note=_column(work, "note", pl.String()),
        m=_column(work, "m", pl.Int64()),
        n=_column(work, "n", pl.Int64()),
        k=_column(work, "k", pl.Int64()),
        computes=pl.Series(
            [_computes(name, one) for name, one in zip(distinct["name"], work, strict=True)], dtype=pl.Boolean()
        ),
    )
    joined = kernels.join(table, on=keys, how="left", maintain_order="left", nulls_equal=True)
    # Replays of one graph share the captured calls, so that the launch tells them apart; eager calls are their own.
    call = ["device", "step", "correlation_of_graph", "call"]
    joined = joined.with_columns(
        pl.col("computes").fill_null(False), correlation_of_graph=pl.when("graph").then("correlation")
    )
    # Grouped and joined: the same as windows over four columns takes seconds on a large trace.
    calls = (
        joined.filter(pl.col("call").is_not_null())
        .group_by(call)
        .agg(
            computing=pl.col("computes").any(),
            computing_ns=(pl.col("dur_ns") * pl.col("computes")).sum(),
            ns=pl.col("dur_ns").sum(),
        )
    )
    joined = joined.join(calls, on=call, how="left", maintain_order="left", nulls_equal=True)
    # Where no kernel of a call is known to compute, all of them share its work.
    main = pl.col("computes") | ~pl.col("computing")
    share = pl.col("dur_ns") / pl.when("computing").then("computing_ns").otherwise("ns")
    known = pl.col("what").is_not_null() & pl.col("call").is_not_null() & main
    return joined.with_columns(
        what=pl.when(known).then("what"),
        note=pl.when(known).then("note"),
        shape_flops=pl.when(known).then(pl.col("shape_flops") * share),
        shape_bytes=pl.when(known).then(pl.col("shape_bytes") * share),
    ).drop("computes", "correlation_of_graph", "computing", "computing_ns", "ns")


def _column(work: list[ShapeWork | None], field: str, dtype: pl.DataType) -> pl.Series:
    return pl.Series([None if one is None else getattr(one, field) for one in work], dtype=dtype)


def _computes(name: str, work: ShapeWork | None) -> bool:
    if work is None:
        return False
    if work.what == "gemm":
        return parse(name).kind == "gemm"
    return not (work.what == "attention" and REDUCES.search(name))


def priced(work: pl.DataFrame, ceilings: Ceilings | None) -> pl.DataFrame:
    """Add floor_ns and reachable_ns to rows with compute_ns, memory_ns, dtype and communication; None if either is."""
    compute, memory = pl.col("compute_ns"), pl.col("memory_ns")
    shares = ceilings.compute_share if ceilings else {}
    of_peak = pl.col("dtype").replace_strict(shares, default=1.0, return_dtype=pl.Float64)
    of_memory = pl.when("communication").then(1.0).otherwise(ceilings.memory_share if ceilings else 1.0)
    known = compute.is_not_null() & memory.is_not_null()
    return work.with_columns(
        floor_ns=pl.when(known).then(pl.max_horizontal(compute, memory)),
        reachable_ns=pl.when(known).then(pl.max_horizontal(compute / of_peak, memory / of_memory)),
    )


def join_work(kernels: pl.DataFrame, ops: pl.DataFrame | None, ceilings: Ceilings | None) -> pl.DataFrame:
    """Give each kernel its share of the work.

    Args:
        kernels: with GROUP, workload, dur_ns and the columns of ``with_shape_work`` and ``with_messages``.
        ops: of ``model_ops``; None without a model.
        ceilings: the roofs; None without a GPU.

    Returns:
        kernels with WORK, dtype, source (``shapes``, ``model`` or None), notes, communication; what the model says
        where shapes took precedence, as model_flops and model_bytes; and how a kernel takes part in the model's
        work, for ``reachable``: its share of it, and whether optional ops are left out (None without a model).
    """
    from_shapes = _with_messages(_priced_shapes(kernels, ceilings), ceilings, whole=ops is not None)
    grouped = _with_sums(
        from_shapes,
        group_ns=pl.col("dur_ns").sum(),
        group_kernels=pl.len(),
        shaped=(pl.col("source") == "shapes").fill_null(False).any(),
    )
    if ops is None:
        nothing = {name: pl.lit(None, dtype=pl.Float64) for name in ("model_flops", "model_bytes", "share")}
        return grouped.with_columns(**nothing, fused=pl.lit(None, dtype=pl.Boolean)).drop(_SUMS)
    table = _by_role(priced(ops, ceilings))
    joined = grouped.join(table, on=OPS, how="left", maintain_order="left", nulls_equal=True, suffix="_model")
    share = pl.col("dur_ns") / pl.col("group_ns")
    # Ops that may be fused are so where the others already account for every kernel.
    fused = (pl.col("required") >= 1) & (pl.col("group_kernels") <= pl.col("required"))
    amounts = {name: pl.when(fused).then(f"{name}_required").otherwise(f"{name}_model") * share for name in WORK}
    # One kernel with shapes is enough: the model's work of the group would count what it did twice.
    use = ~pl.col("shaped") & pl.col("required").is_not_null()
    return joined.with_columns(
        *(pl.when(use).then(amount).otherwise(pl.col(name)).alias(name) for name, amount in amounts.items()),
        dtype=pl.when(use).then("dtype_model").otherwise("dtype"),
        source=pl.when(use).then(pl.lit("model")).otherwise("source"),
        notes=pl.when(use).then("notes_model").otherwise("notes"),
        communication=pl.when(use).then("communication_model").otherwise("communication"),
        model_flops=pl.when("shaped").then(amounts["flops"]),
        model_bytes=pl.when("shaped").then(amounts["bytes"]),
        share=share,
        fused=fused,
    ).select(*grouped.drop(_SUMS).columns, "model_flops", "model_bytes", "share", "fused")


def reachable(kernels: pl.DataFrame, ops: pl.DataFrame | None, ceilings: Ceilings) -> pl.DataFrame:
    """Set reachable_ns anew, under other achievable roofs. All else rests on the peaks and stays.

    Args:
        kernels: of ``join_work``.
        ops: as they were given to it.
        ceilings: of the same GPU, with other achievable roofs.
    """
    own = priced(kernels.select("compute_ns", "memory_ns", "dtype", "communication"), ceilings)["reachable_ns"]
    if ops is None:
        return kernels.with_columns(own)
    names = ("reachable_ns_required", "reachable_ns_model")
    table = _by_role(priced(ops, ceilings)).select(*OPS, *names)
    told = kernels.select(*OPS, "share", "fused").join(
        table, on=OPS, how="left", maintain_order="left", nulls_equal=True
    )
    modelled = told.select(pl.when("fused").then(names[0]).otherwise(names[1]) * pl.col("share")).to_series()
    by_model = pl.col("source") == "model"
    return kernels.with_columns(reachable_ns=pl.when(by_model).then(modelled).otherwise(own))


def _priced_shapes(kernels: pl.DataFrame, ceilings: Ceilings | None) -> pl.DataFrame:
    peaks: dict[str, float] = {}
    if ceilings is not None:
        for dtype in kernels["shape_dtype"].drop_nulls().unique().to_list():
            peak = ceilings.peak_tflops(dtype)
            if peak is not None:
                peaks[dtype] = peak
    gbps = ceilings.gpu.bandwidth_gbps if ceilings else None
    peak_of = pl.col("shape_dtype").replace_strict(peaks, default=None, return_dtype=pl.Float64)
    simple = ~pl.col("what").is_in(["gemm", "attention"])
    compute = pl.col("shape_flops") / peak_of / 1e3
    with_times = kernels.with_columns(
        flops=pl.col("shape_flops"),
        bytes=pl.col("shape_bytes"),
        compute_ns=pl.when(simple & compute.is_null() & (gbps is not None)).then(0.0).otherwise(compute),
        memory_ns=pl.col("shape_bytes") / gbps if gbps else pl.lit(None, dtype=pl.Float64),
        dtype=pl.col("shape_dtype"),
        communication=pl.col("role") == "communication",
        source=pl.when(pl.col("what").is_not_null()).then(pl.lit("shapes")),
        notes=pl.col("note"),
    ).with_columns(
        compute_ns=pl.when(pl.col("what").is_not_null()).then("compute_ns"),
        dtype=pl.when(pl.col("what").is_not_null()).then("dtype"),
    )
    return priced(with_times, ceilings)


def _with_messages(kernels: pl.DataFrame, ceilings: Ceilings | None, *, whole: bool) -> pl.DataFrame:
    """Give collectives the bytes that the trace states, over the bandwidth of the GPU's links.

    Args:
        kernels: of ``_priced_shapes``.
        ceilings: the roofs; None without a GPU.
        whole: leave a group to the model where the trace does not state all of its collectives.
    """
    stated = pl.col("wire_bytes").is_not_null()
    if not kernels["wire_bytes"].count():
        return kernels
    unstated = (~stated & (pl.col("role") == "communication")).fill_null(False)
    use = stated & ~pl.col("partly_stated")
    marked = _with_sums(kernels, partly_stated=unstated.any() if whole else pl.lit(False))
    link = ceilings.gpu.link_gbps if ceilings else None
    unknown = pl.lit("" if link or not ceilings else f"\nthe bandwidth between GPUs is unknown for {ceilings.gpu.name}")
    time = pl.col("wire_bytes") / link if link else pl.lit(None, dtype=pl.Float64)
    values = {
        "flops": pl.lit(0.0),
        "bytes": pl.col("wire_bytes"),
        "compute_ns": pl.lit(0.0),
        "memory_ns": time,
        "floor_ns": time,
        "reachable_ns": time,
        "source": pl.lit("shapes"),
        "notes": pl.col("message") + unknown,
    }
    return marked.with_columns(
        pl.when(use).then(value).otherwise(pl.col(name)).alias(name) for name, value in values.items()
    ).drop("partly_stated")


def _with_sums(kernels: pl.DataFrame, **sums: pl.Expr) -> pl.DataFrame:
    """Add what is summed over each group to its kernels: by a join, since windows over five columns take seconds."""
    return kernels.join(
        kernels.group_by(GROUP).agg(**sums), on=GROUP, how="left", maintain_order="left", nulls_equal=True
    )


def _by_role(ops: pl.DataFrame) -> pl.DataFrame:
    """Sum ops that kernels cannot be told apart for: columns of WORK for all of them, and for the required ones."""

    def strict_sum(name: str, only: pl.Expr) -> pl.Expr:
        chosen = pl.col(name).filter(only)
        return pl.when(chosen.is_null().any()).then(None).otherwise(chosen.sum())

    required = ~pl.col("optional")
    return ops.group_by("workload", "layer", "role", "part", maintain_order=True).agg(
        *(strict_sum(name, pl.col("optional").is_not_null()).alias(f"{name}_model") for name in WORK),
        *(strict_sum(name, required).alias(f"{name}_required") for name in WORK),
        required=required.sum(),
        dtype_model=pl.col("dtype").sort_by(pl.col("flops").fill_null(0.0)).last(),
        notes_model=pl.col("notes").filter(pl.col("notes") != "").unique(maintain_order=True).str.join("\n"),
        communication_model=pl.col("communication").any(),
    )
