"""Fixtures that every test may use."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of traces that may be read but not shipped; skip where it is not there."""
    folder = ROOT.parent / "shared"
    if not (folder / "traces").is_dir():
        pytest.skip("the shared traces are not on this machine (expected beside the repository)")
    return folder


@pytest.fixture(scope="session")
def samples() -> Path:
    """Return the folder of the project's own sample traces."""
    return ROOT / "traces"
