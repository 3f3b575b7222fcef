"""Servers to capture from, and jobs of many ranks to compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from synthetic.ranks import JobSpec, SyntheticJob, generate_job, write_job
from tests.support.fake_server import Behaviour, FakeServer
from traceanalyzer.cli.main import cli
from traceanalyzer.commands.ranks.compute import RankComparison, compare
from traceanalyzer.trace import open_traces

Compared = tuple[RankComparison, SyntheticJob]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., FakeServer]]:
    """Start servers; each writes its traces to ``profiles`` unless told otherwise."""
    with ExitStack() as stack:

        def start(**does: Any) -> FakeServer:
            folder = does.pop("profile_dir", tmp_path / "profiles")
            if folder is not None:
                folder.mkdir(exist_ok=True)
            return stack.enter_context(FakeServer(Behaviour(profile_dir=folder, **does)))

        yield start


@pytest.fixture
def capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run ``traceanalyzer capture`` with short waits and a small load of four requests."""
    monkeypatch.setattr("traceanalyzer.commands.capture.profile_files.POLL", 0.01)
    monkeypatch.setattr("traceanalyzer.commands.capture.profile_files.SETTLE", 0.05)
    monkeypatch.delenv("VLLM_TORCH_PROFILER_DIR", raising=False)
    monkeypatch.delenv("VLLM_API_KEY", raising=False)

    def invoke(server: FakeServer, *options: str, profile_dir: Path | None = tmp_path / "profiles") -> Result:
        seen = () if profile_dir is None else ("--profile-dir", str(profile_dir))
        load = ("--concurrency", "4", "--input-tokens", "16", "--output-tokens", "6", "--file-timeout", "2")
        return CliRunner().invoke(cli, ["capture", server.url, *load, *seen, "--no-cache", *options])

    return invoke


@pytest.fixture
def run_job(tmp_path: Path) -> Callable[..., Compared]:
    """Write a job and compare its ranks."""

    def run(job: JobSpec, seed: int = 3) -> Compared:
        made = generate_job(job, seed)
        folder = write_job(made, tmp_path / f"job{len(list(tmp_path.iterdir()))}")
        return compare(open_traces(folder, cache=False)), made

    return run
