"""Graph launches whose kernel names were joined with other kernels' times, as roctracer does now and then.

A graph launch runs hundreds of kernels under one correlation. Where the profiler loses their order, it hands out the
names in the order of the program to times in the order in which their records arrived:

    file order   norm  qkv   attn  o     norm  qkv   attn  o          names repeat with the block
    start        0     1     4     6     2     3     5     7          and start times go back once
    re-paired    0     1     2     3     4     5     6     7          k-th name with k-th time

In a sound launch a name's durations agree, whatever the order of the file; in such a one they agree only after
re-pairing. Both are measured, and nothing is touched unless re-pairing makes them agree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from traceanalyzer.problems import TraceWarning
from traceanalyzer.read.event_schema import DEVICE_CATEGORIES
from traceanalyzer.read.store import Store, position
from traceanalyzer.wording import plural

LEAST_KERNELS = 16
"""Kernels from which on a launch is looked at: fewer than a block's do not repeat. Chosen, not fitted."""

LEAST_REPEATS = 3
"""Times that a name with its neighbours must occur in a launch to be told from the same name elsewhere. Chosen, not
fitted: two may agree by accident."""

NOTICEABLE = 0.1
"""Difference of two deviations (logarithms of duration) that counts as one: 10 %, above what equal kernels vary by.
Chosen, not fitted."""

SIGNIFICANT = 5.0
"""Standard deviations by which the kernels that fit better must outnumber those that fit worse. Chosen, not fitted: by
chance once in three million launches."""

CERTAIN = 0.25
"""Share of the squared deviations that may be left after re-pairing. Chosen, not fitted: the recordings known leave
3 %, sound launches grow."""

MOST_MOVED = 0.5
"""Share of a launch's kernels that are not k-th in the file and in time from which on its order counts as lost. Chosen,
not fitted: kernels that overlap swap places here and there."""

AS_GOOD = 2.0
"""How many times larger the squared deviations may be re-paired for both pairings to be as good. Chosen, not fitted."""

ENOUGH = 64
"""Kernels of equal launches from which on two pairings can be called as good. Chosen, not fitted: a few blocks."""

SPREAD = 0.5
"""Standard deviation of the logarithms of duration from which on names are expected to explain them. Chosen, not
fitted: below, all kernels last about as long and the order is not seen."""

UNEXPLAINED = 0.5
"""Share of the spread of durations that names leave open from which on a launch in order of time is looked at. Chosen,
not fitted: sound launches leave less than 0.1, mixed-up ones 0.8."""

PERIODIC = 0.9
LEAST_SAME = 0.75
"""How alike durations must be after a period (correlation), and which share of the names must not be the same then, for
names to be another's. Chosen, not fitted: after such a period, sound launches have 0.97 and more, mixed-up ones 0.5."""

CLEARLY_WORSE = 4.0
"""How many times the deviations within names must grow by re-pairing for a launch to be called sound at once. Chosen,
not fitted: in sound launches they grow a hundredfold, in mixed-up ones they shrink."""

FITS, REPAIR, DOUBT = range(3)

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Kernels:
    """The kernels of launches of many, launch by launch, each in the order of the file [kernels].

    Attributes:
        index: position in the file's event list.
        start: ns.
        names: code of the name.
        log_dur: logarithm of the duration.
        launch: number of the launch, ascending.
        bounds: where each launch begins, and the end [launches + 1].
    """

    index: IntArray
    start: IntArray
    names: IntArray
    log_dur: FloatArray
    launch: IntArray
    bounds: IntArray


@dataclass(frozen=True, eq=False)
class _Launch:
    """One launch's kernels in the order of the file; one value per kernel.

    Attributes:
        index: position in the file's event list.
        names: code of the name.
        log_dur: logarithm of the duration.
        order: which kernel, by position here, started k-th.
    """

    index: IntArray
    names: IntArray
    log_dur: FloatArray
    order: IntArray


def repair_names(store: Store, *, rocm: bool) -> list[TraceWarning]:
    """Give the kernels of mixed-up graph launches their own times again, where it is certain which; else say so.

    Args:
        store: the trace.
        rocm: whether roctracer recorded it, which writes a sound launch in order of time.
    """
    kernels = _read(store)
    if kernels is None:
        return []
    alike: dict[bytes, list[_Launch]] = defaultdict(list)
    for launch in _out_of_order(kernels):
        alike[launch.names.tobytes()].append(launch)
    repaired: list[_Launch] = []
    doubtful = list(_unlike_their_times(kernels)) if rocm else []
    for launches in alike.values():
        for launch, verdict in zip(launches, _judge(launches, rocm=rocm), strict=True):
            if verdict == REPAIR:
                repaired.append(launch)
            elif verdict == DOUBT:
                doubtful.append(launch)
    warnings = []
    if repaired:
        _write(store, repaired)
        warnings.append(_warning("repaired_names", repaired))
    if doubtful:
        warnings.append(_warning("doubtful_names", doubtful))
    return warnings


