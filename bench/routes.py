"""The routes that are compared: each answers one question of one file, as its library is meant to be used.

The question: how many device events (kernels, copies, memsets) does the trace hold, how long did they take together,
and which ten names took most? Run as ``python -m bench.routes ROUTE PATH``; the answer is one line of JSON on stdout.

Every library is imported inside its own route, so that a route pays only for what it uses. Times are sums of ``dur`` in
ns. Where a library offers to name the fields that are wanted, its route does so.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from bench.answers import TOP, Answer, answer_of

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
"""Categories that the question is about. The same as traceanalyzer's; written out here, as a user of a peer would."""


def traceanalyzer(path: str) -> Answer:
    """Open the trace (ingested on first use, read from the store after that) and add up its device events."""
    import polars as pl

    from traceanalyzer.trace import open_trace

    trace = open_trace(path)
    by_name = trace.device_events.group_by(pl.col("name").cast(pl.String)).agg(pl.col("dur_ns").sum(), pl.len())
    return answer_of({name: (time, count) for name, time, count in by_name.iter_rows()})


def traceanalyzer_one(path: str) -> Answer:
    """Do the same without worker processes: one core, for comparison by core."""
    from traceanalyzer.read import pool

    pool._sensible = lambda: 0
    return traceanalyzer(path)


def json_load(path: str) -> Answer:
    """Load all of it with the standard library."""
    import gzip
    import json

    with gzip.open(path) as file:
        return _count(json.load(file)["traceEvents"])


def orjson(path: str) -> Answer:
    """Load all of it with orjson."""
    import gzip

    import orjson as library

    with gzip.open(path) as file:
        return _count(library.loads(file.read())["traceEvents"])


def msgspec(path: str) -> Answer:
    """Decode only the three fields that the question needs; everything else is passed over."""
    import gzip

    import msgspec as library

    event = library.defstruct("event", [("cat", str | None, None), ("name", str | None, None), ("dur", float, 0.0)])
    trace = library.defstruct("trace", [("traceEvents", list[event])])  # type: ignore[valid-type]
    with gzip.open(path) as file:
        document: Any = library.json.decode(file.read(), type=trace)
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0])
    for one in document.traceEvents:
        if one.cat in DEVICE:
            _add(sums, one.name, one.dur)
    return _answer(sums)


def simdjson(path: str) -> Answer:
    """Parse with pysimdjson and look only at the fields that are needed: its objects are made on access."""
    import gzip

    import simdjson as library

    with gzip.open(path) as file:
        document: Any = library.Parser().parse(file.read())
    return _count(document["traceEvents"])


def ijson(path: str) -> Answer:
    """Stream the events one by one."""
    import gzip

    import ijson as library

    with gzip.open(path) as file:
        return _count(library.items(file, "traceEvents.item", use_float=True))


def duckdb(path: str) -> Answer:
    """Ask in SQL, the types of the fields that are needed stated.

    Form and records are stated too: left to detection, DuckDB takes several passes.
    """
    import duckdb as library

    fields = "STRUCT(cat VARCHAR, name VARCHAR, dur DECIMAL(18, 3))[]"
    found = library.execute(
        f"""
        SELECT event.name, CAST(sum(event.dur) * 1000 AS BIGINT), count(*)
        FROM (
            SELECT unnest(traceEvents) AS event
            FROM read_json(
                ?, format = 'unstructured', records = true, columns = {{traceEvents: '{fields}'}},
                maximum_object_size = {_object_size(path)}
            )
        )
        WHERE event.cat IN {DEVICE} AND event.dur > 0
        GROUP BY event.name
        """,
        [path],
    ).fetchall()
    return answer_of({name: (time, count) for name, time, count in found})


def _object_size(path: str) -> int:
    """Return what DuckDB must be told: no object is larger. The last four bytes of a gzip file are its text's size."""
    from pathlib import Path

    return int.from_bytes(Path(path).read_bytes()[-4:], "little") + 1024


