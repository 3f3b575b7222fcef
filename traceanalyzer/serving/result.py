"""What several commands answer about serving results, field by field."""

from __future__ import annotations

from functools import partial
from typing import Annotated, ClassVar, Literal

from traceanalyzer.declare import Document, Part, told
from traceanalyzer.problems import TraceWarning

METRIC = "Key of vllm bench; its unit is in the key: _ms, _throughput per second, else seconds."

Concurrency = Annotated[float | None, told("Most requests in flight.", null="unlimited or unknown")]
RequestRate = Annotated[
    float | None, told("Requests sent.", null="all at once, or unknown", unit="requests/s", heading="request rate")
]
Verdict = Literal["better", "worse", "same"]
Direction = Annotated[Literal["higher", "lower"], told("Which way is good.")]
Comparable = Annotated[bool, told("Whether all requests succeeded and both sides had the same work at every load.")]
Values = str | float | bool | list[str | float | bool | None]
"""A setting, or the several values that it has on one side."""


Figure = float | None
_logged = partial(told, null="not logged")
_repeated = partial(told, null="no repeated runs")


class GpuUtilisation(Part):
    """A GPU in the averages of a utilisation log. MB are 10^6 bytes."""

    log: Annotated[str, told("Name of the log.")]
    source: Annotated[str, told("Its file.")]
    gpu: Annotated[str, told("Id of the GPU.", heading="GPU")]
    samples: Annotated[int, told("Samples averaged.")]
    gpu_percent: Annotated[Figure, _logged("GPU busy.", heading="GPU %")]
    memory_controller_percent: Annotated[Figure, _logged("Memory controller busy.", heading="mem. busy %")]
    memory_used_mib: Annotated[Figure, _logged("Memory used.", unit="MiB", heading="memory MiB")]
    memory_used_percent: Annotated[Figure, _logged("Memory used, of all memory.", heading="memory %")]
    pcie_rx_mb_s: Annotated[Figure, _logged("PCIe received.", unit="MB/s", heading="PCIe rx MB/s")]
    pcie_tx_mb_s: Annotated[Figure, _logged("PCIe sent.", unit="MB/s", heading="PCIe tx MB/s")]
    pcie_both_mb_s: Annotated[
        Figure, _logged("PCIe in both directions, where reported together.", unit="MB/s", heading="PCIe rx+tx MB/s")
    ]
    power_w: Annotated[Figure, _logged("Power.", unit="W", heading="power W")]


class LoadResult(Part):
    """The runs of one configuration at one load."""

    csv_title: ClassVar[str] = "serving show --csv"

    result: Annotated[str, told("Name of the configuration.")]
    concurrency: Concurrency
    request_rate: RequestRate
    runs: Annotated[int, told("Runs of this load.")]
    completed: Annotated[int | None, told("Requests answered.", null="not stated")]
    failed: Annotated[int | None, told("Requests failed.", null="not stated")]
    settings: Annotated[
        dict[str, int | float | str | bool | None], told("What the runs were told to do, by key.", csv=False)
    ]
    metrics: Annotated[
        dict[str, float | None],
        told(
            "Means by the key of vllm bench; the unit is in the key: _ms, _throughput per second, else seconds.",
            csv=False,
        ),
    ]
    half_widths: Annotated[
        dict[str, float | None],
        told("Half the 95 % confidence interval of each mean; null without repeated runs.", basis="derived", csv=False),
    ]
    derived: Annotated[list[str], told("Metrics calculated from the per-request times in the file.", csv=False)]
    sources: Annotated[list[str], told("Files.", csv=False)]


class DifferingSetting(Part):
    """A setting whose values differ between the sides."""

    setting: Annotated[str, told("Its key.")]
    before: Annotated[Values | None, told("Value of BEFORE; a list of several.", null="not stated")]
    after: Annotated[Values | None, told("Value of AFTER; a list of several.", null="not stated")]


class MetricChange(Part):
    """One metric at one load, before and after."""

    csv_title: ClassVar[str] = "serving compare --csv"

    concurrency: Concurrency
    request_rate: RequestRate
    metric: Annotated[str, told(METRIC)]
    before: Annotated[float | None, told("Mean of BEFORE.", null="that side lacks it")]
    after: Annotated[float | None, told("Mean of AFTER.", null="that side lacks it")]
    change_percent: Annotated[float | None, told("Change of the mean.", null="a side is missing, or before is 0")]
    change_percent_low: Annotated[Figure, _repeated("Low end of its 95 % confidence interval.", unit="%")]
    change_percent_high: Annotated[Figure, _repeated("High end of its 95 % confidence interval.", unit="%")]
    direction: Direction
    verdict: Annotated[
        Verdict | None,
        told("same: within noise.", null="a side is missing, or the sides did not do the same work"),
    ]
    where: Annotated[
        dict[str, int | float | str | bool | None],
        told("Other settings that tell this row from others.", csv=False),
    ]
    runs_before: Annotated[int, told("Runs of BEFORE.", csv=False)]
    runs_after: Annotated[int, told("Runs of AFTER.", csv=False)]
    half_width_before: Annotated[Figure, _repeated("Half the confidence interval of before.", csv=False)]
    half_width_after: Annotated[Figure, _repeated("Half the confidence interval of after.", csv=False)]


class ServingDocument(Document, tag="traceanalyzer/serving/1"):
    """Two sides of a serving benchmark."""

    command: ClassVar[str] = "serving compare"

    comparable: Comparable
    differing_settings: Annotated[list[DifferingSetting], told("Settings that differ.")]
    metrics: Annotated[list[MetricChange], told("By load, then metric.")]
    method: Annotated[str, told("How verdicts were reached.")]
    utilisation: Annotated[list[GpuUtilisation], told("Averages of --utilisation logs, one per GPU.")]
    warnings: Annotated[list[TraceWarning], told("What stands against the figures; also printed on stderr.")]
