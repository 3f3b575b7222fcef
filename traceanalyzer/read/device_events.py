"""What ran on a GPU or another accelerator, where the file does not say it the usual way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import polars as pl

from traceanalyzer.problems import TraceWarning
from traceanalyzer.read.event_schema import DEVICE_CATEGORIES, LAUNCH_CATEGORIES, accelerator_of
from traceanalyzer.read.store import Store, events_in
from traceanalyzer.wording import plural

MOST_DEVICES = 64
"""A process number below this may be a GPU's although a host process has it too (in containers these count from 1).
Chosen, not fitted: no host has more devices."""

FOLLOWS_SHARE = 0.9
"""Share of a category's events that must have what a kernel has, for the category to be read as kernels. Chosen, not
fitted: profilers write a category's events all in one way."""

ON_HOST = frozenset(
    {"runtime", "driver", "user_annotation", "sync", "event", "counters", "insight", "profiler_range", "scope_profiler"}
)
"""What an accelerator's categories may hold besides work on it, by what follows the prefix. Source: ActivityType of
Kineto."""

COUNTER_CATEGORIES = ("cuda_profiler_range", "xpu_scope_profiler")
"""Categories of Kineto whose events are hardware counters of a stretch of time."""

ACCELERATOR_PROCESS = re.compile(r"(?i)\b(ascend hardware|npu|hpu|xpu|mtia|mlu)\b")
"""Process names of accelerators, for profilers that give events no category (Ascend's trace_view.json)."""

LAUNCHES_WORK = r"(?i)launch.*kernel|graphlaunch|kernellaunch|enqueuekernel|modulelaunch|launchcooperative"
"""Names of host calls that start kernels, of CUDA, HIP, Level Zero and SYCL."""


def adopt_accelerators(store: Store) -> list[TraceWarning]:
    """Read as kernels the events of other accelerators that follow their pattern; name those that do not.

    The pattern is what ties a kernel to its launch and its place: duration, stream, correlation, and a device (in the
    args or as the process). It is judged by category, before anything else looks at the device's events.
    """
    files = store.files("other")
    categories = _counts(files)
    kinds = {cat: accelerator_of(cat) for cat in categories}
    work = {cat: kind[1] for cat, kind in kinds.items() if kind is not None and kind[1] not in ON_HOST}
    alike = [cat for cat in work if _follows(files, cat)]
    if alike:
        _move_to_devices(store, files, alike)
    alone = not store.files("device")
    # What Kineto calls an accelerator's op is a host call in some versions: beside kernels it is one.
    unread = sorted(cat for cat, kind in work.items() if cat not in alike and (alone or kind != "op"))
    return [_unread({cat: categories[cat] for cat in unread})] if unread else []


def _unread(counts: Mapping[str, int], of: str = "category") -> TraceWarning:
    total = sum(counts.values())
    named = ", ".join(f"{count:,} of {of} {name}" for name, count in counts.items())
    message = (
        f"{plural(total, 'event')} of another accelerator ({named}) {'is' if total == 1 else 'are'} not read as "
        "kernels: the link to a launch, the stream or the duration is missing. Host operations do not stand in for them"
    )
    return TraceWarning("accelerator_events", message, count=total)


def _counts(files: list[Path]) -> dict[str, int]:
    if not files:
        return {}
    counted = events_in(files).group_by("cat").len().collect()
    return {str(cat): int(count) for cat, count in counted.iter_rows() if cat is not None}


def _follows(files: list[Path], category: str) -> bool:
    own = events_in(files).filter(pl.col("cat").cast(pl.String) == category)
    kernel = pl.all_horizontal(pl.col("stream", "correlation").is_not_null(), pl.col("dur_ns") > 0)
    return float(own.select(kernel.mean()).collect().item() or 0.0) >= FOLLOWS_SHARE


