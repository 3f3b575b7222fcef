"""Fixtures that every test may use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from synthetic import TraceSpec, Truth, generate, write
from tests.support.places import ROOT, SHARED
from traceanalyzer.trace import Trace, open_traces

# Machines that run tests are slow and busy: no test may fail for the time it takes. Nor may it fail by chance: examples
# are drawn the same way every time, but for tests that ask for the profile "fresh", which say how to repeat a failure.
settings.register_profile(
    "fresh", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True, derandomize=False
)
settings.register_profile("repeatable", settings.get_profile("fresh"), derandomize=True, database=None)
settings.load_profile("repeatable")


def pytest_report_header() -> str | None:
    """Say that tests are left out, and why, where the recordings of others are not here."""
    return None if (SHARED / "traces").is_dir() else f"left out: tests on recordings of others, read from {SHARED}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests on recordings of others where these are not here: they may be read, but not shipped.

    The same claims are tested on generated traces and on recordings of our own.
    """
    if (SHARED / "traces").is_dir():
        return
    others = [item for item in items if "shared" in getattr(item, "fixturenames", ())]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in set(others)]


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of recordings of others."""
    return SHARED


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
