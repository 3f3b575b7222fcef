"""The largest batch that keeps to limits on TTFT and TPOT."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from traceanalyzer.commands.estimate.efficiencies import EstimateError
from traceanalyzer.commands.estimate.schedule import Served, Traffic, steady
from traceanalyzer.commands.estimate.step_time import StepTimes

Limit = Literal["ttft", "tpot", "memory", "tokens", "search"]

MOST_BATCH = 8192
"""The largest batch to try; chosen, not fitted."""


@dataclass(frozen=True)
class Slo:
    """Limits on TTFT and TPOT that 99 % of requests have to keep, and their source; None is no limit."""

    ttft_ns: float | None
    tpot_ns: float | None
    source: str

    def broken_by(self, served: Served) -> Limit | None:
        """Return a limit that is exceeded; None if there is none."""
        if self.tpot_ns is not None and served.tpot_p99_ns is not None and served.tpot_p99_ns > self.tpot_ns:
            return "tpot"
        return "ttft" if self.ttft_ns is not None and served.ttft_p99_ns > self.ttft_ns else None


def _preset(ttft_ms: float | None, tpot_ms: float, source: str) -> Slo:
    return Slo(None if ttft_ms is None else ttft_ms * 1e6, tpot_ms * 1e6, source)


MLPERF = "MLPerf Inference, 99 % quantiles"
PRESETS = {
    "mlperf-llama2-70b-server": _preset(2000, 200, MLPERF),
    "mlperf-llama2-70b-interactive": _preset(450, 40, MLPERF),
    "mlperf-llama3.1-8b-server": _preset(None, 100, f"{MLPERF}; its limit on TTFT is not known here"),
    "mlperf-llama3.1-8b-interactive": _preset(None, 30, f"{MLPERF}; its limit on TTFT is not known here"),
}
"""Limits of public benchmarks by name, from the benchmark's rules."""

LIMIT = re.compile(r"(ttft|tpot)\s*=\s*(\d+(?:\.\d+)?|\.\d+)\s*(s|ms|us|µs)", re.IGNORECASE)
UNIT_NS = {"s": 1e9, "ms": 1e6, "us": 1e3, "µs": 1e3}


def parse_slo(text: str) -> Slo:
    """Read limits such as ``ttft=2s,tpot=200ms`` or the name of a preset; EstimateError says what can be written."""
    preset = PRESETS.get(text.strip().lower())
    if preset:
        return preset
    limits: dict[str, float] = {}
    for part in text.split(","):
        limit = LIMIT.fullmatch(part.strip())
        if not limit:
            raise EstimateError(
                f"limits are written as ttft=2s,tpot=200ms (s, ms or us), or are one of {', '.join(PRESETS)}: "
                f"not {part.strip()!r}"
            )
        name, value = limit[1].lower(), float(limit[2]) * UNIT_NS[limit[3].lower()]
        if name in limits or value <= 0:
            raise EstimateError(f"the limit on {name} must be above 0 and given once")
        limits[name] = value
    return Slo(limits.get("ttft"), limits.get("tpot"), "as asked for")


@dataclass(frozen=True)
class LargestBatch:
    """The result of a search.

    Attributes:
        batch: the largest that keeps the limits and fits in memory; 0 if not even one sequence does.
        served: what clients see at that batch; None for 0.
        limited_by: what the next larger batch exceeds: ``ttft``, ``tpot``, ``memory``, ``tokens`` (more sequences than
            a step has tokens) or ``search`` (nothing, but no larger batch is tried).
    """

    batch: int
    served: Served | None
    limited_by: Limit


def largest_batch(
    times: StepTimes, isl: int, osl: int, slo: Slo, budget: int, held: int | None, most: int = MOST_BATCH
) -> LargestBatch:
    """Search the largest batch that keeps to ``slo`` by bisection, assuming that TTFT and TPOT grow with the batch.

    Each batch tried is simulated step by step. ``held`` is how many sequences the KV cache holds, None for no limit;
    ``budget`` is max_num_batched_tokens.
    """
    ceilings: dict[Limit, int | None] = {
        "memory": held,
        "tokens": budget * times.deployment.parallel.dp,
        "search": most,
    }
    named, top = min(((name, value) for name, value in ceilings.items() if value is not None), key=lambda c: c[1])
    seen: dict[int, Served] = {}

    def breaks(batch: int) -> Limit | None:
        seen[batch] = steady(times, Traffic(isl, osl, batch), budget)
        return slo.broken_by(seen[batch])

    batch, limit = _last_kept(breaks, top)
    return LargestBatch(batch, seen.get(batch), limit or named)


def _last_kept(breaks: Callable[[int], Limit | None], top: int) -> tuple[int, Limit | None]:
    """Return the largest number up to ``top`` that exceeds nothing, and what the next one exceeds (None at the top)."""
    good, bad, why = 0, None, None
    trial = 1
    while bad is None and good < top:
        broken = breaks(min(trial, top))
        if broken:
            bad, why = min(trial, top), broken
        else:
            good, trial = min(trial, top), trial * 2
    while bad is not None and bad - good > 1:
        middle = (good + bad) // 2
        broken = breaks(middle)
        if broken:
            bad, why = middle, broken
        else:
            good = middle
    return good, why
