"""What the commands that measure say of where, and of a candidate."""

from __future__ import annotations

from typing import Any

from traceanalyzer.commands.tune.measure.bench import MeasuringBench
from traceanalyzer.commands.tune.measure.race import CandidateResult
from traceanalyzer.commands.tune.measure.result import MeasuredTile
from traceanalyzer.declare import part_of

NO_MEASUREMENT = "no measurement: these are times of an interpreter on tiny shapes and say nothing about a GPU"


def bench_fields(bench: MeasuringBench) -> dict[str, Any]:
    """Return what every document of measurements says of where they were taken."""
    return {
        "kernel": bench.kernel,
        "backend": bench.backend,
        "measured": bench.where.measured,
        "device": dict(bench.where.device),
        "versions": dict(bench.where.versions),
    }


def measured_tile(result: CandidateResult) -> MeasuredTile:
    """Return a candidate's result as documents hold it."""
    return part_of(
        MeasuredTile,
        result,
        config=result.config.to_dict(),
        median_ms=result.median.value if result.median else None,
        interval_ms=result.median.ends if result.median else None,
        ratio_to_best=result.ratio.value if result.ratio else None,
        ratio_interval=result.ratio.ends if result.ratio else None,
    )
