"""Observations to calibrate with, from results of serving benchmarks."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.commands.estimate.calibrate import Observation
from traceanalyzer.commands.estimate.estimate_error import EstimateError
from traceanalyzer.serving.series import series
from traceanalyzer.serving.serving_result import ServingResult

COARSE = 0.002
"""TPOT rounded to more than this share of it is rather taken from latency and TTFT, where they are finer."""


def one_series(results: Sequence[ServingResult]) -> tuple[ServingResult, ...]:
    """Return the results if they are of one configuration.

    Raises:
        EstimateError: they are of several; it names them.
    """
    configurations = series([result for result in results if result.kind == "serve"])
    if len(configurations) > 1:
        names = "; ".join(one.name for one in configurations)
        raise EstimateError(
            f"the results are of {len(configurations)} configurations ({names}); pick one with --select KEY=VALUE"
        )
    return tuple(result for one in configurations for point in one.points for result in point.results)


def observations(results: Sequence[ServingResult], isl: int, osl: int | None) -> tuple[Observation, ...]:
    """Return TPOT at each load that states a concurrency; repeated runs are averaged.

    Args:
        results: runs of one configuration.
        isl: tokens of a prompt where a result does not tell.
        osl: tokens of an answer where a result does not tell and they do not follow from its tokens/s.
    """
    by_load: dict[tuple[int, int, int], list[float]] = {}
    for result in results:
        concurrency = result.load.concurrency
        length = answer_length(result, osl)
        tpot = tpot_ms(result, length)
        if concurrency is None or concurrency < 1 or tpot is None or not tpot > 0 or length is None or length < 2:
            continue
        prompt = max(round(result.input_length), 1) if result.input_length else isl
        by_load.setdefault((round(concurrency), prompt, length), []).append(tpot * 1e6)
    return tuple(Observation(*load, sum(values) / len(values)) for load, values in sorted(by_load.items()))


def answer_length(result: ServingResult, default: int | None) -> int | None:
    """Return the mean tokens of an answer: as the result says, else the default, else by Little's law from tokens/s."""
    if result.output_length:
        return round(result.output_length)
    if default is not None:
        return default
    rate, latency = result.metrics.get("output_throughput"), result.metrics.get("mean_e2el_ms")
    concurrency = result.load.concurrency
    return round(rate * latency / 1000 / concurrency) if rate and latency and concurrency else None


def tpot_ms(result: ServingResult, length: int | None) -> float | None:
    """Return the mean TPOT: (latency - TTFT) / (answer - 1) where the result's own figure is rounded more coarsely."""
    tpot = result.metrics.get("mean_tpot_ms")
    latency, ttft = result.metrics.get("mean_e2el_ms"), result.metrics.get("mean_ttft_ms")
    rough = tpot is None or result.resolution.get("mean_tpot_ms", 0.0) > COARSE * tpot
    if rough and latency is not None and ttft is not None and length is not None and length > 1:
        return (latency - ttft) / (length - 1)
    return tpot
