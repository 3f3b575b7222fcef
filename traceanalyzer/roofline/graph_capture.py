"""Kernels of a graph matched with the launches that were recorded when the graph was captured."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl

from traceanalyzer.segment.alignment import align
from traceanalyzer.trace import Trace
from traceanalyzer.wording import plural

_Kernels: TypeAlias = tuple[tuple[str, int], ...]
"""Names of kernels and how often each occurs."""
LEAST_SHARED = 0.9
"""Share of the kernels that a graph and a capture must have in common. Chosen, not fitted: captures of other batch
sizes share fewer where their tiles differ."""

BEGIN = r"(?i)StreamBeginCapture"
END = r"(?i)StreamEndCapture"
FILE_SIZE = re.compile(r"(?:^|_)bs_?(\d{1,9})(?=_|\.)", re.IGNORECASE)
SIZE = r"(?i)capture[_a-z]*?_?(\d+)"

SHAPE_COLUMNS = ("op", "dims", "types", "concrete", "call")
"""What is known of a kernel's shapes: the op's name, its Input Dims, types and concrete inputs as JSON text, and a
number of the call (kernels of one call share it). Null where no shape is known."""


def thread_key() -> pl.Expr:
    """The thread of an event, as one text."""
    return pl.concat_str(pl.col("pid").cast(pl.String), pl.lit("/"), pl.col("tid").cast(pl.String))


def captured_launches(trace: Trace) -> pl.DataFrame:
    """Return the launches between the begin and the end of each capture, on the capturing thread.

    A recording without captures, whose kernels were launched one by one, stands for a capture of them: engines write
    such files of the pass before a capture.

    Columns: capture (number), size (batch size that an annotation around the capture names, or None), position,
    launched_kernel, external_id, thread, launched_ns.
    """
    launches = trace.launches.with_columns(
        pl.col("name").cast(pl.String), pl.col("launched_kernel").cast(pl.String), thread=thread_key()
    )
    # Captures do not nest on a thread: between a begin and its end the sum of borders is 1.
    marks = launches.with_columns(
        border=pl.when(pl.col("name").str.contains(BEGIN))
        .then(1)
        .when(pl.col("name").str.contains(END))
        .then(-1)
        .otherwise(0)
    ).with_columns(
        opened=(pl.col("border") == 1).cum_sum().over("thread"), open=pl.col("border").cum_sum().over("thread")
    )
    inside = marks.filter(pl.col("open") > 0, pl.col("launched_kernel").is_not_null())
    if inside.is_empty():
        return _launched_alone(trace, launches)
    numbered = inside.with_columns(
        capture=pl.struct("thread", "opened").rank("dense").cast(pl.Int64),
        launched_ns=pl.col("start_ns"),
    ).with_columns(position=pl.int_range(pl.len()).over("capture"))
    begins = numbered.group_by("capture").agg(pl.col("launched_ns").min(), pl.col("thread").first())
    sizes = begins.with_columns(
        size=pl.Series(
            [_size(trace, at, where) for at, where in begins.select("launched_ns", "thread").rows()], dtype=pl.Int64
        )
    )
    return numbered.join(sizes.select("capture", "size"), on="capture", how="left", maintain_order="left").select(
        "capture", "size", "position", "launched_kernel", "external_id", "thread", "launched_ns"
    )


def _launched_alone(trace: Trace, launches: pl.DataFrame) -> pl.DataFrame:
    """Return the launches of kernels that no graph launched, as those of one capture."""
    kernels = trace.device_events.filter("is_kernel") if not trace.cpu_only else trace.device_events.head(0)
    alone = kernels.select("correlation", launched_kernel=pl.col("name").cast(pl.String), own_id="external_id").filter(
        pl.col("correlation").is_not_null(), pl.len().over("correlation") == 1
    )
    joined = launches.drop("launched_kernel").join(alone, on="correlation", how="inner", maintain_order="left")
    return joined.sort("start_ns", "index").select(
        capture=pl.lit(1, dtype=pl.Int64),
        size=pl.lit(None, dtype=pl.Int64),
        position=pl.int_range(pl.len()),
        launched_kernel="launched_kernel",
        external_id=pl.coalesce("own_id", "external_id"),
        thread="thread",
        launched_ns="start_ns",
    )


def _size(trace: Trace, at: int, thread: str) -> int | None:
    """The batch size in the name of the innermost annotation around a moment, such as ``capture_32_FULL``."""
    around = (
        trace.annotations.filter(
            pl.col("start_ns") <= at,
            pl.col("start_ns") + pl.col("dur_ns") >= at,
            thread_key() == thread,
        )
        .select(size=pl.col("name").cast(pl.String).str.extract(SIZE).cast(pl.Int64, strict=False))
        .drop_nulls()
    )
    return int(around["size"][-1]) if around.height else None


def of_captures(traces: Sequence[Trace], described: Callable[[Trace, pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
    """Return the launches of all captures in several recordings, with what ``described`` adds to those of each.

    A size that no annotation names is taken from the name of the file (``bs_24_rank0``).
    """
    parts, before = [], 0
    for trace in traces:
        launches = captured_launches(trace)
        named = FILE_SIZE.search(Path(trace.metadata.source.path).name)
        size = pl.coalesce("size", pl.lit(int(named[1]) if named else None, dtype=pl.Int64))
        parts.append(described(trace, launches).with_columns(pl.col("capture") + before, size=size))
        before += int(launches["capture"].max() or 0)  # type: ignore[arg-type]
    return pl.concat(parts)


def join_captures(
    kernels: pl.DataFrame, launches: pl.DataFrame, columns: Sequence[str] = SHAPE_COLUMNS
) -> tuple[pl.DataFrame, list[str]]:
    """Give each graph-launched kernel the shapes of the captured launch at its position.

    A capture fits a graph if both have the same kernels, or all but a few. Kernels of one name keep their order, so
    that the n-th of a name is the n-th captured one, also where streams run side by side. Of several captures that
    fit, the one of the smallest batch size that holds the step's tokens is taken; where that cannot be told, none.

    Args:
        kernels: with index, device, correlation, graph, name and start_ns; tokens (of the step) may be None.
        launches: of ``captured_launches`` with the columns.
        columns: what is carried over.

    Returns:
        index and the columns of the kernels that were joined; and what there is to say about it.
    """
    nothing = [pl.lit(None, dtype=launches.schema[name]).alias(name) for name in columns]
    empty = kernels.select("index", *nothing).head(0)
    if launches.is_empty():
        return empty, ["capture: no launches between the begin and the end of a capture carry a kernel name"]
    graph = (
        kernels.filter(pl.col("graph").fill_null(False))
        .with_columns(pl.col("name").cast(pl.String))
        .sort("device", "correlation", "start_ns", "index")
    )
    if graph.is_empty():
        return empty, ["capture: no kernel of these steps was launched by a graph"]
    nth = pl.int_range(pl.len()).over("capture", "launched_kernel").alias("nth")
    sequences = launches.sort("capture", "position").with_columns(nth)
    kinds = {
        number: _multiset(own["launched_kernel"])
        for (number,), own in sequences.group_by("capture", maintain_order=True)
    }
    # Replays are many and captures few: kernels of each are compared as sets with counts.
    joined, wanted, partly = [], 0, 0
    for _, own in graph.group_by("device", "correlation", maintain_order=True):
        wanted += own.height
        fitting, whole = _fitting(kinds, _multiset(own["name"]))
        chosen = _choose(sequences, fitting, own["tokens"][0])
        if chosen is None:
            continue
        partly += not whole
        captured = sequences.filter(pl.col("capture") == chosen).rename({"launched_kernel": "name"})
        joined.append(_paired(own, captured, columns))
    matched = pl.concat(joined) if joined else empty
    note = f"capture: {matched.height:,} of {wanted:,} graph-launched kernels matched by position"
    if partly:
        note += f"; {plural(partly, 'replay')} and the capture differ in a few kernels, which are left out"
    if not matched.height:
        note += " (no capture has the same kernels, or several fit and their sizes do not tell which)"
    return matched, [note]


def _fitting(kinds: Mapping[int, _Kernels], own: _Kernels) -> tuple[list[int], bool]:
    """Return the captures of a graph, and whether they have its kernels exactly: else those that have nearly all."""
    exact = [number for number, kind in kinds.items() if kind == own]
    if exact:
        return exact, True
    shared = {number: _shared(Counter(dict(kind)), Counter(dict(own))) for number, kind in kinds.items()}
    best = max(shared.values(), default=0.0)
    return ([number for number, share in shared.items() if share == best] if best >= LEAST_SHARED else []), False


def _shared(one: Counter[str], two: Counter[str]) -> float:
    return (one & two).total() / max(one.total(), two.total(), 1)


def _paired(own: pl.DataFrame, captured: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Return index and columns of a replay's kernels that have a counterpart in a capture.

    Of a name that both have equally often the n-th goes with the n-th, also where streams run side by side. Where one
    lacks some, order decides: both sequences are aligned.
    """
    counts = [frame.group_by("name").agg(times=pl.len()) for frame in (own, captured)]
    even = counts[0].join(counts[1], on=["name", "times"], how="inner")["name"].implode()
    numbered = own.with_columns(nth=pl.int_range(pl.len()).over("name"))
    by_count = numbered.filter(pl.col("name").is_in(even)).join(captured, on=["name", "nth"], how="inner")
    parts = [by_count.select("index", *columns)]
    if by_count.height < own.height:
        names = pl.concat([own["name"], captured["name"]]).rank("dense").to_numpy().astype(np.int64)
        match = align(names[: own.height], names[own.height :])
        if match is not None:
            at = pl.DataFrame({"index": own["index"], "row": match, "own_name": own["name"]})
            rows = captured.with_columns(row=pl.int_range(pl.len(), dtype=pl.Int64))
            uneven = at.filter(~pl.col("own_name").is_in(even)).join(rows, on="row", how="inner")
            parts.append(uneven.filter(pl.col("own_name") == pl.col("name")).select("index", *columns))
    return pl.concat(parts)


def _multiset(names: pl.Series) -> _Kernels:
    counts = names.alias("name").value_counts().sort("name")
    return tuple(zip(counts["name"].to_list(), counts["count"].to_list(), strict=True))


def _choose(sequences: pl.DataFrame, fitting: list[int], tokens: int | None) -> int | None:
    if len(fitting) <= 1:
        return fitting[0] if fitting else None
    rows = sequences.filter(pl.col("capture").is_in(fitting)).group_by("capture").agg(pl.col("size").first())
    sizes: dict[int, int] = {
        number: size for number, size in rows.rows() if size is not None and tokens is not None and size >= tokens
    }
    if sizes and len(set(sizes.values())) == len(sizes):
        return min(sizes, key=lambda number: sizes[number])
    same = {
        tuple(sequences.filter(pl.col("capture") == number).sort("position")["dims"].to_list()) for number in fitting
    }
    return fitting[0] if len(same) == 1 else None