def _move_to_devices(store: Store, files: Iterable[Path], categories: list[str]) -> None:
    """Put a category's rows where kernels are stored."""
    for file in files:
        frame = pl.read_parquet(file)
        chosen = frame["cat"].cast(pl.String).is_in(categories).fill_null(value=False)
        if not chosen.any():
            continue
        kernels = frame.filter(chosen).with_columns(cat=pl.lit("kernel").cast(pl.Categorical()))
        kernels.write_parquet(store.directory / f"device-{file.name}", compression="zstd", compression_level=1)
        rest = frame.filter(~chosen)
        if rest.is_empty():
            file.unlink()
        else:
            rest.write_parquet(file, compression="zstd", compression_level=1)


def place_on_devices(store: Store) -> None:
    """Fill in the device and stream of events whose args lack them, from their process and thread.

    Kineto writes a GPU's number as the process and a stream's as the thread (``7`` or ``stream 7``). What other events
    of the same process and thread state comes first, so that a few events without args join the others' timeline.
    """
    files = store.files("device")
    if not files:
        return
    missing = events_in(files).select(pl.col("device", "stream").null_count()).collect(engine="streaming").row(0)
    if not any(missing):
        return
    places = events_in(files).select("pid", "tid", "device", "stream").unique().collect().cast({"pid": pl.String})
    places = places.with_columns(pl.col("tid").cast(pl.String))
    devices = _devices(places, store)
    streams = _streams(places)
    pids = pl.DataFrame(list(devices.items()), schema={"pid": pl.String, "by_pid": pl.Int32}, orient="row")
    threads = pl.DataFrame(
        [(*place, stream) for place, stream in streams.items()],
        schema={"pid": pl.String, "tid": pl.String, "by_tid": pl.Int64},
        orient="row",
    )
    for file in files:
        frame = pl.read_parquet(file)
        keys = frame.select(pl.col("pid", "tid").cast(pl.String))
        known = keys.join(pids, on="pid", how="left", nulls_equal=True, maintain_order="left").join(
            threads, on=["pid", "tid"], how="left", nulls_equal=True, maintain_order="left"
        )
        filled = {
            name: known[by] if name not in frame.columns else frame[name].fill_null(known[by])
            for name, by in (("device", "by_pid"), ("stream", "by_tid"))
        }
        frame.with_columns(**filled).write_parquet(file, compression="zstd", compression_level=1)


def forget_zero_correlations(store: Store) -> None:
    """Take a correlation of 0 that several device events share for none, unless a graph launch has it.

    CUPTI and roctracer count from 1; 0 is what kernels get that a library launched where nobody looked.
    """
    files = store.files("device")
    zero = pl.col("correlation") == 0
    if not files or int(events_in(files).select(zero.sum()).collect(engine="streaming").item() or 0) < 2:
        return
    graphs = pl.col("name").cast(pl.String).str.contains("(?i)GraphLaunch")
    if store.scan(LAUNCH_CATEGORIES).select((zero & graphs).any()).collect().item():
        return
    for file in files:
        frame = pl.read_parquet(file)
        if "correlation" in frame.columns and frame.select(zero.any()).item():
            kept = frame.with_columns(correlation=pl.when(zero.not_()).then(pl.col("correlation")))
            kept.write_parquet(file, compression="zstd", compression_level=1)


def _devices(places: pl.DataFrame, store: Store) -> dict[str | None, int]:
    """Return the device of each process that some events without one belong to."""
    stated: dict[str | None, int] = {}
    for pid, device in (
        places.filter(pl.col("device").is_not_null())
        .select("pid", "device")
        .unique()
        .sort("pid", "device", nulls_last=True)
        .iter_rows()
    ):
        stated.setdefault(pid, device)
    only = next(iter(stated.values()), 0) if len(set(stated.values())) <= 1 else 0
    hosts = store.scan((*LAUNCH_CATEGORIES, "cpu_op")).select(pl.col("pid").cast(pl.String).unique()).collect()["pid"]
    devices = {}
    for pid in places.filter(pl.col("device").is_null())["pid"].unique():
        number = _number(pid)
        if number is not None and number >= MOST_DEVICES and pid in hosts:
            number = None
        devices[pid] = stated.get(pid, only if number is None else number)
    return devices


