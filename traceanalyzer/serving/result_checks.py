"""Relations between the figures of a result; one that does not hold becomes a warning with the figures.

A rounded figure is an interval of half a unit of its last digit each way: a relation holds if any values within the
rounding satisfy it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from traceanalyzer.problems import TraceWarning
from traceanalyzer.serving.metrics import QUANTITIES
from traceanalyzer.serving.serving_result import ServingResult

EXACT = 0.01
"""Tolerance of exact relations, as files round their figures; chosen, not fitted."""

AVERAGED = 0.25
"""Tolerance of latency = TTFT + (length - 1) x TPOT, which holds for means only if lengths are equal; chosen, not
fitted."""


class FigureRange(NamedTuple):
    """Bounds of a positive figure."""

    low: float
    high: float

    def times(self, other: FigureRange) -> FigureRange:
        """The product."""
        return FigureRange(self.low * other.low, self.high * other.high)

    def over(self, other: FigureRange) -> FigureRange:
        """The quotient."""
        return FigureRange(self.low / other.high, self.high / other.low if other.low > 0 else float("inf"))

    def plus(self, other: FigureRange) -> FigureRange:
        """The sum."""
        return FigureRange(self.low + other.low, self.high + other.high)

    def agrees(self, other: FigureRange, tolerance: float) -> bool:
        """Whether the two overlap within a relative tolerance."""
        return self.low <= other.high * (1 + tolerance) and other.low <= self.high * (1 + tolerance)

    def __str__(self) -> str:
        return f"{(self.low + self.high) / 2:,.4g}"


def check(result: ServingResult) -> tuple[TraceWarning, ...]:
    """Return one warning for each relation between the figures of a result that does not hold."""
    broken = [*_rates(result), *_latency(result), *_in_flight(result), *_order(result), *_counts(result), *_raw(result)]
    return tuple(TraceWarning("inconsistent_result", message, result.where) for message in broken)


def failed(results: Iterable[ServingResult]) -> tuple[TraceWarning, ...]:
    """Return one warning for each result some of whose requests failed."""
    message = "some requests failed; the figures cover only successful ones"
    return tuple(
        TraceWarning("failed_requests", message, result.where, count=result.failed)
        for result in results
        if result.has_failures
    )


def _get(result: ServingResult, metric: str) -> FigureRange | None:
    value = result.metrics.get(metric)
    if value is None or value <= 0:
        return None
    half = result.resolution.get(metric, 0.0)
    return FigureRange(max(value - half, 0.0), value + half)


def _exactly(value: float | None) -> FigureRange | None:
    return None if value is None or value <= 0 else FigureRange(value, value)


def _rates(result: ServingResult) -> Iterator[str]:
    duration = _get(result, "duration")
    totals = {
        "request_throughput": ("requests completed", _exactly(result.completed)),
        "output_throughput": ("output tokens", _exactly(result.output_tokens)),
    }
    if result.input_tokens is not None and result.output_tokens is not None:
        both = _exactly(result.input_tokens + result.output_tokens)
        totals["total_token_throughput"] = ("input and output tokens", both)
    for metric, (what, total) in totals.items():
        rate = _get(result, metric)
        if rate and duration and total and not rate.agrees(total.over(duration), EXACT):
            yield f"{metric} is {rate}, but {total} {what} in {duration} s are {total.over(duration)} per second"
    length, requests, tokens = (
        _exactly(result.output_length),
        _get(result, "request_throughput"),
        _get(result, "output_throughput"),
    )
    if length and requests and tokens and not tokens.agrees(requests.times(length), EXACT):
        yield (
            f"output_throughput is {tokens} tokens/s, but {requests} requests/s of {length} tokens are "
            f"{requests.times(length)}"
        )


def output_length(result: ServingResult) -> FigureRange | None:
    """Return the mean output length: from totals, else tokens/s over requests/s."""
    stated = _exactly(result.output_length)
    tokens, requests = _get(result, "output_throughput"), _get(result, "request_throughput")
    return stated or (tokens.over(requests) if tokens and requests else None)


def expected_latency(result: ServingResult) -> FigureRange | None:
    """Return the mean latency in ms implied by TTFT + (output length - 1) x TPOT; None where unknown."""
    length, ttft, tpot = output_length(result), _get(result, "mean_ttft_ms"), _get(result, "mean_tpot_ms")
    if not (length and ttft and tpot) or length.low < 1:
        return None
    return ttft.plus(FigureRange(length.low - 1, length.high - 1).times(tpot))


def _latency(result: ServingResult) -> Iterator[str]:
    measured, expected = _get(result, "mean_e2el_ms"), expected_latency(result)
    if measured and expected and not measured.agrees(expected, AVERAGED):
        yield (
            f"mean latency is {measured} ms, but TTFT {_get(result, 'mean_ttft_ms')} ms + (n - 1) x TPOT "
            f"{_get(result, 'mean_tpot_ms')} ms with n = {output_length(result)} gives {expected} ms "
            "(exact where all answers are of one length)"
        )


def _in_flight(result: ServingResult) -> Iterator[str]:
    """Little's law: requests/s x latency is the mean number in flight, at most the limit."""
    limit, rate = result.load.concurrency, _get(result, "request_throughput")
    measured = _get(result, "mean_e2el_ms")
    latency, tolerance = (measured, 0.02) if measured else (expected_latency(result), AVERAGED)
    if not (limit and rate and latency):
        return
    flying = rate.times(latency).low / 1000
    if flying > limit * (1 + tolerance):
        yield (
            f"{rate} requests/s of {latency} ms each are {flying:.3g} requests in flight, more than the limit of "
            f"{limit:g} (Little's law)"
        )