def polars(path: str) -> Answer:
    """Read the events into a frame, the types of the fields that are needed stated."""
    import gzip

    import polars as pl

    fields = pl.List(pl.Struct({"cat": pl.String, "name": pl.String, "dur": pl.Float64}))
    with gzip.open(path) as file:
        frame = pl.read_json(file.read(), schema={"traceEvents": fields})
    by_name = (
        frame.explode("traceEvents")
        .unnest("traceEvents")
        .filter(pl.col("cat").is_in(DEVICE), pl.col("dur") > 0)
        .group_by("name")
        .agg(pl.col("dur").sum() * 1000, pl.len())
    )
    return answer_of({name: (time, count) for name, time, count in by_name.iter_rows()})


def hta(path: str) -> Answer:
    """Load the trace with HolisticTraceAnalysis and take its kernel breakdown.

    Rounding to whole µs is off (HTA_DISABLE_NS_ROUNDING=1, set by the caller). The breakdown keeps the ten largest
    names of each of its kinds and adds the others up; it has no counts, so they come from HTA's frame, by the rule of
    its breakdown: every event with a stream is GPU work, whatever its category.
    """
    from pathlib import Path

    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_files={0: path}, trace_dir=str(Path(path).parent))
    _, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, duration_ratio=1.0, num_kernels=TOP)
    frame = analysis.t.traces[0]
    sums = kernels.groupby("name")["sum (us)"].sum()
    total = round(float(sums.sum()) * 1000)
    named = {str(name): round(float(time) * 1000) for name, time in sums.items() if name != "others"}
    return Answer(int((frame["stream"] != -1).sum()), total, top=_largest(named))


def _count(events: Iterable[Mapping[str, Any]]) -> Answer:
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0])
    for event in events:
        if event.get("cat") in DEVICE:
            _add(sums, event.get("name"), event.get("dur", 0))
    return _answer(sums)


def _add(sums: dict[str, list[float]], name: str | None, dur: float) -> None:
    if dur > 0 and name is not None:
        entry = sums[name]
        entry[0] += dur
        entry[1] += 1


def _answer(sums: Mapping[str, list[float]]) -> Answer:
    return answer_of({name: (us * 1000, int(count)) for name, (us, count) in sums.items()})


def _largest(named: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(named.items(), key=lambda item: (-item[1], item[0]))[:TOP])


@dataclass(frozen=True)
class Route:
    """A way to answer the question.

    Attributes:
        title: how it is called in tables.
        run: answers.
        needs: the module that must be importable.
        package: the distribution whose version is reported.
        store: whether it starts from traceanalyzer's store instead of the file.
        note: what it does, for the page.
    """

    title: str
    run: Callable[[str], Answer]
    needs: str
    package: str | None
    note: str
    store: bool = False

    @property
    def possible(self) -> bool:
        """Whether its library is installed."""
        return find_spec(self.needs) is not None


ROUTES: dict[str, Route] = {
    "traceanalyzer": Route(
        "traceanalyzer", traceanalyzer, "traceanalyzer", "traceanalyzer", "empty cache: the store is written too"
    ),
    "store": Route(
        "traceanalyzer, from the store", traceanalyzer, "traceanalyzer", None, "the second time: from its store", True
    ),
    "one-process": Route(
        "traceanalyzer, one process", traceanalyzer_one, "traceanalyzer", None, "the same without worker processes"
    ),
    "json": Route("json.load", json_load, "json", None, "every event as Python objects"),
    "orjson": Route("orjson", orjson, "orjson", "orjson", "every event as Python objects"),
    "msgspec": Route("msgspec, typed", msgspec, "msgspec", "msgspec", "only the three fields asked for"),
    "simdjson": Route("pysimdjson", simdjson, "simdjson", "pysimdjson", "objects made on access only"),
    "ijson": Route("ijson", ijson, "ijson", "ijson", "a stream of events"),
    "duckdb": Route("DuckDB", duckdb, "duckdb", "duckdb", "read_json, only the three fields asked for"),
    "polars": Route("Polars", polars, "polars", "polars", "read_json, only the three fields asked for"),
    "hta": Route("HTA", hta, "hta", "HolisticTraceAnalysis", "TraceAnalysis, get_gpu_kernel_breakdown"),
}
"""Route -> what it is. The first is ours, the others are held against it."""

OURS = "traceanalyzer"


if __name__ == "__main__":
    print(ROUTES[sys.argv[1]].run(sys.argv[2]).to_json())  # noqa: T201
