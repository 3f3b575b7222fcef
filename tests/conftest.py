"""Fixtures that every test may use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from synthetic import (
    TraceSpec,
    Truth,
    generate,
    write,
)
from traceanalyzer.trace import Trace, open_traces

# Machines that run tests are slow and busy: no test may fail for the time it takes.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

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


@pytest.fixture
def open_spec(tmp_path: Path) -> Callable[..., tuple[Trace, Truth]]:
    """Return a function that generates a synthetic trace and opens it: (trace, truth)."""

    def build(spec: TraceSpec, seed: int = 0) -> tuple[Trace, Truth]:
        made = generate(spec, seed)
        path = write(made, tmp_path / f"trace{len(list(tmp_path.iterdir()))}.json")
        return open_traces(path, cache=False).traces[0], made.truth

    return build
