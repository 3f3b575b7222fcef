"""What `traceanalyzer serving` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from traceanalyzer.declare import Document, Part, told
from traceanalyzer.problems import TraceWarning


class ServingLayoutsByLoad(Part):
    """TODO"""

    concurrency: Annotated[float | None, told("Most requests in flight.", null="unlimited or not known")]
    request_rate: Annotated[float | None, told("Requests sent.", null="all at once, or not known", unit="requests/s")]
    ratio: Annotated[float, told("Layout over reference.", unit="ratio")]


class ServingLayoutsRatio(Part):
    """TODO"""

    reference: Annotated[str, told("Layout compared with.")]
    layout: Annotated[str, told("Layout.")]
    metric: Annotated[str, told("Key of vllm bench.")]
    ratio_low: Annotated[float, told("Least over the loads, layout over reference.", unit="ratio")]
    ratio_high: Annotated[float, told("Largest over the loads.", unit="ratio")]
    direction: Annotated[Literal["higher", "lower"], told("Which way is good.")]
    loads: Annotated[int, told("Loads that both have.")]
    by_load: Annotated[list[ServingLayoutsByLoad], told("At each load.")]


class ServingLayoutsBest(Part):
    """TODO"""

    concurrency: Annotated[float | None, told("Most requests in flight.", null="unlimited or not known")]
    request_rate: Annotated[float | None, told("Requests sent.", null="all at once, or not known", unit="requests/s")]
    layout: Annotated[str, told("Its name.")]
    output_throughput: Annotated[float, told("Its output.", unit="tokens/s")]


class ServingLayoutsUtilisation(Part):
    """TODO"""

    log: Annotated[str, told("Name of the log.")]
    source: Annotated[str, told("Its file.")]
    gpu: Annotated[str, told("Id of the GPU.")]
    samples: Annotated[int, told("Samples averaged.")]
    gpu_percent: Annotated[float | None, told("GPU busy.", null="not logged")]
    memory_controller_percent: Annotated[float | None, told("Memory controller busy.", null="not logged")]
    memory_used_mib: Annotated[float | None, told("Memory used.", null="not logged", unit="MiB")]
    memory_used_percent: Annotated[float | None, told("Memory used of all.", null="not logged")]
    pcie_rx_mb_s: Annotated[float | None, told("PCIe received.", null="not logged", unit="MB/s")]
    pcie_tx_mb_s: Annotated[float | None, told("PCIe sent.", null="not logged", unit="MB/s")]
    pcie_both_mb_s: Annotated[
        float | None, told("PCIe in both directions, where reported together.", null="not logged", unit="MB/s")
    ]
    power_w: Annotated[float | None, told("Power.", null="not logged", unit="W")]


class ServingLayoutsDocument(Document, tag="traceanalyzer/serving-layouts/1"):
    """Named layouts compared by ranges of ratios."""

    command: ClassVar[str] = "serving compare --layouts"

    layouts: Annotated[list[str], told("Their names.")]
    comparable: Annotated[bool, told("Whether all requests succeeded and the work was the same.")]
    ratios: Annotated[list[ServingLayoutsRatio], told("By pair of layouts and metric.")]
    best: Annotated[list[ServingLayoutsBest], told("Layout with most output at each load.")]
    utilisation: Annotated[list[ServingLayoutsUtilisation], told("Averages of --utilisation logs, one a GPU.")]
    warnings: Annotated[list[TraceWarning], told("What stands against the figures; also printed on stderr.")]


class ServingResultsResult(Part):
    """TODO"""

    concurrency: Annotated[float | None, told("Most requests in flight.", null="unlimited or not known")]
    request_rate: Annotated[float | None, told("Requests sent.", null="all at once, or not known", unit="requests/s")]
    runs: Annotated[int, told("Runs of this load.")]
    completed: Annotated[int | None, told("Requests answered.", null="not stated")]
    failed: Annotated[int | None, told("Requests failed.", null="not stated")]
    settings: Annotated[dict[str, int | float | str | bool | None], told("What the runs were told to do, by key.")]
    metrics: Annotated[
        dict[str, float | None],
        told("Means by the key of vllm bench; the unit is in the key: _ms, _throughput a second, else seconds."),
    ]
    half_widths: Annotated[
        dict[str, float | None], told("Half of the confidence interval of each mean; null without repeated runs.")
    ]
    derived: Annotated[list[str], told("Metrics calculated from the per-request times in the file.")]
    sources: Annotated[list[str], told("Files.")]


class ServingResultsSeries(Part):
    """TODO"""

    name: Annotated[str, told("Its name.")]
    results: Annotated[list[ServingResultsResult], told("By load.")]


class ServingResultsUtilisation(Part):
    """TODO"""

    log: Annotated[str, told("Name of the log.")]
    source: Annotated[str, told("Its file.")]
    gpu: Annotated[str, told("Id of the GPU.")]
    samples: Annotated[int, told("Samples averaged.")]
    gpu_percent: Annotated[float | None, told("GPU busy.", null="not logged")]
    memory_controller_percent: Annotated[float | None, told("Memory controller busy.", null="not logged")]
    memory_used_mib: Annotated[float | None, told("Memory used.", null="not logged", unit="MiB")]
    memory_used_percent: Annotated[float | None, told("Memory used of all.", null="not logged")]
    pcie_rx_mb_s: Annotated[float | None, told("PCIe received.", null="not logged", unit="MB/s")]
    pcie_tx_mb_s: Annotated[float | None, told("PCIe sent.", null="not logged", unit="MB/s")]
    pcie_both_mb_s: Annotated[
        float | None, told("PCIe in both directions, where reported together.", null="not logged", unit="MB/s")
    ]
    power_w: Annotated[float | None, told("Power.", null="not logged", unit="W")]


class ServingResultsDocument(Document, tag="traceanalyzer/serving-results/1"):
    """Results of serving benchmarks."""

    command: ClassVar[str] = "serving show"

    series: Annotated[list[ServingResultsSeries], told("One a configuration.")]
    utilisation: Annotated[list[ServingResultsUtilisation], told("Averages of --utilisation logs, one a GPU.")]
    warnings: Annotated[list[TraceWarning], told("What stands against the figures; also printed on stderr.")]


class ServingDifferingSetting(Part):
    """TODO"""

    setting: Annotated[str, told("Its key.")]
    before: Annotated[
        str | float | bool | list[str | float | bool | None] | None,
        told("Value of BEFORE; a list of several.", null="not stated"),
    ]
    after: Annotated[
        str | float | bool | list[str | float | bool | None] | None,
        told("Value of AFTER; a list of several.", null="not stated"),
    ]


class ServingMetric(Part):
    """TODO"""

    metric: Annotated[str, told("Key of vllm bench; its unit is in the key: _ms, _throughput a second, else seconds.")]
    before: Annotated[float | None, told("Mean of BEFORE.", null="that side lacks it")]
    after: Annotated[float | None, told("Mean of AFTER.", null="that side lacks it")]
    change_percent: Annotated[float | None, told("Change of the mean.", null="a side is missing, or before is 0")]
    direction: Annotated[Literal["higher", "lower"], told("Which way is good.")]
    verdict: Annotated[
        Literal["better", "worse", "same"] | None,
        told("same: within noise.", null="a side is missing, or the sides did not do the same work"),
    ]
    concurrency: Annotated[float | None, told("Most requests in flight.", null="unlimited or not known")]
    request_rate: Annotated[float | None, told("Requests sent.", null="all at once, or not known", unit="requests/s")]
    where: Annotated[dict[str, int | float | str | bool | None], told("Other settings that tell this row from others.")]
    change_percent_low: Annotated[
        float | None, told("Confidence interval of the change, low.", null="no repeated runs", unit="%")
    ]
    change_percent_high: Annotated[
        float | None, told("Confidence interval of the change, high.", null="no repeated runs", unit="%")
    ]
    runs_before: Annotated[int, told("Runs of BEFORE.")]
    runs_after: Annotated[int, told("Runs of AFTER.")]
    half_width_before: Annotated[
        float | None, told("Half of the confidence interval of before.", null="no repeated runs")
    ]
    half_width_after: Annotated[
        float | None, told("Half of the confidence interval of after.", null="no repeated runs")
    ]


class ServingUtilisation(Part):
    """TODO"""

    log: Annotated[str, told("Name of the log.")]
    source: Annotated[str, told("Its file.")]
    gpu: Annotated[str, told("Id of the GPU.")]
    samples: Annotated[int, told("Samples averaged.")]
    gpu_percent: Annotated[float | None, told("GPU busy.", null="not logged")]
    memory_controller_percent: Annotated[float | None, told("Memory controller busy.", null="not logged")]
    memory_used_mib: Annotated[float | None, told("Memory used.", null="not logged", unit="MiB")]
    memory_used_percent: Annotated[float | None, told("Memory used of all.", null="not logged")]
    pcie_rx_mb_s: Annotated[float | None, told("PCIe received.", null="not logged", unit="MB/s")]
    pcie_tx_mb_s: Annotated[float | None, told("PCIe sent.", null="not logged", unit="MB/s")]
    pcie_both_mb_s: Annotated[
        float | None, told("PCIe in both directions, where reported together.", null="not logged", unit="MB/s")
    ]
    power_w: Annotated[float | None, told("Power.", null="not logged", unit="W")]


class ServingDocument(Document, tag="traceanalyzer/serving/1"):
    """Two sides of a serving benchmark."""

    command: ClassVar[str] = "serving compare"

    comparable: Annotated[bool, told("Whether all requests succeeded and both sides had the same work at every load.")]
    differing_settings: Annotated[list[ServingDifferingSetting], told("Settings that differ.")]
    metrics: Annotated[list[ServingMetric], told("By load, then metric.")]
    method: Annotated[str, told("How verdicts were reached.")]
    utilisation: Annotated[list[ServingUtilisation], told("Averages of --utilisation logs, one a GPU.")]
    warnings: Annotated[list[TraceWarning], told("What stands against the figures; also printed on stderr.")]
