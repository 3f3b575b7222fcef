"""Choices that --help must know without importing an analysis are those of the analysis."""

from __future__ import annotations

import traceanalyzer as ta
from tests.support.places import ROOT
from traceanalyzer.cli import plotting
from traceanalyzer.commands.export import command as export
from traceanalyzer.commands.export.tables import tables_of
from traceanalyzer.show.plots import style

SAMPLE = ROOT / "traces" / "gptoss20b_decode_synthetic.json.gz"


def test_choices_are_those_of_what_they_choose() -> None:
    trace = ta.open_trace(SAMPLE)
    assert tuple(table.name for table in tables_of(trace, export.TABLES)) == export.TABLES
    assert tuple(table.name for table in tables_of(trace)) == export.TABLES[:-1]
    assert plotting.FORMATS == style.FORMATS
