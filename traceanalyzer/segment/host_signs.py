"""What operators and Python frames on the host tell of a step: how many tokens and sequences, a cache, a sampler.

Needs a recording with shapes (record_shapes) or with stacks; without them every sign is absent.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import polars as pl

from traceanalyzer.segment.tokens import IntArray
from traceanalyzer.trace import Trace

_PRODUCTS = r"^aten::(mm|addmm)$|^(_C|aiter|sgl_kernel|vllm)::\w*(gemm|linear|_mm|scaled_mm)\w*$"
_ATTENTION = r"[Aa]ttention|attn|_fa[23]_|mha|mla"
_SHAPED = rf"{_PRODUCTS}|{_ATTENTION}|^aten::(embedding|argmax|multinomial)$"
_CACHED = r"reshape_and_cache|concat_and_cache|store_(kv)?cache|kv_cache_update|with_kv_?cache|set_kv_buffer"
_SAMPLED = r"^aten::(argmax|multinomial|exponential_)$|sampling_from|sample_(token|recovered)"
_KEEPS_CACHE = r"transformers/cache_utils\.py\(\d+\): update$"
_GENERATES = r"transformers/generation/utils\.py\(\d+\): (_sample|_beam_search|_prefill|generate|_greedy_search)$"
_WIDE = 4096
"""Outputs that a product to logits has at minimum. Chosen, not fitted: below the vocabularies of language models."""
_WIDER = 4
"""A product to logits is at minimum so many times as wide as its input. Chosen, not fitted: feed-forwards with gate and
up joined reach 2 x 4 at most with a width below _WIDE."""
_MOST_OPS = 5_000_000
"""Operators that are looked at; bounds the work. Chosen, not fitted."""
_COLUMNS = ("kind", "tokens", "sequences", "query", "keys", "width")
_EMBEDDING, _PRODUCT, _HEAD, _MIXING, _CACHE, _SAMPLER = range(6)


@dataclass(frozen=True)
class StepHostSigns:
    """What the host's events within one step tell; None where they do not.

    Attributes:
        tokens: rows of most products, or of the embedding.
        sequences: sequences that the attention or the embedding keeps apart.
        heads: rows of the product to the logits, or of the sampling: one per sequence that goes on.
        query, keys: length of a sequence's queries and of its keys, where the attention sees sequences apart.
        caches, samples: whether an operator or frame writes to a cache of keys and values, or picks a token.
        padded: whether the embedding's input is laid out [sequences, tokens].
    """

    tokens: int | None = None
    sequences: int | None = None
    heads: int | None = None
    query: int | None = None
    keys: int | None = None
    caches: bool = False
    samples: bool = False
    padded: bool = False

    @property
    def ratio(self) -> float | None:
        """Tokens per sequence."""
        return self.tokens / self.sequences if self.tokens is not None and self.sequences else None


NOTHING = StepHostSigns()


@dataclass(frozen=True, eq=False)
class HostEvents:
    """Operators and frames that tell something, in order of their end: columns end_ns, thread and those of a sign.

    Attributes:
        signs: the events.
        generates: whether Python frames of a generating loop were recorded.
        joins: whether the engine runs prompts and decoding sequences in one step (vLLM does).
    """

    signs: pl.DataFrame
    generates: bool
    joins: bool


def read_host_events(trace: Trace) -> HostEvents:
    """Return the operators and frames of a trace that tell what a step does."""
    category, name = pl.col("cat").cast(pl.String), pl.col("name").cast(pl.String)
    frames = trace.events.filter(category == "python_function")
    thread = pl.concat_str(pl.col("pid").cast(pl.String), pl.lit("/"), pl.col("tid").cast(pl.String))
    end = pl.col("start_ns") + pl.col("dur_ns")
    plain = [pl.lit(None, dtype=pl.Int64).alias(column) for column in _COLUMNS[1:]]
    cached = frames.filter(name.str.contains(_KEEPS_CACHE)).select(
        end.alias("end_ns"), thread.alias("thread"), pl.lit(_CACHE, dtype=pl.Int64).alias("kind"), *plain
    )
    # Names are few and events many: names are matched once each.
    cpu_ops = trace.events.filter(category == "cpu_op")
    distinct = cpu_ops.select(name.alias("name")).unique().collect()["name"]
    telling = distinct.filter(distinct.str.contains(f"{_SHAPED}|{_CACHED}|{_SAMPLED}"))
    ops = (
        cpu_ops.select(
            end.alias("end_ns"), thread.alias("thread"), name.alias("name"), pl.col("input_dims").cast(pl.String)
        )
        .filter(pl.col("name").is_in(telling.implode()))
        .head(_MOST_OPS)
    )
    table = ops.select("name", "input_dims").unique().collect()
    rows = [(op, dims, *sign) for op, dims in table.iter_rows() for sign in _signs(op, dims)]
    schema = {"name": pl.String, "input_dims": pl.String, **dict.fromkeys(_COLUMNS, pl.Int64)}
    meanings = pl.LazyFrame(rows, schema=schema, orient="row")
    joined = ops.join(meanings, on=["name", "input_dims"], how="inner", nulls_equal=True)
    signs = pl.concat([joined.select("end_ns", "thread", *_COLUMNS), cached]).sort("end_ns").collect()
    generates = not frames.filter(name.str.contains(_GENERATES)).head(1).collect().is_empty()
    joins = bool(table["name"].str.starts_with("vllm::").any())
    return HostEvents(signs, generates, joins)


Sign = tuple[int, int | None, int | None, int | None, int | None, int | None]
"""Values of _COLUMNS."""


def _signs(name: str, dims: str | None) -> list[Sign]:
    """What an operator with inputs of these shapes tells."""
    told: list[Sign] = []
    if re.search(_CACHED, name):
        told.append((_CACHE, None, None, None, None, None))
    shapes = _shapes(dims)
    if re.search(_SAMPLED, name):
        rows = shapes[0][0] if shapes and len(shapes[0]) == 2 and shapes[0][1] >= _WIDE else None
        told.append((_SAMPLER, None, rows, None, None, None))
    if not shapes:
        return told
    if name == "aten::embedding" and len(shapes) > 1 and shapes[1]:
        ids, weights = sorted(shapes[:2], key=prod)
        apart = len(ids) == 2
        told.append((_EMBEDDING, prod(ids), ids[0] if apart else None, ids[1] if apart else None, None, weights[0]))
    elif re.search(_PRODUCTS, name):
        told += _product(shapes)
    elif re.search(_ATTENTION, name):
        told += _attention(shapes)
    return told


def _shapes(dims: str | None) -> list[list[int]]:
    """Shapes of the inputs; what is no tensor has none."""
    try:
        shapes = json.loads(dims) if dims else []
    except ValueError:
        return []
    if not isinstance(shapes, list):
        return []
    return [
        shape if isinstance(shape, list) and all(isinstance(n, int) and n > 0 for n in shape) else []
        for shape in shapes
    ]


def _product(shapes: list[list[int]]) -> list[Sign]:
    """Rows and width of a product of activations [rows, k] and weights [k, n] or [n, k]."""
    matrices = [shape for shape in shapes if len(shape) == 2]
    # What stands before the activations is an output buffer, whose width is not the weights' depth.
    for left, right in pairwise(matrices):
        if left[1] in right:
            width = right[0] if right[1] == left[1] else right[1]
            kind = _HEAD if width >= max(_WIDE, _WIDER * left[1]) else _PRODUCT
            return [(kind, left[0], None, None, None, width)]
    return []


def _attention(shapes: list[list[int]]) -> list[Sign]:
    """Tokens and sequences of an attention: queries [tokens, heads, size] with the sequences' borders (one more than
    sequences) and lengths, or queries and keys [sequences, heads, tokens, size]."""
    at = next((number for number, shape in enumerate(shapes) if len(shape) > 2), None)
    if at is None:
        return []
    queries = shapes[at]
    if len(queries) == 4:
        keys = next((shape for shape in shapes[at + 1 :] if len(shape) == 4), None)
        return [] if keys is None else _apart(queries, keys)
    lengths = [shape[0] for shape in shapes if len(shape) == 1]
    sequences = next((two for one, two in pairwise(lengths) if one == two + 1), None)
    return [(_MIXING, queries[0], sequences, None, None, None)]


def _apart(queries: list[int], keys: list[int]) -> list[Sign]:
    """The same of [sequences, heads, tokens, size] or [sequences, tokens, heads, size].

    Tokens are the axis on which queries and keys differ, or where they do not, the longer one.
    """
    if keys[0] != queries[0] or keys[3] != queries[3]:
        return []
    axis = 2 if queries[1] == keys[1] else 1
    if queries[1:3] == keys[1:3] and queries[1] > queries[2]:
        axis = 1
    return [(_MIXING, None, queries[0], queries[axis], keys[axis], None)]


def signs_of_steps(host: HostEvents, first_launches: IntArray, threads: set[str]) -> dict[int, StepHostSigns]:
    """Return the signs of each step that has any.

    An operator belongs to the step whose first launch came before its end: the one that launches a step's first kernel
    begins before that launch.

    Args:
        host: what the host tells.
        first_launches: start of each step's first launch, ascending, in ns.
        threads: those that launched work on the device; of others nothing is taken where these tell something.
    """
    signs = host.signs
    own = signs.filter(pl.col("thread").is_in(sorted(threads)))
    signs = own if not own.is_empty() else signs
    if signs.is_empty() or not len(first_launches):
        return {}
    step = np.searchsorted(first_launches, signs["end_ns"].to_numpy(), side="right") - 1
    kind = pl.col("kind")

    def of(column: str, *kinds: int) -> pl.Expr:
        return pl.col(column).filter(kind.is_in(kinds)).drop_nulls()

    told = (
        signs.with_columns(step=pl.Series(step))
        .filter(pl.col("step") >= 0)
        .group_by("step")
        .agg(
            rows=of("tokens", _PRODUCT).mode().max(),
            ids=of("tokens", _EMBEDDING).sort_by(of("width", _EMBEDDING)).last(),
            mixed=of("tokens", _MIXING).mode().max(),
            sequences=of("sequences", _MIXING).mode().max(),
            batch=pl.col("sequences").filter(kind == _EMBEDDING).drop_nulls().first(),
            length=of("query", _EMBEDDING).first(),
            heads=of("tokens", _HEAD).last(),
            head_width=of("width", _HEAD).last(),
            sampled=of("sequences", _SAMPLER).last(),
            query=of("query", _MIXING).mode().max(),
            keys=of("keys", _MIXING).mode().max(),
            caches=(kind == _CACHE).any(),
            samples=(kind == _SAMPLER).any(),
        )
    )
    return {row["step"]: _joined(row) for row in told.iter_rows(named=True)}


def _joined(row: dict[str, Any]) -> StepHostSigns:
    padded = row["batch"] is not None
    tokens = row["ids"] if padded else next((row[c] for c in ("mixed", "rows", "ids") if row[c] is not None), None)
    return StepHostSigns(
        tokens=tokens,
        sequences=row["batch"] if padded else row["sequences"],
        heads=row["sampled"] if row["sampled"] is not None else row["heads"],
        query=row["length"] if padded else row["query"],
        keys=row["keys"],
        caches=row["caches"],
        samples=row["samples"],
        padded=padded,
    )
