"""A small trace as a document, and how to write and read it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.places import CASES
from traceanalyzer.read import IngestResult, Store, ingest


@pytest.fixture(autouse=True)
def own_cache(own_cache: Path) -> Path:
    """Use a cache of its own in every test."""
    return own_cache


@pytest.fixture(scope="session")
def text() -> str:
    return (CASES / "000_baseline.json").read_text()


@pytest.fixture
def document(text: str) -> Any:
    return json.loads(text)


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., IngestResult]:
    """Return a function that writes content to a file and ingests it without the cache."""

    def run(content: str | bytes, name: str = "trace.json") -> IngestResult:
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return ingest([str(path)], cache=False, processes=0)

    return run


@pytest.fixture
def read_one(read: Callable[..., IngestResult]) -> Callable[..., Store]:
    """Like ``read``, for content that holds one trace."""

    def run(content: str | bytes, name: str = "trace.json") -> Store:
        (store,) = read(content, name).stores
        return store

    return run
