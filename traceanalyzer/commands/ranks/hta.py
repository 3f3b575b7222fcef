"""HolisticTraceAnalysis as a second opinion, from frames that are already read: nothing is parsed again.

What it is believed in: busy, idle and overlapped time (without its rounding to µs), the split of idle time, queue
lengths, and the critical path of eager steps. What it gets wrong is said in the notes: communication kernels that are
not NCCL's count as computation there, and a critical path through graph launches means nothing.
"""

from __future__ import annotations

import logging
import math
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import polars as pl

from traceanalyzer.commands.ranks import result
from traceanalyzer.commands.ranks.compute import RankComparison
from traceanalyzer.commands.ranks.members import Member
from traceanalyzer.names.collectives import collective
from traceanalyzer.segment import segment

T = TypeVar("T")
NCCL_PREFIX = "nccl"
LEFT_OUT = ("python_function", "gpu_user_annotation", "Trace", "overhead")
"""Categories that HTA's analyses do not use."""


def second_opinion(comparison: RankComparison) -> result.SecondOpinion:
    """Ask HolisticTraceAnalysis about the ranks of a comparison; CPU-only traces give an empty answer with a note."""
    members = [member for member in comparison.members if member.device is not None]
    if not members:
        notes = ["no device events for HolisticTraceAnalysis"]
        return result.SecondOpinion(temporal=[], overlap=[], idle=[], queue=[], critical_path=[], notes=notes)
    notes = list(_misread(comparison))
    with _quiet():
        analysis = trace_analysis(members)
        ranks = [member.rank for member in members]
        temporal = _try(notes, "temporal breakdown", lambda: _temporal(analysis))
        overlap = _try(notes, "overlap", lambda: _overlap(analysis))
        idle = _try(notes, "idle breakdown", lambda: _idle(analysis, ranks))
        queue = _try(notes, "queue length", lambda: _queue(analysis, ranks))
        critical: list[result.HtaCriticalPath] = []
        eager = [member for member in members if not segment(member.trace).events["graph"].any()]
        if len(eager) < len(members):
            notes.append("no critical path for steps that graphs launch: it sees one launch instead of their kernels")
        for member in eager:
            critical += _try(notes, f"critical path of rank {member.rank}", partial(_critical_path, analysis, member))
    return result.SecondOpinion(
        temporal=temporal, overlap=overlap, idle=idle, queue=queue, critical_path=critical, notes=notes
    )


def trace_analysis(members: list[Member]) -> Any:
    """Build a `hta.trace_analysis.TraceAnalysis` on frames at hand.

    Its own parser is never called; what that parser would have made is filled in: the symbol table, the metadata and
    one pandas frame per rank, µs as floats, unrounded, -1 for what is missing.
    """
    os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
    from hta.common.trace import Trace as HtaTrace
    from hta.common.trace import add_iteration, transform_correlation_to_index
    from hta.trace_analysis import TraceAnalysis

    trace = HtaTrace(trace_files={}, trace_dir=".")
    frames = {member.rank: _events(member) for member in members}
    symbols = pl.concat([pl.concat([f["name"], f["cat"]]) for f in frames.values()]).unique().sort().to_list()
    trace.symbol_table.add_symbols(symbols)
    numbers = trace.symbol_table.get_sym_id_map()
    for member in members:
        frame = _pandas(frames[member.rank], numbers)
        transform_correlation_to_index(frame, trace.symbol_table)
        add_iteration(frame, trace.symbol_table)
        trace.traces[member.rank] = frame
        trace.meta_data[member.rank] = {"distributedInfo": member.trace.metadata.distributed}
    trace.align_and_filter_trace(include_last_profiler_step=True)
    for rank, frame in trace.traces.items():
        indexed = frame.set_index("index", drop=False)
        indexed.index.names = [None]
        trace.traces[rank] = indexed
    trace.is_parsed = True
    analysis = TraceAnalysis.__new__(TraceAnalysis)
    analysis.t = trace
    return analysis


def _events(member: Member) -> pl.DataFrame:
    """The events that HTA looks at, of the one device, numbered from 1 in order of time."""
    category, name = pl.col("cat").cast(pl.String), pl.col("name").cast(pl.String)
    elsewhere = pl.col("device").is_not_null() & (
        pl.col("device") != (member.device if member.device is not None else -1)
    )
    on_device = category.is_in(["kernel", "gpu_memcpy", "gpu_memset"])
    return (
        member.trace.events.filter(
            category.is_not_null(), ~category.is_in(LEFT_OUT), name.is_not_null(), ~(on_device & elsewhere)
        )
        .select(
            cat=category,
            name=name,
            pid=pl.col("pid").cast(pl.String).cast(pl.Int64, strict=False).fill_null(-1),
            tid=pl.col("tid").cast(pl.String).cast(pl.Int64, strict=False).fill_null(-1),
            start_ns=pl.col("start_ns"),
            dur_ns=pl.col("dur_ns"),
            stream=pl.when(on_device).then(pl.col("stream")).fill_null(-1),
            # Correlation ids beyond 63 bits are numbered in order of size.
            correlation=pl.when(pl.col("correlation").is_not_null())
            .then(pl.col("correlation").rank("dense"))
            .cast(pl.Int64)
            .fill_null(-1),
            bytes=pl.col("bytes"),
        )
        .sort("start_ns", pl.col("dur_ns"), descending=[False, True])
        .with_row_index("index", offset=1)
        .collect()
    )


