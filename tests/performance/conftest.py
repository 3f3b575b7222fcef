"""The recordings that are counted on, made once."""

from __future__ import annotations

from pathlib import Path

import pytest
from recording import Pair, record


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Return a trace of a few thousand events, and one of twice as many."""
    folder: Path = tmp_path_factory.mktemp("counted")
    return Pair(record(folder, 4), record(folder, 8))
