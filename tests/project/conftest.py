"""Distributions built from this repository, once for all tests, and recordings whose work is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.distributions import build
from tests.support.doubled_traces import Pair, record
from tests.support.places import ROOT

if not (ROOT / "bench" / "results.py").exists():  # The benchmarks are no part of the package.
    collect_ignore_glob = ["test_bench_*.py"]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel; skip where its build backend is not installed."""
    pytest.importorskip("hatchling", reason="hatchling is not installed (it is in the extra dev)")
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the source distribution; skip where its build backend is not installed."""
    pytest.importorskip("hatchling", reason="hatchling is not installed (it is in the extra dev)")
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Return a trace of a few thousand events, and one of twice as many."""
    folder: Path = tmp_path_factory.mktemp("counted")
    return Pair(record(folder, 4), record(folder, 8))
