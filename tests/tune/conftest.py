"""Fixtures for plans and outcomes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from synthetic import TraceSpec, generate, write


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a synthetic trace and returns its path."""

    def build(spec: TraceSpec, seed: int = 0) -> Path:
        return write(generate(spec, seed), tmp_path / f"trace{len(list(tmp_path.iterdir()))}.json")

    return build
