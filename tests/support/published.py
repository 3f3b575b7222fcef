"""Published measurements, and what estimates with the defaults give for them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tests.support.places import ROOT
from traceanalyzer.commands.estimate.deployment import Deployment
from traceanalyzer.commands.estimate.efficiencies import default_efficiencies, default_link
from traceanalyzer.commands.estimate.schedule import Served, Traffic, burst, steady
from traceanalyzer.commands.estimate.step_time import StepTimes
from traceanalyzer.hardware import find_gpu
from traceanalyzer.model import Parallel, format_named, load, with_formats


@dataclass(frozen=True)
class PublishedMeasurement:
    """One published measurement.

    Attributes:
        model: a built-in model.
        weights: format of its weights; None for its own.
        kv: format of its KV cache; None for its own.
        gpu: a GPU of the table.
        tp: tensor-parallel degree.
        concurrency: requests in flight.
        isl: tokens of a prompt, on average.
        osl: tokens of an answer, on average.
        ttft_ms: mean time to the first token; None where not told, or where the prompts are unknown.
        tpot_ms: mean time between the others.
        held_out: false where a default was set from it.
        source: who measured it.
    """

    model: str
    weights: str | None
    kv: str | None
    gpu: str
    tp: int
    concurrency: int
    isl: int
    osl: int
    ttft_ms: float | None
    tpot_ms: float
    held_out: bool
    source: str


@lru_cache(maxsize=1)
def measurements() -> tuple[PublishedMeasurement, ...]:
    """Return every measurement of the table, in its order."""
    text = (ROOT / "docs/data/estimate_measured.csv").read_text(encoding="utf-8")
    return tuple(
        PublishedMeasurement(
            model=row["model"],
            weights=row["weights"] or None,
            kv=row["kv"] or None,
            gpu=row["gpu"],
            tp=int(row["tp"]),
            concurrency=int(row["concurrency"]),
            isl=int(row["isl"]),
            osl=int(row["osl"]),
            ttft_ms=float(row["ttft_ms"]) if row["ttft_ms"] else None,
            tpot_ms=float(row["tpot_ms"]),
            held_out=row["set"] == "held out",
            source=row["source"],
        )
        for row in csv.DictReader(text.splitlines())
    )


@dataclass(frozen=True)
class Checked:
    """A measurement and the estimate that the defaults give for it, calibrated by nothing.

    Attributes:
        measured: the measurement.
        even: what clients see whose requests arrive evenly.
        at_once: the mean time to the first token if all requests are sent at once, ms; None where not compared.
    """

    measured: PublishedMeasurement
    even: Served
    at_once: float | None

    @property
    def tpot_ratio(self) -> float:
        """Measured TPOT over the estimate."""
        return self.measured.tpot_ms * 1e6 / (self.even.tpot_ns or 1.0)


def check(measured: PublishedMeasurement) -> Checked:
    """Estimate what was measured."""
    gpu = find_gpu(measured.gpu)
    model = with_formats(
        load(measured.model),
        weights=format_named(measured.weights) if measured.weights else None,
        kv=format_named(measured.kv) if measured.kv else None,
    )
    deployment = Deployment(
        model, gpu, default_efficiencies(gpu), parallel=Parallel(tp=measured.tp), link=default_link(gpu)
    )
    times = StepTimes(deployment)
    traffic = Traffic(measured.isl, measured.osl, measured.concurrency)
    compared = measured.ttft_ms is not None
    return Checked(measured, steady(times, traffic), burst(times, traffic).ttft_ns / 1e6 if compared else None)


def mean_error(ratios: Sequence[float]) -> float:
    """Return the mean of |estimate / measured - 1| from ratios measured / estimate."""
    return sum(abs(1 / ratio - 1) for ratio in ratios) / len(ratios)