def _streams(places: pl.DataFrame) -> dict[tuple[str | None, str | None], int | None]:
    """Return the stream of each thread that some events without one belong to."""
    stated: dict[tuple[str | None, str | None], int] = {}
    for pid, tid, stream in (
        places.filter(pl.col("stream").is_not_null())
        .select("pid", "tid", "stream")
        .unique()
        .sort("pid", "tid", "stream", nulls_last=True)
        .iter_rows()
    ):
        stated.setdefault((pid, tid), stream)
    lacking = places.filter(pl.col("stream").is_null()).select("pid", "tid").unique()
    return {place: stated.get(place, _number(place[1])) for place in lacking.iter_rows()}


def _number(label: str | None) -> int | None:
    """Return the number that a label is or ends with, if it fits a device's column."""
    digits = pl.select(pl.lit(label, dtype=pl.String).str.extract(r"^(?:-?|.*\D)(\d{1,9})\s*$")).item()
    return None if digits is None else int(digits)


def unseen_work(
    store: Store, warnings: Iterable[TraceWarning], process_names: Mapping[str, str]
) -> Iterator[TraceWarning]:
    """Say why no kernel is there to be analysed, or how many of no duration are left out.

    Args:
        store: the trace, its device events in place.
        warnings: what was said about it already.
        process_names: label of each process, by pid.
    """
    zero = _zero_kernels(store)
    if zero:
        message = (
            f"{plural(zero, 'kernel')} of duration 0 {'was' if zero == 1 else 'were'} left out: too short for the "
            "profiler's clock, their time is unknown"
        )
        yield TraceWarning("zero_duration", message, count=zero)
    if store.files("device") or any(warning.code == "accelerator_events" for warning in warnings):
        return
    unnamed = _on_accelerators(store, process_names)
    launches = _count_calls(store, LAUNCHES_WORK)
    if unnamed:
        yield _unread(unnamed, of="process")
    elif launches:
        message = f"{plural(launches, 'kernel launch')} recorded, but none of the kernels: {_why_no_kernels(store)}"
        yield TraceWarning("kernels_not_recorded", message, count=launches)
    else:
        yield TraceWarning(
            "cpu_only",
            "no GPU kernels in this trace (CPU only): record CUDA/GPU activity (ProfilerActivity.CUDA) to see them",
        )


def _why_no_kernels(store: Store) -> str:
    counters = sum(count for cat, count in _counts(store.files("other")).items() if cat in COUNTER_CATEGORIES)
    if _count_calls(store, "(?i)StreamBeginCapture"):
        return "they went into a graph capture and did not run. Pass the file as --capture beside the trace of a run"
    if counters:
        return (
            f"{plural(counters, 'range')} of hardware counters took their place. Record without counters to see them; "
            "host operations do not stand in for them"
        )
    return (
        "the profiler did not get the GPU's activity (another profiler at work, no permission). Host operations do not "
        "stand in for them"
    )


def _on_accelerators(store: Store, process_names: Mapping[str, str]) -> dict[str, int]:
    """Return the events without a category of processes that are named after an accelerator, by that name."""
    pids = {pid: name for pid, name in process_names.items() if ACCELERATOR_PROCESS.search(name)}
    files = store.files("other")
    if not pids or not files:
        return {}
    own = events_in(files).filter(pl.col("cat").is_null(), pl.col("dur_ns") > 0)
    counted = own.group_by(pl.col("pid").cast(pl.String)).len().collect()
    return {pids[pid]: int(count) for pid, count in counted.sort("pid").iter_rows() if pid in pids}


def _zero_kernels(store: Store) -> int:
    if not store.files("device"):
        return 0
    zero = (pl.col("dur_ns") == 0) & (pl.col("cat").cast(pl.String) == "kernel")
    return int(store.scan(DEVICE_CATEGORIES).select(zero.sum()).collect(engine="streaming").item() or 0)


def _count_calls(store: Store, pattern: str) -> int:
    """Count the host calls whose name matches."""
    names = store.scan(LAUNCH_CATEGORIES).select(pl.col("name").cast(pl.String).str.contains(pattern).sum())
    return int(names.collect().item() or 0)
