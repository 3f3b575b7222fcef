"""The notebook guide runs, and results have a form for notebooks in which names are escaped."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from matplotlib.figure import Figure

from tests.support.places import ROOT
from traceanalyzer.commands.hotspots.compute import hotspots
from traceanalyzer.commands.idle.compute import idle
from traceanalyzer.segment import segment
from traceanalyzer.trace import open_traces

GUIDE = ROOT / "docs" / "notebook.md"


def run_cell(code: str, names: dict[str, Any]) -> Any:
    """Run a cell as Jupyter does: the value of the last expression is what it shows."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None


def test_the_guide_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(GUIDE.parents[1])
    cells = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(cells) > 8
    names: dict[str, Any] = {}
    shown = [run_cell(cell, names) for cell in cells]
    assert all(value is not None for value in shown), "every cell shows something"
    assert all(not value.is_empty() for value in shown if isinstance(value, pl.DataFrame))
    assert sum(isinstance(value, Figure) for value in shown) == 2
    rich = [value for value in shown if hasattr(value, "_repr_html_") and not isinstance(value, Figure)]
    assert len(rich) >= 6


def test_results_show_their_figures_and_frames(cases: Path) -> None:
    trace = open_traces(cases / "201_vllm_native.json.gz", cache=False).traces[0]
    text = trace._repr_html_()
    assert "201_vllm_native.json.gz" in text
    for result in (hotspots(trace), segment(trace), idle(trace)):
        html = result._repr_html_()
        assert type(result).__name__ in html
        assert "<table" in html
    assert "total_ns <b>" in hotspots(trace)._repr_html_()


def test_names_are_escaped_in_notebooks(cases: Path) -> None:
    trace = open_traces(cases / "017_nasty_names.json", cache=False).traces[0]
    for result in (trace, hotspots(trace), segment(trace), idle(trace)):
        assert "<script>" not in result._repr_html_()
    assert "&lt;script&gt;" in hotspots(trace)._repr_html_()
