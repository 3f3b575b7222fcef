"""A small trace as a document, and helpers to write, read and compare it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from traceanalyzer.read import IngestResult, Store, ingest

CASES = Path(__file__).resolve().parent.parent / "data" / "cases"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep every test away from the user's cache."""
    folder = tmp_path / "xdg"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


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


def kernels(store: Store) -> pl.DataFrame:
    """Return the kernels in order of the file."""
    return store.scan(["kernel"]).sort("index").collect()


def codes(store: Store) -> list[str]:
    """Return the codes of a trace's warnings, sorted."""
    return sorted(warning.code for warning in store.metadata.warnings)


def warning(store: Store, code: str) -> Any:
    """Return the one warning of a code."""
    (found,) = [each for each in store.metadata.warnings if each.code == code]
    return found
