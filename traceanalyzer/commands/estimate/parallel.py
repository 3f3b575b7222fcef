"""Parallel layouts compared at several bandwidths between the GPUs: a range of ratios instead of one number."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from traceanalyzer.commands.estimate.deployment import DEFAULT_ENGINE, Deployment, EngineSettings
from traceanalyzer.commands.estimate.efficiencies import EstimateError, Link
from traceanalyzer.commands.estimate.memory_fit import layout_name, refuse_unfit
from traceanalyzer.commands.estimate.result import (
    EstimateLayout,
    EstimateLayoutRatio,
    EstimateParallel,
    LayoutAtLoad,
    LayoutOrder,
)
from traceanalyzer.commands.estimate.schedule import Served, Traffic, steady
from traceanalyzer.commands.estimate.step_time import StepTimes
from traceanalyzer.declare import part_of
from traceanalyzer.model import ModelError, Parallel

LINK_RANGE = (0.25, 0.9)
"""Lowest and highest share of a link's nominal bandwidth to compare layouts at; chosen, not fitted."""

LINK_POINTS = 5
"""Bandwidths between the two; chosen, not fitted."""

Load = tuple[float, int]
"""(link GB/s, batch)"""

PART = re.compile(r"(tp|pp|dp|ep)\s*=\s*(\d+)", re.IGNORECASE)


def parse_layout(text: str) -> Parallel:
    """Read a layout such as ``tp=4``, ``tp=2+pp=2`` or ``ep=4``.

    ``ep`` alone runs attention on as many data-parallel ranks and spreads the experts over them, as vLLM does with
    --data-parallel-size and --enable-expert-parallel; with ``tp`` it covers tp x dp ranks. EstimateError says what can
    be written.
    """
    degrees: dict[str, int] = {}
    for part in text.split("+"):
        degree = PART.fullmatch(part.strip())
        if not degree or degree[1].lower() in degrees:
            raise EstimateError(f"a layout is written as tp=4, pp=4, ep=4 or tp=2+pp=2, not {text.strip()!r}")
        degrees[degree[1].lower()] = int(degree[2])
    return layout(**degrees)


def layout(tp: int = 1, pp: int = 1, dp: int = 1, ep: int = 1) -> Parallel:
    """Return a layout; ``ep`` above tp x dp implies more data-parallel ranks. EstimateError if degrees contradict."""
    try:
        if ep > 1 and dp == 1 and ep != tp:
            if ep % tp:
                raise EstimateError(f"ep = {ep} is not a multiple of tp = {tp}")
            dp = ep // tp
        return Parallel(tp=tp, pp=pp, ep=ep, dp=dp)
    except ModelError as error:
        raise EstimateError(str(error)) from error


def parse_layouts(text: str) -> tuple[Parallel, ...]:
    """Read layouts separated by commas; EstimateError if fewer than two of them differ."""
    layouts = tuple(dict.fromkeys(parse_layout(part) for part in text.split(",") if part.strip()))
    if len(layouts) < 2:
        raise EstimateError("compare at least two layouts, such as tp=4,pp=4,ep=4")
    return layouts


def link_range(deployment: Deployment) -> tuple[float, ...]:
    """Return the bandwidths to compare layouts at, GB/s; EstimateError if the GPU's link is unknown."""
    deployment.known_link("--link-gbps LOW:HIGH")
    nominal = deployment.gpu.link_gbps or 0.0
    return spread(nominal * LINK_RANGE[0], nominal * LINK_RANGE[1])


def spread(low: float, high: float) -> tuple[float, ...]:
    """Return bandwidths from low to high, in steps of one factor."""
    if not 0 < low <= high < float("inf"):
        raise EstimateError("a range of bandwidths is LOW:HIGH in GB/s, both above 0")
    if low == high:
        return (low,)
    return tuple(low * (high / low) ** (i / (LINK_POINTS - 1)) for i in range(LINK_POINTS))


