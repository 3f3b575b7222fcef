"""What the Ray engine does besides Ray: what is read where, and how outcomes are put together (tasks run here)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from traceanalyzer.problems import TraceError
from traceanalyzer.read import ingest, ray_engine
from traceanalyzer.read.ray_engine import ingest_with_ray


class RayError(Exception):
    pass


@pytest.fixture(autouse=True)
def cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster of one worker, which is this process."""

    def remote(**_: Any) -> Callable[[Any], Any]:
        return lambda task: SimpleNamespace(remote=task)

    fake = SimpleNamespace(
        is_initialized=lambda: True,
        remote=remote,
        get=lambda outcome: outcome,
        exceptions=SimpleNamespace(RayError=RayError),
    )
    monkeypatch.setattr(ray_engine, "_ray", lambda: fake)


def rank(document: Any, number: int) -> str:
    info = {"backend": "nccl", "rank": number, "world_size": 4}
    return json.dumps({**document, "distributedInfo": info})


@pytest.fixture
def folder(tmp_path: Path, document: Any) -> Path:
    """Ranks 0, 1 and 3 of 4, the front end's file and a broken one."""
    folder = tmp_path / "profiles"
    folder.mkdir()
    for number in (0, 1, 3):
        (folder / f"rank{number}.json").write_text(rank(document, number))
    (folder / "host_1.async_llm.1.pt.trace.json").write_text("")
    (folder / "broken.json").write_text("{")
    return folder


def test_outcomes_are_put_together_as_by_the_local_engine(folder: Path, tmp_path: Path) -> None:
    local = ingest([str(folder)], cache=False)
    spread = ingest_with_ray([str(folder)], output=str(tmp_path / "out"))
    assert [store.metadata.rank for store in spread.stores] == [0, 1, 3]
    assert spread.warnings == local.warnings
    assert spread.sources == local.sources
    again = ingest([str(tmp_path / "out")], cache=False)
    assert [store.metadata.rank for store in again.stores] == [0, 1, 3]


def test_input_without_a_trace_fails_as_by_the_local_engine(folder: Path, tmp_path: Path) -> None:
    for path in folder.glob("rank*"):
        path.unlink()
    with pytest.raises(TraceError) as local:
        ingest([str(folder)], cache=False)
    with pytest.raises(TraceError) as spread:
        ingest_with_ray([str(folder)], output=str(tmp_path / "out"))
    assert str(spread.value) == str(local.value)
    assert not (tmp_path / "out").exists()


def test_a_lost_cluster_leaves_no_output(folder: Path, tmp_path: Path) -> None:
    def lost(*_: str) -> Any:
        raise RayError("the head node is gone\nmore")

    with pytest.raises(TraceError, match="Ray could not finish: the head node is gone"):
        ingest_with_ray([str(folder)], output=str(tmp_path / "out"), reader=lost)
    assert [path.name for path in tmp_path.iterdir()] == ["profiles"]
