"""Distributions built from this repository, once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from building import ROOT, build


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
