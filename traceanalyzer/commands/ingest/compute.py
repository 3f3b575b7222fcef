"""The overview of a trace: per device, where its time went, its steps and its top kernels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from traceanalyzer.findings import Finding
from traceanalyzer.hardware import DeviceName, recognise
from traceanalyzer.intervals import union_ns
from traceanalyzer.names import parse
from traceanalyzer.notebook import NotebookView
from traceanalyzer.segment import Segmentation, segment
from traceanalyzer.segment.opening import opening
from traceanalyzer.segment.recorded_work import RecordedWork, joint
from traceanalyzer.trace import Trace

COMMUNICATION = "communication"


@dataclass(frozen=True, eq=False)
class Timeline(NotebookView):
    """One device of one rank. Times in ns.

    Attributes:
        synthetic: whether the trace says that it was generated, not recorded.
        rank, device: None where the trace does not tell (device: in a CPU-only trace).
        device_name: the GPU's identity and how it is known.
        parallel: dp, pp, tp, ep ranks where known.
        kernels, kernel_sum_ns, busy_ns, span_ns: count, sum of durations, union of intervals, and first start to
            last end, of the kernels.
        memcpy_ns, memset_ns: sums of copies and memsets.
        comm_sum_ns, comm_exposed_ns: communication kernels, and the part during which no other kernel ran.
        graph_launches: launches that started two or more device events, or that are graph launches by name.
        outside_kernels, outside_sum_ns: kernels that belong to no step.
        top_kernels: name, count, total_ns, share of kernel_sum_ns; every kernel name, largest first.
        step_source: how steps were found; None without steps.
        steps: rows of segment.STEP_SCHEMA.
        opening: what to know before any figure.
    """

    synthetic: bool
    rank: int | None
    device: int | None
    device_name: DeviceName
    parallel: dict[str, int] | None
    kernels: int
    kernel_sum_ns: int
    busy_ns: int
    span_ns: int
    memcpy_ns: int
    memset_ns: int
    comm_sum_ns: int
    comm_exposed_ns: int
    graph_launches: int
    outside_kernels: int
    outside_sum_ns: int
    top_kernels: pl.DataFrame
    step_source: str | None
    steps: pl.DataFrame
    opening: tuple[Finding, ...] = ()


def timelines(trace: Trace) -> tuple[Timeline, ...]:
    """Summarise each device of a trace that ran kernels, in order of device id."""
    cut = segment(trace)
    devices = cut.events.select("device", "is_kernel").filter("is_kernel")["device"].unique().sort().to_list()
    return tuple(_timeline(trace, cut, device) for device in devices)


def engine_of(traces: Iterable[Trace]) -> str:
    """Name the engine that wrote the traces; unknown where they disagree or none tells."""
    engines = {engine(trace) for trace in traces} - {"unknown"}
    return engines.pop() if len(engines) == 1 else "unknown"


def workload_of(traces: Iterable[Trace]) -> RecordedWork:
    """Say what the traces were recorded of."""
    return joint(segment(trace).workload for trace in traces)


def engine(trace: Trace) -> str:
    """Name the engine that wrote the trace: vllm, sglang, atom, transformers or unknown."""
    if any(key.startswith("vllm") for key in trace.metadata.properties):
        return "vllm"
    sources = set(segment(trace).steps["source"].drop_nulls().to_list())
    for source in ("sglang", "atom", "vllm"):
        if source in sources:
            return source
    module = (
        trace.events.filter(pl.col("cat").cast(pl.String) == "python_function")
        .select(pl.col("name").cast(pl.String).str.extract(r"(?:^|/)(vllm|sglang|transformers)/", 1).alias("package"))
        .drop_nulls()
        .group_by("package")
        .len()
        .collect()
    )
    packages = set(module["package"].to_list())
    return next((name for name in ("vllm", "sglang", "transformers") if name in packages), "unknown")


def _timeline(trace: Trace, cut: Segmentation, device: int | None) -> Timeline:
    needed = cut.events.select(
        *("name", "cat", "device", "start_ns", "dur_ns", "correlation", "step", "graph", "is_kernel")
    )
    events = needed.filter(pl.col("device").eq_missing(device))
    kernels = events.filter("is_kernel").with_columns(
        is_comm=pl.col("name").is_in(_communication_names(events)), end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )
    sums = kernels.select(
        kernel_sum=pl.col("dur_ns").sum(),
        busy=union_ns(),
        span=pl.col("end_ns").max() - pl.col("start_ns").min(),
        comm=pl.col("dur_ns").filter("is_comm").sum(),
        outside=pl.col("step").is_null().sum(),
        outside_sum=pl.col("dur_ns").filter(pl.col("step").is_null()).sum(),
    ).row(0, named=True)
    compute_busy = kernels.filter(~pl.col("is_comm")).select(union_ns()).item()
    category = pl.col("cat").cast(pl.String)
    steps = cut.steps.filter(pl.col("device").eq_missing(device))
    return Timeline(
        synthetic=trace.synthetic,
        rank=trace.rank,
        device=device,
        device_name=recognise(trace.metadata.device_properties, device),
        parallel=trace.metadata.parallel,
        kernels=kernels.height,
        kernel_sum_ns=sums["kernel_sum"],
        busy_ns=sums["busy"],
        span_ns=sums["span"],
        memcpy_ns=int(events.filter(category == "gpu_memcpy")["dur_ns"].sum()),
        memset_ns=int(events.filter(category == "gpu_memset")["dur_ns"].sum()),
        comm_sum_ns=sums["comm"],
        comm_exposed_ns=sums["busy"] - compute_busy,
        graph_launches=_graph_launches(trace, events),
        outside_kernels=sums["outside"],
        outside_sum_ns=sums["outside_sum"],
        top_kernels=_totals(kernels),
        step_source=_step_source(steps),
        steps=steps,
        opening=tuple(opening(cut.only(device=device) if device is not None else cut, every=True)),
    )


def _communication_names(events: pl.DataFrame) -> list[str]:
    names = events["name"].unique().cast(pl.String).to_list()
    return [name for name in names if parse(name).kind == COMMUNICATION]


def _graph_launches(trace: Trace, events: pl.DataFrame) -> int:
    """Count launches of graphs: by the call's name where it was recorded, else by shared correlation."""
    graph_correlations = events.filter("graph")["correlation"].unique()
    named = trace.launches.filter(pl.col("name").cast(pl.String).str.contains(r"(?i)GraphLaunch"))
    return named.filter(pl.col("correlation").is_in(events["correlation"].drop_nulls().unique().implode())).height or (
        graph_correlations.len()
    )


def _totals(kernels: pl.DataFrame) -> pl.DataFrame:
    total = kernels["dur_ns"].sum()
    return (
        kernels.group_by("name")
        .agg(count=pl.len(), total_ns=pl.col("dur_ns").sum())
        .with_columns(pl.col("name").cast(pl.String), share=pl.col("total_ns") / total)
        .sort(["total_ns", "name"], descending=[True, False])
    )


def _step_source(steps: pl.DataFrame) -> str | None:
    sources = steps["source"].drop_nulls()
    return None if sources.is_empty() else str(sources.mode().sort().item(0))
