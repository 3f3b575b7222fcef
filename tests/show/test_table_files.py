"""Tables as files: what the commands show, readable by other programs, text never a formula."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

Run = Callable[..., Any]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_csv_tables_hold_what_the_commands_print(run: Run, cases: Path, tmp_path: Path) -> None:
    trace = cases / "201_vllm_native.json.gz"
    assert run("export", "csv", trace, "-o", tmp_path / "out").exit_code == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {
        "steps.csv",
        "blocks.csv",
        "kernels.csv",
        "roles.csv",
        "gaps.csv",
    }
    assert not (tmp_path / "out" / "events.csv").exists()
    kernels = rows_of(tmp_path / "out" / "kernels.csv")
    shown = json.loads(run("hotspots", trace, "--json").stdout)["rows"]
    times = {row["name"]: float(row["total_us"]) for row in kernels}
    assert times == {row["name"]: row["total_us"] for row in shown}
    steps = rows_of(tmp_path / "out" / "steps.csv")
    overview = json.loads(run("ingest", trace, "--json").stdout)["timelines"][0]["steps"]
    assert [float(row["span_us"]) for row in steps] == [step["span_us"] for step in overview]


def test_every_event_is_in_one_row(run: Run, cases: Path, tmp_path: Path) -> None:
    trace = cases / "201_vllm_native.json.gz"
    assert run("export", "parquet", trace, "--table", "events", "-o", tmp_path / "e.parquet").exit_code == 0
    events = pl.read_parquet(tmp_path / "e.parquet")
    timeline = json.loads(run("ingest", trace, "--json").stdout)["timelines"][0]
    kernels = events.filter(pl.col("category") == "kernel")
    assert kernels.height == timeline["kernels"]
    assert kernels["dur_us"].sum() == pytest.approx(timeline["kernel_sum_us"])
    assert kernels["role"].null_count() == kernels["step"].null_count()


def test_parquet_keeps_types_and_nulls(run: Run, cases: Path, tmp_path: Path) -> None:
    assert run("export", "parquet", cases / "000_baseline.json", "-o", tmp_path / "out").exit_code == 0
    steps = pl.read_parquet(tmp_path / "out" / "steps.parquet")
    assert steps.schema["complete"] == pl.Boolean
    assert steps.schema["kernels"] == pl.Int64
    assert steps.schema["span_us"] == pl.Float64
    assert steps["idle_before_us"][0] is None


def test_a_name_is_no_formula(run: Run, cases: Path, tmp_path: Path) -> None:
    trace = cases / "017_nasty_names.json"
    assert run("export", "csv", trace, "--table", "kernels", "-o", tmp_path / "k.csv").exit_code == 0
    names = [row["name"] for row in rows_of(tmp_path / "k.csv")]
    assert "'=SUM(A1:A9)" in names
    pytest.importorskip("xlsxwriter", reason="XlsxWriter is not installed")
    assert run("export", "xlsx", trace, "-o", tmp_path / "book.xlsx").exit_code == 0
    with zipfile.ZipFile(tmp_path / "book.xlsx") as book:
        sheets = [book.read(name).decode() for name in book.namelist() if name.startswith("xl/worksheets/sheet")]
        strings = book.read("xl/sharedStrings.xml").decode()
    assert sheets
    assert all("<f>" not in sheet for sheet in sheets)
    assert "=SUM(A1:A9)" in strings
    assert "<script>" not in strings


def test_a_workbook_has_a_sheet_a_table_with_numbers_as_numbers(run: Run, cases: Path, tmp_path: Path) -> None:
    pytest.importorskip("xlsxwriter", reason="XlsxWriter is not installed")
    assert run("export", "xlsx", cases / "000_baseline.json", "-o", tmp_path / "book.xlsx").exit_code == 0
    with zipfile.ZipFile(tmp_path / "book.xlsx") as book:
        workbook = book.read("xl/workbook.xml").decode()
        first = book.read("xl/worksheets/sheet1.xml").decode()
    assert [name for name in ("steps", "blocks", "kernels", "roles", "gaps") if f'name="{name}"' not in workbook] == []
    assert "<v>" in first
    assert 'state="frozen"' in first


def test_without_the_library_it_says_what_to_install(
    run: Run, cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    result = run("export", "xlsx", cases / "000_baseline.json", "-o", tmp_path / "book.xlsx")
    assert result.exit_code == 1
    assert "pip install 'traceanalyzer[xlsx]'" in result.output
    assert list(tmp_path.iterdir()) == []


def test_several_tables_do_not_go_into_one_file(run: Run, cases: Path, tmp_path: Path) -> None:
    result = run("export", "csv", cases / "000_baseline.json", "-o", tmp_path / "all.csv")
    assert result.exit_code == 1
    assert "--table" in result.output


def test_quiet_leaves_errors_only(run: Run, cases: Path, tmp_path: Path) -> None:
    truncated = cases / "001_truncated_midevent.json"
    assert "warning" in run("export", "csv", truncated, "-o", tmp_path / "a").stderr
    for arguments in (("export", "csv", truncated, "-o", tmp_path / "b"), ("hotspots", truncated)):
        quiet = run(*arguments, "--quiet")
        assert quiet.exit_code == 0
        assert quiet.stderr == ""
    assert run("hotspots", cases / "003_empty.json", "-q").stderr != ""
