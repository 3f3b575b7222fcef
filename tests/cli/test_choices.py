"""Choices that --help must know without importing an analysis are those of the analysis."""

from __future__ import annotations

from traceanalyzer.cli import plotting
from traceanalyzer.commands.export import command as export
from traceanalyzer.commands.export import tables as table_files
from traceanalyzer.show.plots import style


def test_choices_are_those_of_what_they_choose() -> None:
    assert export.TABLES == table_files.NAMES
    assert export.TABLES[:-1] == table_files.DEFAULT
    assert plotting.FORMATS == style.FORMATS