def _warning(code: str, launches: list[_Launch]) -> TraceWarning:
    count = sum(len(launch.index) for launch in launches)
    where = f"{plural(count, 'kernel')} in {plural(len(launches), 'graph launch')}"
    if code == "repaired_names":
        message = (
            f"re-paired names with times for {where}: the profiler had joined them out of order. In order of start, "
            "each name's durations agree again"
        )
    else:
        message = (
            f"names and times do not fit for {where}: the profiler joined them out of order, and no pairing is "
            "certain. Times and totals are right; no advice by name is given"
        )
    return TraceWarning(code, message, count=count)


def _read(store: Store) -> _Kernels | None:
    """Return the kernels of launches of many, or None where there are none."""
    kernel = (pl.col("cat").cast(pl.String) == "kernel") & (pl.col("dur_ns") > 0) & pl.col("correlation").is_not_null()
    events = (
        store.scan(DEVICE_CATEGORIES)
        .filter(kernel)
        .select("correlation", "device", "index", "start_ns", "dur_ns", "name")
        .filter(pl.len().over("correlation", "device") >= LEAST_KERNELS)
        .sort("correlation", "device", "index")
        .collect()
    )
    if events.is_empty():
        return None
    launch = events.select(pl.struct("correlation", "device").rle_id()).to_series().to_numpy().astype(np.int64)
    return _Kernels(
        index=events["index"].to_numpy(),
        start=events["start_ns"].to_numpy(),
        names=events["name"].cast(pl.Categorical).to_physical().fill_null(0).to_numpy().astype(np.int64),
        log_dur=np.log(events["dur_ns"].to_numpy().astype(np.float64)),
        launch=launch,
        bounds=np.concatenate(([0], np.flatnonzero(np.diff(launch)) + 1, [len(events)])),
    )


def _out_of_order(kernels: _Kernels) -> Iterator[_Launch]:
    """Yield the launches whose start times go back in file order and that are not sound at first sight."""
    start, launch, bounds = kernels.start, kernels.launch, kernels.bounds
    suspects = np.unique(launch[1:][(np.diff(start) < 0) & (np.diff(launch) == 0)])
    if not len(suspects):
        return
    by_start = np.lexsort((start, launch))
    unsound = _unsound(kernels.names, kernels.log_dur, kernels.log_dur[by_start], bounds)
    for number in suspects[unsound[suspects]].tolist():
        at = slice(bounds[number], bounds[number + 1])
        yield _Launch(kernels.index[at], kernels.names[at], kernels.log_dur[at], by_start[at] - bounds[number])


def _unlike_their_times(kernels: _Kernels) -> Iterator[_Launch]:
    """Yield the launches in order of time whose durations repeat with a period that their names do not have.

    A tool that sorts events by time takes away what tells the order of the program: such a launch cannot be re-paired.
    """
    sizes = np.diff(kernels.bounds)
    mean = np.bincount(kernels.names, kernels.log_dur) / np.maximum(np.bincount(kernels.names), 1)
    own = np.add.reduceat(kernels.log_dur, kernels.bounds[:-1]) / sizes
    unexplained = np.add.reduceat((kernels.log_dur - mean[kernels.names]) ** 2, kernels.bounds[:-1])
    spread = np.add.reduceat((kernels.log_dur - own[kernels.launch]) ** 2, kernels.bounds[:-1])
    back = np.bincount(kernels.launch[1:], (np.diff(kernels.start) < 0) & (np.diff(kernels.launch) == 0), len(sizes))
    odd = (back == 0) & (unexplained > UNEXPLAINED * spread) & (spread > sizes * SPREAD**2)
    for number in np.flatnonzero(odd).tolist():
        at = slice(kernels.bounds[number], kernels.bounds[number + 1])
        if _repeats_otherwise(kernels.names[at], kernels.log_dur[at]):
            yield _Launch(kernels.index[at], kernels.names[at], kernels.log_dur[at], np.arange(sizes[number]))


