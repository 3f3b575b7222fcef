"""From a trace to what is to be tuned: the retunable kernel that can save most, and its shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from traceanalyzer.commands.tune.plan.bench_of import PlannedBench, bench_of, executed_shape, flips, rows_to_tune
from traceanalyzer.commands.tune.plan.candidates import PlanCandidate, ranked_kernels, worth_listing
from traceanalyzer.commands.tune.plan.products import TuningLayout, with_products
from traceanalyzer.commands.tune.plan.result import RowFlip
from traceanalyzer.findings import DOUBTFUL_NAMES
from traceanalyzer.hardware import Gpu
from traceanalyzer.model import Architecture, candidates, expected_distinct
from traceanalyzer.names import Dtypes
from traceanalyzer.roofline import Request, Roofline, roofline
from traceanalyzer.roofline.facts import trace_facts
from traceanalyzer.roofline.scope import Scope, scope_of
from traceanalyzer.roofline.triton_cache import CompiledKernel, compiled_kernels
from traceanalyzer.segment import segment
from traceanalyzer.segment.opening import only_opening
from traceanalyzer.segment.selection import with_num_warps
from traceanalyzer.trace import Trace

MOST_MODELS = 3
"""Models that would fit and are named in commands, at most. Chosen, not fitted."""

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
class PlannedTarget:
    """What to tune.

    Attributes:
        candidate: the kernel, its time and what a better tile saves.
        m: rows to tune: those seen, then both sides of flips.
        m_flips: which of them are flips, and why.
        executed: (n, k) as the kernel runs them, padding included; None where the product is unknown.
        distinct: number of rows -> experts on this rank that are expected to get a token.
        dtypes: element types; from the name, else of the model's weights.
        compiled: what the Triton cache of the server says.
        num_warps: from the trace's launch, else from the cache; None where neither has it.
        tpot_share: saving over the time per output token; None unless every step gives each sequence one token.
        bench: how it can be measured; None with ``not_measurable``.
        not_measurable: why none of the tune commands measures it.
        basis: what the figures are based on.
    """

    candidate: PlanCandidate
    m: tuple[int, ...]
    m_flips: tuple[RowFlip, ...]
    executed: tuple[int, int] | None
    distinct: tuple[tuple[int, float], ...]
    dtypes: Dtypes
    compiled: CompiledKernel | None
    num_warps: int | None
    tpot_share: float | None
    bench: PlannedBench | None
    not_measurable: str | None
    basis: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Plan:
    """What to tune and what not.

    Attributes:
        target: None where nothing is known to be worth it; ``reason`` says why.
        reason: why there is no target, and what to pass.
        refused: kernels with a noticeable share of the step that are not tuned, the largest saving first.
        others: what to tune after the target, the largest saving first.
        roofline: what it is based on.
        fitting_models: built-in models that would fit, where none was given or recognised.
    """

    target: PlannedTarget | None
    reason: str | None
    refused: tuple[PlanCandidate, ...]
    others: tuple[PlanCandidate, ...]
    roofline: Roofline
    fitting_models: tuple[str, ...]

    @property
    def period_ns(self) -> float:
        """The step and the pause before it."""
        return self.roofline.period_ns


def plan(trace: Trace, request: Request | None = None, cache: Path | None = None) -> Plan:
    """Pick the retunable kernel that can save most; the cache is the server's TRITON_CACHE_DIR.

    Raises:
        RooflineError: there are no such steps, or what is stated contradicts itself or the model.
        TraceError: the cache is not a Triton cache.
    """
    asked = request or Request()
    roof = roofline(trace, asked)
    scope = scope_of(trace, asked.phase, asked.step, every_phase=asked.every_phase)
    compiled = compiled_kernels(trace, cache) if cache else {}
    products, layout, notes = with_products(trace, asked, roof, scope)
    launched = segment(trace).events.select("index", "graph", "thread_block")
    kernels = products.join(launched, on="index", how="left", maintain_order="left")
    ranked = ranked_kernels(roof, kernels)
    if trace.names_doubtful:
        ranked = [replace(one, reason=DOUBTFUL_NAMES) for one in ranked]
    open_ = [one for one in ranked if one.reason is None]
    refused = tuple(one for one in worth_listing(ranked, roof.period_ns) if one.reason is not None)
    reason = _no_target(trace, roof, open_, refused)
    chosen = open_[0] if open_ and reason is None else None
    known = _Known(trace, asked, roof, layout, kernels, compiled, notes)
    target = _target(known, chosen) if chosen else None
    return Plan(
        target=target,
        reason=reason,
        refused=refused,
        others=tuple(open_[1:] if target else open_),
        roofline=roof,
        fitting_models=_fitting(trace, roof, scope, kernels),
    )


def _no_target(
    trace: Trace, roof: Roofline, open_: Sequence[PlanCandidate], refused: Sequence[PlanCandidate]
) -> str | None:
    """Why nothing can be picked: the GPU idles, work that may be larger is unknown, all is unknown, or nothing pays."""
    first = only_opening(roof.findings)
    if first:
        return first[0].message
    if trace.names_doubtful:
        return DOUBTFUL_NAMES
    missing = _missing(trace, roof)
    unknown = [one for one in refused if one.kernel.retunable and one.worth_ns is None]
    best = open_[0].worth_ns or 0.0 if open_ else 0.0
    if missing and any(one.measured_ns > best for one in unknown):
        return f"which kernel could save most is unknown. {missing}"
    if open_:
        return None
    return _nothing_pays(trace, refused, unknown, missing)


def _nothing_pays(
    trace: Trace, refused: Sequence[PlanCandidate], unknown: Sequence[PlanCandidate], missing: str
) -> str:
    if trace.cpu_only or not refused:
        return missing or "no kernel has a noticeable share of the step"
    if unknown:
        return f"what retunable kernels could save is unknown: {unknown[0].why_unknown}"
    which = "is worth tuning" if any(one.kernel.retunable for one in refused) else "that takes long can be retuned"
    return f"no kernel {which}; the reasons are listed"


def _missing(trace: Trace, roof: Roofline) -> str:
    if trace.cpu_only:
        return "The trace has CPU ops only: record GPU activity (ProfilerActivity.CUDA)."
    wanted = []
    if roof.model is None:
        wanted.append("--model NAME or the path of its config.json")
    if roof.ceilings is None:
        wanted.append("--gpu NAME (traceanalyzer gpus lists them)")
    return f"Pass {' and '.join(wanted)}." if wanted else ""


def _fitting(trace: Trace, roof: Roofline, scope: Scope, kernels: pl.DataFrame) -> tuple[str, ...]:
    if roof.model is not None or trace.cpu_only:
        return ()
    fitting = candidates(trace_facts(scope, kernels, world_size=trace.metadata.world_size))
    return tuple(one.architecture.name for one in fitting) if len(fitting) <= MOST_MODELS else ()


@dataclass(frozen=True, eq=False)
class _Known:
    """What a plan is made from.

    Attributes:
        trace, request: as given to ``plan``.
        roof: the roofline.
        layout: of the job; None where there is no model.
        kernels: of the steps, with their products and launches.
        compiled: what the Triton cache says, by kernel name.
        notes: what the products are based on.
    """

    trace: Trace
    request: Request
    roof: Roofline
    layout: TuningLayout | None
    kernels: pl.DataFrame
    compiled: Mapping[str, CompiledKernel]
    notes: Sequence[str]


def _target(known: _Known, chosen: PlanCandidate) -> PlannedTarget:
    gpu = known.roof.ceilings.gpu if known.roof.ceilings else None
    layout, product = known.layout, chosen.product
    flip = _flips(known, chosen, gpu)
    rows = rows_to_tune(product.m, flip) if product else ()
    dtypes = _dtypes(chosen, known.roof.model)
    executed, padding = executed_shape(chosen, layout.execution if layout else None, gpu)
    bench, no_bench = bench_of(
        chosen, dtypes, executed, layout.parallel.ep if layout else 1, gpu.vendor if gpu else None
    )
    cached = known.compiled.get(chosen.kernel.name)
    return PlannedTarget(
        candidate=chosen,
        m=rows,
        m_flips=tuple(one for one in flip if product and one.m not in product.m),
        executed=executed,
        distinct=_distinct(rows, chosen, known),
        dtypes=dtypes,
        compiled=cached,
        num_warps=_num_warps(known.trace, known.kernels, chosen) or (cached.num_warps if cached else None),
        tpot_share=_tpot_share(known.roof, chosen),
        bench=bench,
        not_measurable=no_bench,
        basis=(*known.notes, *padding, *_graph_note(known.kernels, chosen)),
    )


def _flips(known: _Known, chosen: PlanCandidate, gpu: Gpu | None) -> tuple[RowFlip, ...]:
    model, product = known.roof.model, chosen.product
    if product is None:
        return ()
    moe = model.moe if model and product.experts else None
    return flips(chosen.kernel, gpu.vendor if gpu else None, moe.experts if moe else None, moe.top_k if moe else None)


def _tpot_share(roof: Roofline, chosen: PlanCandidate) -> float | None:
    if not (roof.decode and roof.period_ns) or chosen.worth_ns is None:
        return None
    return chosen.worth_ns / roof.period_ns


def _graph_note(kernels: pl.DataFrame, chosen: PlanCandidate) -> tuple[str, ...]:
    if not kernels.filter(pl.col("name") == chosen.kernel.name)["graph"].any():
        return ()
    return ("m is what the scheduler sent; a graph runs the next captured batch size, which no trace shows",)


def _dtypes(chosen: PlanCandidate, model: Architecture | None) -> Dtypes:
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


def _distinct(rows: Sequence[int], chosen: PlanCandidate, inputs: _Known) -> tuple[tuple[int, float], ...]:
    """Experts on this rank that are expected to get a token, for every number of rows."""
    product, model, request, layout = chosen.product, inputs.roof.model, inputs.request, inputs.layout
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


def _num_warps(trace: Trace, kernels: pl.DataFrame, chosen: PlanCandidate) -> int | None:
    """Warps of a launch, where all launches of the kernel in that role have the same."""
    own = kernels.filter(pl.col("name") == chosen.kernel.name, pl.col("role").is_in(list(chosen.roles)))
    counts = with_num_warps(trace, own)["num_warps"].unique().to_list()
    return int(counts[0]) if len(counts) == 1 and counts[0] is not None else None