def compare_layouts(
    deployment: Deployment,
    layouts: Sequence[Parallel],
    isl: int,
    osl: int,
    batches: Sequence[int],
    gbps: Sequence[float],
    engine: EngineSettings = DEFAULT_ENGINE,
) -> EstimateParallel:
    """Estimate every layout at every batch and link bandwidth.

    The deployment's own layout does not count. Lengths are in tokens, bandwidths in GB/s.

    Raises:
        EstimateError: the link is unknown.
    """
    link = deployment.known_link()
    results: list[EstimateLayout] = []
    running: dict[str, dict[Load, Served]] = {}
    notes: list[str] = []
    for parallel in layouts:
        name, served, refused = layout_name(parallel), {}, None
        chosen = replace(deployment, parallel=parallel)
        try:
            refuse_unfit(chosen, engine.utilisation)
            running[name] = served = _served(
                chosen, [Traffic(isl, osl, batch) for batch in batches], gbps, engine.budget
            )
            notes += [f"{name}: {note}"] if (note := _split_note(parallel)) else []
        except (EstimateError, ModelError) as error:
            refused = str(error)
        loads = [_at_load(load, one) for load, one in served.items()]
        results.append(EstimateLayout(layout=name, gpus=parallel.gpus, refused=refused, results=loads))
    orders = {(rate, batch): _order(running, (rate, batch)) for rate in gbps for batch in batches}
    names = list(running)
    return EstimateParallel(
        link_gbps=list(gbps),
        batches=list(batches),
        layouts=results,
        ratios=[_ratio(running, base, other) for i, other in enumerate(names) for base in names[:i]],
        orders=[LayoutOrder(link_gbps=rate, batch=batch, order=order) for (rate, batch), order in orders.items()],
        order_depends_on_link=any(len({tuple(orders[rate, batch]) for rate in gbps}) > 1 for batch in batches),
        notes=[*_order_notes(orders, sorted(set(gbps)), link, running), *notes],
    )


def _served(
    deployment: Deployment, traffics: Sequence[Traffic], gbps: Sequence[float], budget: int
) -> dict[Load, Served]:
    """Return what clients see at every bandwidth of the link and every batch."""
    served: dict[Load, Served] = {}
    for rate in gbps:
        times = StepTimes(replace(deployment, link=replace(deployment.known_link(), gbps=rate)))
        served |= {(rate, traffic.concurrency): steady(times, traffic, budget) for traffic in traffics}
    return served


def _at_load(load: Load, served: Served) -> LayoutAtLoad:
    itl = None if served.tpot_ns is None else served.tpot_ns / 1e6
    return part_of(LayoutAtLoad, served, link_gbps=load[0], batch=load[1], itl_ms=itl)


def _order(running: Mapping[str, Mapping[Load, Served]], at: Load) -> list[str]:
    return sorted(running, key=lambda name: -running[name][at].tokens_per_s)


def _ratio(running: Mapping[str, Mapping[Load, Served]], base: str, other: str) -> EstimateLayoutRatio:
    pairs = [(served, running[other][load]) for load, served in running[base].items()]
    return EstimateLayoutRatio(
        base=base,
        other=other,
        throughput=_range([b.requests_per_s / a.requests_per_s for a, b in pairs]),
        ttft_change=_range([b.ttft_ns / a.ttft_ns - 1 for a, b in pairs]),
        itl_change=_range([(b.tpot_ns or 0.0) / a.tpot_ns - 1 for a, b in pairs if a.tpot_ns]),
    )


def _range(values: Sequence[float]) -> tuple[float, float]:
    return (min(values), max(values)) if values else (0.0, 0.0)


def _order_notes(
    orders: Mapping[Load, list[str]], rates: Sequence[float], link: Link, running: Mapping[str, object]
) -> list[str]:
    """Say how layouts rank by tokens/s, and whether that depends on the link."""
    notes = [
        f"over a link of {rates[0]:.1f} to {rates[-1]:.1f} GB/s in one direction, {link.hop_ns / 1000:g} µs per hop"
    ]
    if not running:
        return notes
    # For each batch, the orders as the bandwidth rises, each with the lowest bandwidth at which it holds.
    by_batch: dict[int, list[tuple[str, float]]] = {}
    for batch in sorted({batch for _, batch in orders}):
        ranked = [(" > ".join(orders[rate, batch]), rate) for rate in rates]
        by_batch[batch] = [next(same) for _, same in groupby(ranked, key=lambda one: one[0])]
    distinct = {order: None for changes in by_batch.values() for order, _ in changes}
    if len(distinct) == 1:
        return [*notes, f"by tokens/s {next(iter(distinct))} at every bandwidth and batch compared"]
    for batch, changes in by_batch.items():
        told = "; ".join(f"{order} from {rate:.1f} GB/s on" for order, rate in changes)
        fixed = f"{changes[0][0]} at every bandwidth"
        notes.append(f"by tokens/s at {batch:,} in flight: {fixed if len(changes) == 1 else told}")
    if any(len(changes) > 1 for changes in by_batch.values()):
        return [*notes, "the order depends on the link: measure it (nccl-tests) and give --link-gbps"]
    return [*notes, "the order depends on the batch, not on the link"]


def _split_note(parallel: Parallel) -> str:
    if parallel.ep > 1 and parallel.dp > 1:
        return (
            f"{parallel.dp} data-parallel copies of attention in lock-step, each with its share of the requests and "
            "padded to the busiest: its cost is an upper bound, so small leads over it are uncertain; expert load is "
            "uneven by chance alone (give a measured value with --ep-imbalance)"
        )
    if parallel.pp > 1:
        return f"{parallel.pp} micro-batches in the pipeline; with fewer requests, stages idle"
    return ""