def _repeats_otherwise(names: IntArray, log_dur: FloatArray) -> bool:
    """Say whether durations repeat with a period with which names do not (both in order of start)."""
    length = len(names)
    centred = log_dur - log_dur.mean()
    powers = np.abs(np.fft.rfft(centred, 2 * length)) ** 2
    alike = np.fft.irfft(powers)[:length] / (np.arange(length, 0, -1) * centred.var())
    period = 2 + int(alike[2 : length // 2].argmax())
    same = float(np.mean(names[period:] == names[:-period]))
    return float(alike[period]) > PERIODIC and same < LEAST_SAME


def _unsound(names: IntArray, raw: FloatArray, paired: FloatArray, bounds: IntArray) -> npt.NDArray[np.bool_]:
    """Say for each launch whether it needs a closer look: re-pairing does not make its names clearly worse.

    One pass over all kernels, as the launches of a file that keeps no order are all out of order.

    Args:
        names, raw, paired: name, and logarithm of duration as recorded and re-paired, of each kernel [kernels].
        bounds: where each launch begins, and the end [launches + 1].
    """
    counts = np.bincount(names)
    squares = []
    for log_dur in (raw, paired):
        mean = np.bincount(names, log_dur) / np.maximum(counts, 1)
        squares.append(np.add.reduceat((log_dur - mean[names]) ** 2, bounds[:-1]))
    unsound: npt.NDArray[np.bool_] = squares[1] < CLEARLY_WORSE * squares[0]
    return unsound


def _judge(launches: list[_Launch], *, rocm: bool) -> list[int]:
    """Say of launches with equal names whether names and times fit as recorded, once re-paired, or neither for sure."""
    keys = _places(launches[0].names)
    raw = np.stack([launch.log_dur for launch in launches])  # launches x kernels
    paired = np.stack([launch.log_dur[launch.order] for launch in launches])
    before, after = _deviations(raw, keys), _deviations(paired, keys)
    moved = np.stack([launch.order for launch in launches]) != np.arange(raw.shape[1])
    closer = int((moved & (after < before - NOTICEABLE)).sum())
    farther = int((moved & (after > before + NOTICEABLE)).sum())
    if closer - farther > SIGNIFICANT * np.sqrt(closer + farther):
        left = float((after[moved] ** 2).sum()) / float((before[moved] ** 2).sum())
        own = [(a[m] ** 2).sum() < (b[m] ** 2).sum() for a, b, m in zip(after, before, moved, strict=True)]
        verdict = REPAIR if left <= CERTAIN else DOUBT
        return [verdict if better else FITS for better in own]
    # A shift by less than a block gives every name the times of another, and always of the same: then both pairings
    # look equally sound. roctracer writes a sound launch in order of time, so one that is not is in doubt.
    equal = (after**2).sum() <= AS_GOOD * (before**2).sum() and raw.size >= ENOUGH
    lost = rocm and equal and float(moved.mean()) > MOST_MOVED and float(raw.std()) > SPREAD
    return [DOUBT if lost else FITS] * len(launches)


def _places(names: IntArray) -> IntArray:
    """Return a number for each kernel: its name with both neighbours where these repeat, so that the same name in
    another role is another place; else its name alone."""
    padded = np.concatenate(([-1], names, [-1]))
    around = np.stack([padded[:-2], names, padded[2:]], axis=1)
    _, place, counts = np.unique(around, axis=0, return_inverse=True, return_counts=True)
    place = place.reshape(-1)
    repeats = counts[place] >= LEAST_REPEATS
    combined = np.where(repeats, place, len(counts) + names)
    return np.unique(combined, return_inverse=True)[1].reshape(-1)


def _deviations(log_dur: FloatArray, keys: IntArray) -> FloatArray:
    """Return how far each duration is from the median of its place over all launches (launches x kernels)."""
    order = np.argsort(keys, kind="stable")
    bounds = np.flatnonzero(np.diff(keys[order], prepend=-1))
    deviations = np.empty_like(log_dur)
    for members in np.split(order, bounds[1:]):
        own = log_dur[:, members]
        deviations[:, members] = np.abs(own - np.median(own))
    return deviations


def _write(store: Store, launches: list[_Launch]) -> None:
    """Move start, duration, stream and thread of the k-th to start to the k-th name; what belongs to a name stays."""
    moves = pl.DataFrame(
        {
            "index": np.concatenate([launch.index for launch in launches]),
            "of": np.concatenate([launch.index[launch.order] for launch in launches]),
        }
    )
    timed = ["start_ns", "dur_ns", "stream", "tid"]
    given = (
        store.scan(DEVICE_CATEGORIES)
        .select("index", *timed)
        .rename({"index": "of", **{name: f"{name}_new" for name in timed}})
        .join(moves.lazy(), on="of", how="inner")
        .drop("of")
        .collect()
    )
    for file in store.files("device"):
        frame = pl.read_parquet(file)
        placed = frame.with_columns(packed="index", index=position(store.window_starts))
        joined = placed.join(given, on="index", how="left", maintain_order="left")
        kept = [name for name in timed if name in frame.columns]
        moved = pl.col("start_ns_new").is_not_null()
        changed = joined.with_columns(
            pl.when(moved).then(pl.col(f"{name}_new")).otherwise(pl.col(name)).alias(name) for name in kept
        )
        changed.with_columns(index="packed").select(frame.columns).write_parquet(
            file, compression="zstd", compression_level=1
        )
