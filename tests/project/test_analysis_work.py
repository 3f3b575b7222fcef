"""Analyses are queries over columns: more events run no more Python, and the number of queries is always the same."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from tests.support.counted_work import collects, lines_run
from tests.support.doubled_traces import Pair, Recorded
from traceanalyzer.commands.diff.compute import diff
from traceanalyzer.commands.hotspots.advice import advice
from traceanalyzer.commands.hotspots.compute import hotspots
from traceanalyzer.commands.idle.compute import idle
from traceanalyzer.commands.ingest.compute import timelines
from traceanalyzer.commands.report.gather import gather_trace
from traceanalyzer.read import ingest
from traceanalyzer.roofline.analyse import roofline
from traceanalyzer.roofline.redundancy import _redundancies
from traceanalyzer.segment.segmentation import cut_up
from traceanalyzer.trace import Trace, open_traces

Analysis = Callable[[Trace], object]

NO_LOOP = 0.1
"""Lines of Python for each event of a query. A fifth of these recordings' events are the device's: the least loop over
those is 0.2."""


def _views(trace: Trace) -> object:
    fresh = Trace(trace.metadata, trace.events, trace.store)
    return fresh.device_events, fresh.launches, fresh.annotations


ANALYSES: dict[str, tuple[Analysis, float]] = {
    "views": (_views, NO_LOOP),
    # Some hundred lines for each step.
    "segmentation": (cut_up, 0.7),
    "hotspots": (hotspots, NO_LOOP),
    "timelines": (timelines, NO_LOOP),
    "findings": (advice, NO_LOOP),
    "redundancies": (_redundancies, NO_LOOP),
    "diff": (lambda trace: diff(trace, trace), NO_LOOP),
    "roofline": (roofline, 0.45),
    # These are of a thread whose events nest; where they do not, they are gone through one by one.
    "idle": (idle, NO_LOOP),
    # All of these, and figures of as many blocks and roles.
    "report": (gather_trace, 0.8),
}
"""Name -> (analysis, lines of Python that it may run for each event)."""


@pytest.fixture(scope="module")
def traces(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> dict[Recorded, Trace]:
    folder = tmp_path_factory.mktemp("stores")
    opened = {}
    for each in (pair.short, pair.long):
        store = folder / each.path.stem
        ingest([str(each.path)], output=store, cache=False, processes=0)
        opened[each] = open_traces(store).traces[0]
    return opened


@pytest.mark.parametrize("name", ANALYSES)
def test_more_events_run_no_more_python(name: str, pair: Pair, traces: dict[Recorded, Trace]) -> None:
    analysis, most = ANALYSES[name]
    assert pair.per_event(lambda each: lines_run(lambda: analysis(traces[each]))) < most


@pytest.mark.parametrize("name", ANALYSES)
def test_more_events_are_no_more_queries(
    name: str, pair: Pair, traces: dict[Recorded, Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    analysis, _ = ANALYSES[name]
    short, long = (collects(lambda each=each: analysis(traces[each]), monkeypatch) for each in (pair.short, pair.long))
    assert long == short


def _row_by_row(trace: Trace) -> object:
    return [length for length in trace.device_events["dur_ns"]]  # noqa: C416


def _query_for_each_step(trace: Trace) -> object:
    starts = trace.annotations["start_ns"].to_list()
    return [trace.events.filter(pl.col("start_ns") == start).collect() for start in starts]


def test_an_analysis_row_by_row_is_noticed(pair: Pair, traces: dict[Recorded, Trace]) -> None:
    assert pair.per_event(lambda each: lines_run(lambda: _row_by_row(traces[each]))) > NO_LOOP


def test_a_query_for_each_step_is_noticed(
    pair: Pair, traces: dict[Recorded, Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    short, long = (
        collects(lambda each=each: _query_for_each_step(traces[each]), monkeypatch) for each in (pair.short, pair.long)
    )
    assert long > short


def test_counts_are_the_same_every_time(pair: Pair, traces: dict[Recorded, Trace]) -> None:
    trace = traces[pair.short]
    assert lines_run(lambda: hotspots(trace)) == lines_run(lambda: hotspots(trace))
