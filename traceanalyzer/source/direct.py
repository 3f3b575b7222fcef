"""Sources that a recording states: the kernel's own launch, PyTorch's notes on graph nodes, a capture of the graph."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import polars as pl

from traceanalyzer.roofline.graph_capture import join_captures, of_captures
from traceanalyzer.source.chains import CHAIN_COLUMNS, CHAIN_SCHEMA, CHAIN_TEXTS, chains
from traceanalyzer.trace import Trace

SOURCE_COLUMNS = (*CHAIN_COLUMNS, "via", "why_none")
"""What is known of where a kernel comes from; `via` is how (launch, annotation, capture), None where it is unknown, and
`why_none` why."""

_LAYER = re.compile(r"\.\d+(?=\.|$)")
NO_LAUNCH, GRAPH, NO_STACKS = "no_launch", "graph_without_source", "no_stacks"


def direct_sources(
    trace: Trace,
    kernels: pl.DataFrame,
    captures: Sequence[Trace] = (),
    notes: dict[int, str] | None = None,
) -> tuple[pl.DataFrame, list[str]]:
    """Return the sources that the recording states, one row per kernel in their order, and what to say about a capture.

    Args:
        trace: the recording.
        kernels: rows of ``Segmentation.events`` with `tokens` of their steps.
        captures: recordings of the capture of its graphs.
        notes: module path by graph node, from a file of annotations.

    Returns:
        index and SOURCE_COLUMNS.
    """
    own = _launched(trace, kernels)
    annotated = _annotated(kernels, notes or {})
    joined = own.join(annotated, on="index", how="left", maintain_order="left")
    said: list[str] = []
    schema = {"index": pl.Int64(), **{f"{name}_captured": dtype for name, dtype in CHAIN_SCHEMA.items()}}
    captured = pl.DataFrame(schema=schema)
    if captures:
        carried, said = join_captures(kernels, of_captures(captures, with_ops), CHAIN_COLUMNS)
        captured = carried.rename({name: f"{name}_captured" for name in CHAIN_COLUMNS})
    joined = joined.join(captured, on="index", how="left", maintain_order="left")
    by_note, by_launch = pl.col("note").is_not_null(), pl.any_horizontal(pl.col(*CHAIN_TEXTS).is_not_null())
    by_capture = pl.any_horizontal(pl.col(f"{name}_captured").is_not_null() for name in CHAIN_TEXTS)
    via = (
        pl.when(by_note)
        .then(pl.lit("annotation"))
        .when(by_launch)
        .then(pl.lit("launch"))
        .when(by_capture)
        .then(pl.lit("capture"))
    )
    why = (
        pl.when(pl.col("graph"))
        .then(pl.lit(GRAPH))
        .when(pl.col("launched_ns").is_null())
        .then(pl.lit(NO_LAUNCH))
        .otherwise(pl.lit(NO_STACKS))
    )
    stated = [pl.coalesce(name, f"{name}_captured").alias(name) for name in CHAIN_COLUMNS if name != "modules"]
    modules = pl.coalesce("note", "modules", "modules_captured").alias("modules")
    sources = joined.with_columns(*stated, modules, via=via).with_columns(
        why_none=pl.when(pl.col("via").is_null()).then(why)
    )
    return sources.select("index", *SOURCE_COLUMNS), said


def _launched(trace: Trace, kernels: pl.DataFrame) -> pl.DataFrame:
    """Add what runs around the launch of every kernel that was launched by itself, and of its op where nothing does."""
    if trace.cpu_only:  # an op launches itself
        own = kernels.select("index", "pid", "tid", graph=pl.lit(False), launched_ns="start_ns", op="name")
        framed = chains(trace, own.drop("op")).select("index", *(name for name in CHAIN_COLUMNS if name != "op"))
        joined = own.join(framed, on="index", how="left", maintain_order="left")
        return joined.with_columns(pl.col("op").cast(pl.String)).select("index", "graph", "launched_ns", *CHAIN_COLUMNS)
    launches = trace.launches.select(
        "correlation", "pid", "tid", launched_ns="start_ns", launch_external="external_id"
    ).unique("correlation", keep="first", maintain_order=True)
    alone = kernels.select("index", "correlation", "external_id", graph=pl.col("graph").fill_null(False)).join(
        launches, on="correlation", how="left", maintain_order="left"
    )
    started = alone.filter(~pl.col("graph"), pl.col("launched_ns").is_not_null())
    around = chains(trace, started).select("index", *CHAIN_COLUMNS)
    joined = alone.join(around, on="index", how="left", maintain_order="left")
    ops = ops_by_external_id(trace)
    external = pl.when(~pl.col("graph")).then(pl.coalesce("external_id", "launch_external"))
    named = joined.with_columns(external=external).join(ops, on="external", how="left", maintain_order="left")
    return named.with_columns(op=pl.coalesce("op", "op_named")).select("index", "graph", "launched_ns", *CHAIN_COLUMNS)


def ops_by_external_id(trace: Trace) -> pl.DataFrame:
    """Return the innermost op of each External id: external, op_named."""
    return (
        trace.events_of("cpu_op")
        .filter(pl.col("external_id").is_not_null(), pl.col("name").is_not_null())
        .select("start_ns", "index", external="external_id", op_named=pl.col("name").cast(pl.String))
        .sort("start_ns", "index")
        .unique("external", keep="last", maintain_order=True)
        .select("external", "op_named")
        .collect()
    )


def with_ops(capture: Trace, launches: pl.DataFrame) -> pl.DataFrame:
    """Add CHAIN_COLUMNS to the launches of a capture."""
    where = launches.with_columns(pl.col("thread").str.split_exact("/", 1).alias("parts")).with_columns(
        pid=pl.col("parts").struct[0], tid=pl.col("parts").struct[1]
    )
    named = chains(capture, where).drop("pid", "tid", "parts")
    ops = ops_by_external_id(capture)
    joined = named.join(ops, left_on="external_id", right_on="external", how="left", maintain_order="left")
    return joined.with_columns(op=pl.coalesce("op", "op_named")).drop("op_named")


def _annotated(kernels: pl.DataFrame, notes: dict[int, str]) -> pl.DataFrame:
    """Return index and note: the module path that PyTorch, or a file, says a kernel's graph node belongs to."""
    said = kernels.select("index", "graph_node", pl.col("extra").cast(pl.String)).with_columns(
        note=pl.col("extra").map_elements(_note_in, return_dtype=pl.String, skip_nulls=True)
    )
    given = pl.DataFrame(
        {"graph_node": list(notes), "given": list(notes.values())},
        schema={"graph_node": pl.Int64(), "given": pl.String()},
    )
    return said.join(given, on="graph_node", how="left", maintain_order="left").select(
        "index", note=pl.coalesce("note", "given")
    )


def _note_in(extra: str) -> str | None:
    """Read the note in a kernel's args: ``fqn_map``, ``name`` or ``str``."""
    try:
        args = json.loads(extra)
    except ValueError:
        return None
    return note_of(args) if isinstance(args, dict) else None


def note_of(args: dict[str, Any]) -> str | None:
    """Return what annotations of a graph node say of its module: the first of fqn_map, module_fqn, name and str.

    Numbers of layers become ``*``: what is said is the same of all of them.
    """
    for key in ("fqn_map", "module_fqn", "name", "str"):
        value = args.get(key)
        if isinstance(value, dict) and value:
            value = next(iter(value.values()))
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, str) and value:
            return _LAYER.sub(".*", value)
    return None
