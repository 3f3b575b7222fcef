"""Ingest on a Ray cluster of two workers gives what the local engine gives, whatever happens to a worker."""

from __future__ import annotations

import gc
import os
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from synthetic.ranks import JobSpec, generate_job, write_job
from traceanalyzer.problems import TraceError
from traceanalyzer.read import ingest
from traceanalyzer.read.ingest import IngestResult
from traceanalyzer.read.ray_engine import FileOutcome, ingest_with_ray, read_file

JOB = JobSpec(tp=4, jitter=0.1)


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    ray = pytest.importorskip("ray", reason="Ray is optional: pip install 'traceanalyzer[ray]'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield ray
    with warnings.catch_warnings():
        # Ray leaves its daemons' Popen objects to the garbage collector while the daemons are still ending.
        warnings.simplefilter("ignore")
        ray.shutdown()
        gc.collect()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = write_job(generate_job(JOB, 1), tmp_path / "profiles")
    (folder / "host_1.async_llm.1.pt.trace.json.gz").write_bytes(b"")
    (folder / "broken.json").write_text("{", encoding="utf-8")
    return folder


def events(result: IngestResult) -> list[pl.DataFrame]:
    return [store.scan().sort("index").collect() for store in result.stores]


def assert_same(spread: IngestResult, local: IngestResult) -> None:
    for one, other in zip(events(spread), events(local), strict=True):
        assert one.equals(other)
    plain = [[store.metadata for store in result.stores] for result in (spread, local)]
    assert plain[0] == plain[1]
    assert spread.sources == local.sources
    assert spread.warnings == local.warnings


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_results_equal_those_of_the_local_engine(folder: Path, tmp_path: Path) -> None:
    local = ingest([str(folder)], cache=False, output=tmp_path / "local")
    spread = ingest_with_ray([str(folder)], output=str(tmp_path / "spread"))
    assert len(spread.stores) == 4
    assert_same(spread, local)
    names = [sorted(path.name for path in (tmp_path / kind).iterdir()) for kind in ("spread", "local")]
    assert names[0] == names[1] == ["0", "1", "2", "3"]


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_a_worker_that_dies_in_the_middle_loses_nothing(folder: Path, tmp_path: Path) -> None:
    killed = tmp_path / "killed"

    def dying(path: str, output: str, name: str) -> FileOutcome:
        if "rank2" in path and not killed.exists():
            killed.touch()
            read_file(path, output, name)
            os.kill(os.getpid(), signal.SIGKILL)
        return read_file(path, output, name)

    local = ingest([str(folder)], cache=False)
    spread = ingest_with_ray([str(folder)], output=str(tmp_path / "out"), reader=dying)
    assert killed.exists()
    assert_same(spread, local)


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_stores_can_go_to_an_object_store(folder: Path, tmp_path: Path) -> None:
    local = ingest([str(folder)], cache=False)
    spread = ingest_with_ray([str(folder)], output=f"file://{tmp_path}/bucket/run")
    assert_same(spread, local)
    assert len(list((tmp_path / "bucket" / "run").glob("*/0/trace.json"))) == 4


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_an_output_in_use_and_a_folder_without_traces_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="exists"):
        ingest_with_ray([str(folder)], output=str(tmp_path))
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(TraceError, match="no trace"):
        ingest_with_ray([str(empty)], output=str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_without_ray_the_reason_is_told(monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(TraceError, match="not installed"):
        ingest_with_ray([str(folder)], output=str(tmp_path / "out"))
