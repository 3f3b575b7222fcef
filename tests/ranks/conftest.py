"""Jobs of many ranks, written once and compared once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from synthetic.ranks import (
    JobSpec,
    SyntheticJob,
    generate_job,
    write_job,
)
from traceanalyzer.commands.ranks.compute import RankComparison, compare
from traceanalyzer.trace import open_traces

Compared = tuple[RankComparison, SyntheticJob]


@pytest.fixture
def run_job(tmp_path: Path) -> Callable[..., Compared]:
    def run(job: JobSpec, seed: int = 3) -> Compared:
        made = generate_job(job, seed)
        folder = write_job(made, tmp_path / f"job{len(list(tmp_path.iterdir()))}")
        return compare(open_traces(folder, cache=False)), made

    return run
