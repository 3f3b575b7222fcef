"""From a trace to what is to be tuned: the retunable kernel that can win most, its shape, and the commands to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from traceanalyzer.commands.tune.plan.bench_of import Bench, bench_of, executed_shape
from traceanalyzer.commands.tune.plan.candidates import (
    Candidate,
    Refusal,
    candidates_of,
    refuse,
    worth_listing,
)
from traceanalyzer.commands.tune.plan.products import Layout, with_products
from traceanalyzer.commands.tune.plan.row_counts import Flip, flips, rows_to_tune
from traceanalyzer.model import Architecture, candidates, expected_distinct
from traceanalyzer.names import Dtypes
from traceanalyzer.roofline import Request, Roofline, roofline
from traceanalyzer.roofline.facts import trace_facts
from traceanalyzer.roofline.scope import Scope, scope_of
from traceanalyzer.roofline.triton_cache import CompiledKernel, compiled_kernels
from traceanalyzer.segment import segment
from traceanalyzer.segment.selection import with_num_warps
from traceanalyzer.trace import Trace

MOST_MODELS = 3
"""So many models that would fit are named in commands."""

WEIGHTS_OF_ROLE = {
    "moe_gate_up": "experts",
    "moe_down": "experts",
    "gate_up": "ffn",
    "down": "ffn",
    "qkv_proj": "attention",
    "o_proj": "attention",
    "lm_head": "lm_head",
    "router": "router",
}


@dataclass(frozen=True)
class Target:
    """What to tune.

    Attributes:
        candidate: the kernel, its time and what a win is worth.
        m: rows to tune: those seen, then both sides of flips.
        flips: which of them are flips, and why.
        executed: (n, k) as the kernel runs them, padding included; null where the product is unknown.
        distinct: number of rows -> experts on this rank that are expected to get a token.
        dtypes: element types; from the name, else of the model's weights.
        compiled: what the Triton cache of the server says.
        num_warps: from the trace's launch, else from the cache; null where neither tells.
        tpot_share: worth over the time of an output token; null unless every step gives each sequence one token.
        bench: how it can be measured; null with ``no_bench``.
        no_bench: why none of the tune commands measures it.
        notes: what the figures rest on.
    """

    candidate: Candidate
    m: tuple[int, ...]
    flips: tuple[Flip, ...]
    executed: tuple[int, int] | None
    distinct: tuple[tuple[int, float], ...]
    dtypes: Dtypes
    compiled: CompiledKernel | None
    num_warps: int | None
    tpot_share: float | None
    bench: Bench | None
    no_bench: str | None
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Plan:
    """What to tune and what not.

    Attributes:
        target: null where nothing can be said to be worth it; ``reason`` says why.
        reason: why there is no target, and what to pass.
        refused: kernels with a noticeable share of the step that are not to be tuned, those worth most first.
        others: what to tune after the target, those worth most first.
        roofline: what it rests on.
        fitting_models: built-in models that would fit, where none was given or recognised.
    """

    target: Target | None
    reason: str | None
    refused: tuple[Refusal, ...]
    others: tuple[Candidate, ...]
    roofline: Roofline
    fitting_models: tuple[str, ...]

    @property
    def period_ns(self) -> float:
        """The step and the pause before it."""
        return self.roofline.period_ns


def plan(trace: Trace, request: Request | None = None, cache: Path | None = None) -> Plan:
    """Pick the retunable kernel with the largest headroom that pays.

    Args:
        trace: one rank's trace.
        request: what the user states.
        cache: TRITON_CACHE_DIR of the server.

    Raises:
        RooflineError: there are no such steps, or what is stated contradicts itself or the model.
        TraceError: the cache is no Triton cache.
    """
    asked = request or Request()
    found = roofline(trace, asked)
    scope = scope_of(trace, asked.phase, asked.step, every_phase=asked.every_phase)
    compiled = compiled_kernels(trace, cache) if cache else {}
    products, layout, notes = with_products(trace, asked, found, scope)
    launched = segment(trace).events.select("index", "graph", "thread_block")
    kernels = products.join(launched, on="index", how="left", maintain_order="left")
    ranked = candidates_of(found, kernels)
    open_ = [one for one in ranked if refuse(one, found.period_ns) is None]
    refused = tuple(
        Refusal(one, reason)
        for one in worth_listing(ranked, found.period_ns)
        if (reason := refuse(one, found.period_ns)) is not None
    )
    reason = _no_target(trace, found, open_, [refusal.candidate for refusal in refused])
    chosen = open_[0] if open_ and reason is None else None
    target = _target(trace, asked, found, chosen, layout, kernels, compiled, notes) if chosen else None
    return Plan(
        target=target,
        reason=reason,
        refused=refused,
        others=tuple(open_[1:] if target else open_),
        roofline=found,
        fitting_models=_fitting(trace, found, scope, kernels),
    )


def _no_target(trace: Trace, found: Roofline, open_: Sequence[Candidate], refused: Sequence[Candidate]) -> str | None:
    """Why nothing can be picked: work that may be larger is not known, nothing is known, or nothing pays."""
    missing = _missing(trace, found)
    unknown = [one for one in refused if one.kernel.retunable and one.worth_ns is None]
    best = open_[0].worth_ns or 0.0 if open_ else 0.0
    if missing and any(one.measured_ns > best for one in unknown):
        return f"which kernel could win most is not known. {missing}"
    if open_:
        return None
    if trace.cpu_only or not refused:
        return missing or "no kernel has a noticeable share of the step"
    if unknown:
        return f"what retunable kernels could win is not known: {unknown[0].why_unknown}"
    pays = "can pay" if any(one.kernel.retunable for one in refused) else "with a noticeable share can be retuned"
    return f"no kernel {pays}: the refused ones say why"


def _missing(trace: Trace, found: Roofline) -> str:
    if trace.cpu_only:
        return "The trace has CPU ops only: record GPU activity (ProfilerActivity.CUDA)."
    wanted = []
    if found.model is None:
        wanted.append("--model NAME or the path of its config.json")
    if found.ceilings is None:
        wanted.append("--gpu NAME (traceanalyzer gpus lists them)")
    return f"Pass {' and '.join(wanted)}." if wanted else ""


def _fitting(trace: Trace, found: Roofline, scope: Scope, kernels: pl.DataFrame) -> tuple[str, ...]:
    if found.model is not None or trace.cpu_only:
        return ()
    fitting = candidates(trace_facts(scope, kernels, world_size=trace.metadata.world_size))
    return tuple(one.architecture.name for one in fitting) if len(fitting) <= MOST_MODELS else ()


def _target(
    trace: Trace,
    request: Request,
    found: Roofline,
    chosen: Candidate,
    layout: Layout | None,
    kernels: pl.DataFrame,
    compiled: Mapping[str, CompiledKernel],
    notes: Sequence[str],
) -> Target:
    gpu = found.ceilings.gpu if found.ceilings else None
    vendor = gpu.vendor if gpu else None
    product, model = chosen.product, found.model
    moe = model.moe if model and product and product.experts else None
    flip = flips(chosen.kernel, vendor, moe.experts if moe else None, moe.top_k if moe else None) if product else ()
    rows = rows_to_tune(product.m, flip) if product else ()
    dtypes = _dtypes(chosen, model)
    executed, padding = executed_shape(chosen, layout.execution if layout else None, gpu)
    bench, no_bench = bench_of(chosen, dtypes, executed, layout.parallel.ep if layout else 1, vendor)
    cached = compiled.get(chosen.kernel.name)
    whole = found.decode and found.period_ns and chosen.worth_ns is not None
    return Target(
        candidate=chosen,
        m=rows,
        flips=tuple(one for one in flip if product and one.m not in product.m),
        executed=executed,
        distinct=_distinct(rows, chosen, model, request, layout),
        dtypes=dtypes,
        compiled=cached,
        num_warps=_num_warps(trace, kernels, chosen) or (cached.num_warps if cached else None),
        tpot_share=(chosen.worth_ns or 0.0) / found.period_ns if whole else None,
        bench=bench,
        no_bench=no_bench,
        notes=(*notes, *padding, *_graph_note(kernels, chosen)),
    )


def _graph_note(kernels: pl.DataFrame, chosen: Candidate) -> tuple[str, ...]:
    if not kernels.filter(pl.col("name") == chosen.kernel.name)["graph"].any():
        return ()
    return (
        "m counts what the scheduler sent; a graph runs the next batch size that was captured, which no trace tells",
    )


def _dtypes(chosen: Candidate, model: Architecture | None) -> Dtypes:
    """Element types from the name; where it has none, of the model."""
    told = chosen.kernel.dtypes
    which = WEIGHTS_OF_ROLE.get(chosen.role)
    if model is None or which is None:
        return told
    stored = getattr(model.weights, which)
    activation = model.activation.name if stored.activation_bytes >= 2 else stored.compute
    return Dtypes(
        output=told.output or model.activation.name,
        activation=told.activation or activation,
        weight=told.weight or stored.name,
    )


def _distinct(
    rows: Sequence[int], chosen: Candidate, model: Architecture | None, request: Request, layout: Layout | None
) -> tuple[tuple[int, float], ...]:
    """Experts on this rank that are expected to get a token, for every number of rows."""
    product = chosen.product
    if product is None or product.top_k is None or model is None or model.moe is None:
        return ()
    ep = layout.parallel.ep if layout else 1
    known = dict(product.distinct)
    fixed = request.routing.distinct is not None or request.routing.counts is not None
    return tuple(
        (m, known[m] if m in known else expected_distinct(model.moe.experts, product.top_k, tokens, skew) / ep)
        for m in rows
        for tokens, skew in [(m * ep / product.top_k, request.routing.skew)]
        if m in known or not fixed
    )


def _num_warps(trace: Trace, kernels: pl.DataFrame, chosen: Candidate) -> int | None:
    """Warps of a launch, where all launches of the kernel in that role have the same."""
    own = kernels.filter(pl.col("name") == chosen.kernel.name, pl.col("role").is_in(list(chosen.roles)))
    counts = with_num_warps(trace, own)["num_warps"].unique().to_list()
    return int(counts[0]) if len(counts) == 1 and counts[0] is not None else None