def _pandas(events: pl.DataFrame, numbers: dict[str, int]) -> Any:
    import pandas as pd

    start = events["start_ns"].to_numpy() / 1000
    duration = events["dur_ns"].to_numpy() / 1000
    gbps = events.select(
        (pl.when(pl.col("dur_ns") > 0).then(pl.col("bytes") / pl.col("dur_ns"))).fill_null(0.0)
    ).to_series()
    index = events["index"].cast(pl.Int64).to_numpy()
    return pd.DataFrame(
        {
            "index": index,
            "cat": [numbers[text] for text in events["cat"].to_list()],
            "name": [numbers[text] for text in events["name"].to_list()],
            "pid": events["pid"].to_numpy(),
            "tid": events["tid"].to_numpy(),
            "ts": start,
            "dur": duration,
            "end": start + duration,
            "stream": events["stream"].to_numpy().copy(),
            "correlation": events["correlation"].to_numpy().copy(),
            "memory_bw_gbps": gbps.to_numpy(),
            "wait_on_stream": -1,
            "wait_on_cuda_event_record_corr_id": -1,
        },
        index=index,
    )


def _temporal(analysis: Any) -> list[result.HtaTemporal]:
    table = analysis.get_temporal_breakdown(visualize=False)
    times = ("idle", "compute", "non_compute", "kernel")
    names = {"kernel": "kernel_time_us"}
    return [
        result.HtaTemporal(
            rank=int(row["rank"]),
            **{names.get(time, f"{time}_us"): _round(row[f"{time}_time(us)"]) for time in times},
        )
        for row in table.to_dict("records")
    ]


def _overlap(analysis: Any) -> list[result.HtaOverlap]:
    table = analysis.get_comm_comp_overlap(visualize=False)
    return [
        result.HtaOverlap(rank=int(row["rank"]), overlap_percent=_round(row["comp_comm_overlap_pctg"]))
        for row in table.to_dict("records")
    ]


def _idle(analysis: Any, ranks: list[int]) -> list[result.HtaIdle]:
    table, _ = analysis.get_idle_time_breakdown(ranks=ranks, visualize=False)
    return [
        result.HtaIdle(
            rank=int(row["rank"]),
            stream=int(row["stream"]),
            category=str(row["idle_category"]),
            idle_us=_round(row["idle_time"]),
        )
        for row in table.to_dict("records")
    ]


def _queue(analysis: Any, ranks: list[int]) -> list[result.HtaQueue]:
    table = analysis.get_queue_length_summary(ranks=ranks)
    if table is None:
        return []
    rows = []
    for (rank, stream), row in table.iterrows():
        values = row["queue_length"] if "queue_length" in row.index.get_level_values(0) else row
        mean, longest = _round(values["mean"]), _round(values["max"])
        rows.append(result.HtaQueue(rank=int(rank), stream=int(stream), mean=mean, max=longest))
    return rows


def _critical_path(analysis: Any, member: Member) -> list[result.HtaCriticalPath]:
    """Of the second complete step (the first may lack events), else of the only one."""
    steps = segment(member.trace).steps.filter("complete", pl.col("label").is_not_null())
    if steps.is_empty():
        return []
    label = str(steps["label"][min(1, steps.height - 1)])
    instance = int((steps["label"].head(min(2, steps.height)) == label).sum()) - 1
    answer = analysis.critical_path_analysis(rank=member.rank, annotation=label, instance_id=instance)
    graph, succeeded = answer
    if not succeeded:
        return []
    summary = graph.get_critical_path_breakdown().groupby("bound_by")["duration"].sum()
    total = float(summary.sum())
    return [
        result.HtaCriticalPath(
            rank=member.rank, bound_by=str(name), share=_round(float(value) / total) if total else None
        )
        for name, value in summary.sort_values(ascending=False).items()
        if name
    ]


def _misread(comparison: RankComparison) -> Iterator[str]:
    """Communication that HTA takes for computation, because its pattern knows NCCL's names only."""
    names: dict[str, int] = {}
    for member in comparison.members:
        totals = (
            segment(member.trace)
            .events.filter("is_kernel")
            .group_by(pl.col("name").cast(pl.String))
            .agg(pl.col("dur_ns").sum())
        )
        for name, total in totals.iter_rows():
            if collective(name) is not None and not name.startswith(NCCL_PREFIX):
                names[name] = names.get(name, 0) + total
    if names:
        total = sum(names.values())
        yield (
            f"{len(names)} communication kernels ({total / 1e6:,.2f} ms over all ranks) are not NCCL's by name: "
            "HolisticTraceAnalysis counts them as computation, so its computation is that much too high"
        )


def _try(notes: list[str], what: str, analyse: Callable[[], list[T]]) -> list[T]:
    """Run one analysis; what fails in it is noted, not raised: a second opinion must not stop the first."""
    try:
        return analyse()
    except Exception as error:
        notes.append(f"HolisticTraceAnalysis fails at the {what}: {type(error).__name__}: {error}"[:300])
        return []


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep HTA's log messages and warnings off the terminal."""
    previous = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(previous)


def _round(value: float) -> float | None:
    """Nanoseconds are the last digit that means something; None for what is not a number."""
    return None if math.isnan(value) else round(float(value), 4)
