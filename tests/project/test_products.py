"""A product goes when its folder goes: nothing else of the package stops working."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import CASES, ROOT

IMPORT_ALL = """
import importlib, pathlib, pkgutil, traceanalyzer
for module in pkgutil.walk_packages(traceanalyzer.__path__, "traceanalyzer."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(pathlib.Path(traceanalyzer.__file__).parent)
"""
SAMPLE = ROOT / "traces" / "gptoss20b_decode_synthetic.json.gz"


@pytest.fixture
def without_serving(tmp_path: Path) -> Path:
    """A copy of the package that lacks commands/serving."""
    unneeded = shutil.ignore_patterns("__pycache__", "sample_traces")
    copied = shutil.copytree(ROOT / "traceanalyzer", tmp_path / "copy" / "traceanalyzer", ignore=unneeded)
    shutil.rmtree(copied / "commands" / "serving")
    return copied.parent


def run(folder: Path, *arguments: str) -> str:
    """Run Python on the package that lies in a folder, and return what it prints."""
    known = {"PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=os.environ | known, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_serving_everything_else_works(without_serving: Path) -> None:
    command = ("-m", "traceanalyzer")
    listed = run(without_serving, *command, "--help")
    assert "hotspots" in listed
    assert "serving" not in listed
    assert "decode" in run(without_serving, *command, "ingest", str(SAMPLE))
    page = without_serving / "page.html"
    run(without_serving, *command, "report", str(SAMPLE), "--output", str(page))
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    results = ("--before-results", str(CASES / "500_bench_before.json"))
    results += ("--after-results", str(CASES / "500_bench_after.json"))
    outcome = json.loads(run(without_serving, *command, "tune", "verify", *results, "--json"))
    assert outcome["serving"]["schema"] == "traceanalyzer/serving/1"


def test_without_serving_every_other_module_is_imported(without_serving: Path) -> None:
    assert run(without_serving, "-c", IMPORT_ALL).strip() == str(without_serving / "traceanalyzer")