def _order(result: ServingResult) -> Iterator[str]:
    for quantity in QUANTITIES:
        ladder = []
        for metric, value in result.metrics.items():
            statistic, _, rest = metric.partition("_")
            if rest != f"{quantity}_ms" or statistic in {"mean", "std"}:
                continue
            level = {"min": 0.0, "median": 50.0, "max": 100.0}.get(statistic)
            ladder.append((float(statistic[1:]) if level is None else level, metric, value))
        ladder.sort()
        for (_, lower, low), (_, upper, high) in pairwise(ladder):
            slack = result.resolution.get(lower, 0.0) + result.resolution.get(upper, 0.0)
            if low > high * (1 + 1e-9) + slack:
                yield f"{lower} {low:.4g} is above {upper} {high:.4g}"
        mean = result.metrics.get(f"mean_{quantity}_ms")
        if mean is not None and mean <= 0:
            yield f"mean_{quantity}_ms is {mean:g}; answers were not streamed token by token, or clocks were wrong"


def _counts(result: ServingResult) -> Iterator[str]:
    if result.prompts is None or result.completed is None:
        return
    answered = result.completed + (result.failed or 0)
    if result.completed > result.prompts or (result.failed is not None and answered != result.prompts):
        yield (
            f"{result.completed} completed and {result.failed if result.failed is not None else 'unknown'} failed "
            f"requests do not make {result.prompts} prompts"
        )


def _raw(result: ServingResult) -> Iterator[str]:
    details = result.per_request
    if details.output_lens and result.output_tokens and sum(details.output_lens) != result.output_tokens:
        yield f"the output lengths add up to {sum(details.output_lens):,.0f}, not to {result.output_tokens:,.0f} tokens"
    for values, metric, scale in ((details.ttfts, "mean_ttft_ms", 1000.0), (details.latencies, "avg_latency", 1.0)):
        stated = _get(result, metric)
        if values and stated and not stated.agrees(FigureRange(fmean(values) * scale, fmean(values) * scale), EXACT):
            yield f"{metric} is {stated}, but the requests' own mean is {fmean(values) * scale:.4g}"
