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
from tests.support.places import ROOT
from traceanalyzer.trace import Trace, open_traces

# Machines that run tests are slow and busy: no test may fail for the time it takes. Nor may it fail by chance: examples
# are drawn the same way every time, but for tests that ask for the profile "fresh", which say how to repeat a failure.
settings.register_profile(
    "fresh", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True, derandomize=False
)
settings.register_profile("repeatable", settings.get_profile("fresh"), derandomize=True, database=None)
settings.load_profile("repeatable")


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


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep a test away from the user's cache; returns its own."""
    folder = tmp_path / "xdg"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder
