"""Choices that --help must know without importing an analysis are those of the analysis."""

from __future__ import annotations

from traceanalyzer.analysis import hotspots as analysis
from traceanalyzer.cli import common, export, hotspots, plotting
from traceanalyzer.report import table_files
from traceanalyzer.report.plots import style


def test_choices_are_those_of_what_they_choose() -> None:
    assert common.PHASES == analysis.PHASES
    assert hotspots.GROUPINGS == analysis.GROUPINGS
    assert export.TABLES == table_files.NAMES
    assert export.TABLES[:-1] == table_files.DEFAULT
    assert plotting.FORMATS == style.FORMATS
