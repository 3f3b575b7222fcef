"""What `traceanalyzer serving` answers, field by field; the comparison of two sides is declared in the room."""

from __future__ import annotations

from typing import Annotated, ClassVar

from traceanalyzer.declare import Document, Part, told
from traceanalyzer.problems import TraceWarning
from traceanalyzer.serving.result import (
    Comparable,
    Concurrency,
    Direction,
    GpuUtilisation,
    LoadResult,
    RequestRate,
    ServingDocument,
)

__all__ = ["ServingDocument", "ServingLayoutsDocument", "ServingResultsDocument"]

LAYOUT = "Name of the layout."


class RatioAtLoad(Part):
    """The ratio of two layouts at one load."""

    concurrency: Concurrency
    request_rate: RequestRate
    ratio: Annotated[float, told("Layout over reference.", unit="ratio")]


class LayoutRatio(Part):
    """One metric of a layout over that of a reference."""

    csv_title: ClassVar[str] = "serving compare --layouts --csv"

    reference: Annotated[str, told("Name of the layout compared with.")]
    layout: Annotated[str, told(LAYOUT)]
    metric: Annotated[str, told("Key of vllm bench.")]
    ratio_low: Annotated[float, told("Smallest over the loads, layout over reference.", unit="ratio")]
    ratio_high: Annotated[float, told("Largest over the loads.", unit="ratio")]
    direction: Direction
    loads: Annotated[int, told("Loads that both have.")]
    by_load: Annotated[list[RatioAtLoad], told("At each load.", csv=False)]


class BestLayout(Part):
    """The layout with the most output at a load."""

    concurrency: Concurrency
    request_rate: RequestRate
    layout: Annotated[str, told(LAYOUT)]
    output_throughput: Annotated[float, told("Its output.", unit="tokens/s")]


class ServingLayoutsDocument(Document, tag="traceanalyzer/serving-layouts/1"):
    """Named layouts compared by ranges of ratios."""

    command: ClassVar[str] = "serving compare --layouts"

    layouts: Annotated[list[str], told("Their names.")]
    comparable: Comparable
    ratios: Annotated[list[LayoutRatio], told("By pair of layouts and metric.")]
    best: Annotated[list[BestLayout], told("Layout with the most output at each load that at least two ran.")]
    utilisation: Annotated[list[GpuUtilisation], told("Averages of --utilisation logs, one per GPU.")]
    warnings: Annotated[list[TraceWarning], told("What stands against the figures; also printed on stderr.")]


class ResultSeries(Part):
    """The results of one configuration."""

    name: Annotated[str, told("Its name: label, settings that differ, or file.")]
    results: Annotated[list[LoadResult], told("By load.")]


class ServingResultsDocument(Document, tag="traceanalyzer/serving-results/1"):
    """Results of serving benchmarks."""

    command: ClassVar[str] = "serving show"

    series: Annotated[list[ResultSeries], told("One per configuration.")]
    utilisation: Annotated[list[GpuUtilisation], told("Averages of --utilisation logs, one per GPU.")]
    warnings: Annotated[list[TraceWarning], told("What stands against the figures; also printed on stderr.")]
