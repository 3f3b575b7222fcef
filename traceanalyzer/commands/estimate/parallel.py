"""Layouts compared over the bandwidth between the GPUs, with a range instead of one number."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from traceanalyzer.commands.estimate.deployment import DEFAULT_ENGINE, Deployment, EngineSettings
from traceanalyzer.commands.estimate.estimate_error import EstimateError
from traceanalyzer.commands.estimate.link import Link, with_gbps
from traceanalyzer.commands.estimate.memory_fit import layout_name, refuse_unfit
from traceanalyzer.commands.estimate.result import EstimateLayoutRatio
from traceanalyzer.commands.estimate.schedule import Served, Traffic, steady
from traceanalyzer.commands.estimate.step_time import StepTimes
from traceanalyzer.model import ModelError, Parallel

LINK_RANGE = (0.25, 0.9)
"""Share of a link's nominal bandwidth that collectives have been seen at, least and most; assumed."""

LINK_POINTS = 5

OrderFrom = tuple[float, tuple[str, ...]]
"""A bandwidth, and how layouts rank from there on."""

PART = re.compile(r"(tp|pp|dp|ep)\s*=\s*(\d+)", re.IGNORECASE)


def parse_layout(text: str) -> Parallel:
    """Read a layout such as ``tp=4``, ``tp=2+pp=2`` or ``ep=4``.

    ``ep`` alone repeats attention on as many data-parallel ranks and spreads the experts over them, as vLLM does with
    --data-parallel-size and --enable-expert-parallel; with ``tp`` it covers tp x dp ranks.

    Raises:
        EstimateError: saying what can be written.
    """
    degrees: dict[str, int] = {}
    for part in text.split("+"):
        degree = PART.fullmatch(part.strip())
        if not degree or degree[1].lower() in degrees:
            raise EstimateError(f"a layout is written as tp=4, pp=4, ep=4 or tp=2+pp=2, not {text.strip()!r}")
        degrees[degree[1].lower()] = int(degree[2])
    return layout(**degrees)


def layout(tp: int = 1, pp: int = 1, dp: int = 1, ep: int = 1) -> Parallel:
    """Return a layout; expert parallelism over more ranks than tp x dp brings the data-parallel ranks it lacks.

    Raises:
        EstimateError: the degrees contradict each other.
    """
    try:
        if ep > 1 and dp == 1 and ep != tp:
            if ep % tp:
                raise EstimateError(f"ep = {ep} is not a multiple of tp = {tp}")
            dp = ep // tp
        return Parallel(tp=tp, pp=pp, ep=ep, dp=dp)
    except ModelError as error:
        raise EstimateError(str(error)) from error


def parse_layouts(text: str) -> tuple[Parallel, ...]:
    """Read several layouts, separated by commas.

    Raises:
        EstimateError: there are fewer than two different ones.
    """
    layouts = tuple(dict.fromkeys(parse_layout(part) for part in text.split(",") if part.strip()))
    if len(layouts) < 2:
        raise EstimateError("compare at least two layouts, such as tp=4,pp=4,ep=4")
    return layouts


def link_range(deployment: Deployment, nominal_gbps: float | None) -> tuple[float, ...]:
    """Return the bandwidths to compare layouts at, GB/s.

    Raises:
        EstimateError: the GPU's link is unknown.
    """
    if nominal_gbps is None:
        raise EstimateError(
            f"how fast GPUs of {deployment.gpu.name} talk to each other is unknown: give --link-gbps LOW:HIGH"
        )
    return spread(nominal_gbps * LINK_RANGE[0], nominal_gbps * LINK_RANGE[1])


def spread(low: float, high: float) -> tuple[float, ...]:
    """Return bandwidths from low to high, each the same factor above the one before."""
    if not 0 < low <= high < float("inf"):
        raise EstimateError("a range of bandwidths is LOW:HIGH in GB/s, both above 0")
    if low == high:
        return (low,)
    return tuple(low * (high / low) ** (i / (LINK_POINTS - 1)) for i in range(LINK_POINTS))


@dataclass(frozen=True)
class LayoutResult:
    """One layout.

    Attributes:
        name: as people write it.
        parallel: the layout.
        refused: why it cannot run; None if it can.
        served: (link GB/s, batch) -> what clients see.
    """

    name: str
    parallel: Parallel
    refused: str | None
    served: Mapping[tuple[float, int], Served]


@dataclass(frozen=True)
class ParallelComparison:
    """Layouts over link bandwidths.

    Attributes:
        layouts: each layout.
        batches: requests in flight.
        gbps: bandwidths of the link compared at.
        ratios: every layout against every one before it.
        orders: (link GB/s, batch) -> layouts by tokens/s, best first.
        notes: what to know, among it whether the order depends on the link.
    """

    layouts: tuple[LayoutResult, ...]
    batches: tuple[int, ...]
    gbps: tuple[float, ...]
    ratios: tuple[EstimateLayoutRatio, ...]
    orders: Mapping[tuple[float, int], tuple[str, ...]]
    notes: tuple[str, ...]

    @property
    def depends_on_link(self) -> bool:
        """Whether at some batch the order changes with the bandwidth."""
        return any(len({self.orders[rate, batch] for rate in self.gbps}) > 1 for batch in self.batches)


def compare_layouts(
    deployment: Deployment,
    layouts: Sequence[Parallel],
    isl: int,
    osl: int,
    batches: Sequence[int],
    gbps: Sequence[float],
    engine: EngineSettings = DEFAULT_ENGINE,
) -> ParallelComparison:
    """Estimate every layout at every batch and link bandwidth.

    Args:
        deployment: the model on its GPUs; its layout does not count.
        layouts: what to compare.
        isl: tokens of a prompt.
        osl: tokens of an answer.
        batches: requests in flight.
        gbps: bandwidths of the link, GB/s.
        engine: tokens per step, and memory that may be used.

    Raises:
        EstimateError: the link is unknown.
    """
    if deployment.link is None:
        raise EstimateError(f"how fast GPUs of {deployment.gpu.name} talk to each other is unknown: give --link-gbps")
    results = []
    for parallel in layouts:
        chosen = replace(deployment, parallel=parallel)
        try:
            refuse_unfit(chosen, engine.utilisation)
            served = {
                (rate, batch): steady(times, Traffic(isl, osl, batch), engine.budget)
                for rate in gbps
                for times in (StepTimes(replace(chosen, link=with_gbps(deployment.link, rate))),)
                for batch in batches
            }
            results.append(LayoutResult(layout_name(parallel), parallel, None, served))
        except (EstimateError, ModelError) as error:
            results.append(LayoutResult(layout_name(parallel), parallel, str(error), {}))
    running = [result for result in results if result.refused is None]
    orders = {(rate, batch): _order(running, (rate, batch)) for rate in gbps for batch in batches}
    return ParallelComparison(
        layouts=tuple(results),
        batches=tuple(batches),
        gbps=tuple(gbps),
        ratios=tuple(_ratio(base, other) for i, other in enumerate(running) for base in running[:i]),
        orders=orders,
        notes=tuple(_notes(orders, running, deployment.link)),
    )


def _order(results: Sequence[LayoutResult], at: tuple[float, int]) -> tuple[str, ...]:
    return tuple(result.name for result in sorted(results, key=lambda result: -result.served[at].tokens_per_s))


def _ratio(base: LayoutResult, other: LayoutResult) -> EstimateLayoutRatio:
    pairs = [(base.served[key], other.served[key]) for key in base.served]
    return EstimateLayoutRatio(
        base=base.name,
        other=other.name,
        throughput=_range([b.requests_per_s / a.requests_per_s for a, b in pairs]),
        ttft_change=_range([b.ttft_ns / a.ttft_ns - 1 for a, b in pairs]),
        itl_change=_range([(b.tpot_ns or 0.0) / a.tpot_ns - 1 for a, b in pairs if a.tpot_ns]),
    )


def _range(values: Sequence[float]) -> tuple[float, float]:
    return (min(values), max(values)) if values else (0.0, 0.0)


def _notes(
    orders: Mapping[tuple[float, int], tuple[str, ...]], results: Sequence[LayoutResult], link: Link
) -> list[str]:
    rates, batches = sorted({rate for rate, _ in orders}), sorted({batch for _, batch in orders})
    notes = [
        f"over a link of {rates[0]:.1f} to {rates[-1]:.1f} GB/s in one direction, {link.hop_ns / 1000:g} µs per hop"
    ]
    if not results:
        return notes
    notes += _order_notes({batch: _changes({rate: orders[rate, batch] for rate in rates}) for batch in batches})
    return notes + [f"{one.name}: {note}" for one in results if (note := _split_note(one.parallel))]


def _order_notes(by_batch: Mapping[int, Sequence[OrderFrom]]) -> list[str]:
    """Say how layouts rank by tokens/s, and whether that depends on the link.

    Args:
        by_batch: for each batch, the bandwidths from which on another order holds.
    """
    first = next(iter(by_batch.values()))[0]
    if len({order for changes in by_batch.values() for _, order in changes}) == 1:
        return [f"by tokens/s {' > '.join(first[1])} at every bandwidth and batch compared"]
    notes = []
    for batch, changes in by_batch.items():
        where = "; ".join(f"{' > '.join(order)} from {rate:.1f} GB/s on" for rate, order in changes)
        fixed = f"{' > '.join(changes[0][1])} at every bandwidth"
        notes.append(f"by tokens/s at {batch:,} in flight: {fixed if len(changes) == 1 else where}")
    if any(len(changes) > 1 for changes in by_batch.values()):
        return [*notes, "the order depends on the link: measure it (nccl-tests) and give --link-gbps"]
    return [*notes, "the order depends on the batch, not on the link"]


def _changes(orders: Mapping[float, tuple[str, ...]]) -> list[OrderFrom]:
    """Return the first bandwidth at which each order appears."""
    firsts: list[OrderFrom] = []
    for rate in sorted(orders):
        if not firsts or firsts[-1][1] != orders[rate]:
            firsts.append((rate, orders[rate]))
    return firsts


def _split_note(parallel: Parallel) -> str:
    if parallel.ep > 1 and parallel.dp > 1:
        return (
            f"{parallel.dp} data-parallel copies of attention in lock-step, each with its share of the requests; "
            "all padded to the busiest, an upper bound of its cost: small leads over it are not certain; experts' load "
            "is uneven by chance alone (--ep-imbalance takes what was measured)"
        )
    if parallel.pp > 1:
        return f"{parallel.pp} groups of requests in the pipeline; with fewer requests stages idle"
    return ""
