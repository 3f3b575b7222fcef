"""Large traces are decoded by worker processes."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest
from polars.testing import assert_frame_equal

from tests.support.stores import codes
from traceanalyzer import workers
from traceanalyzer.problems import TraceError
from traceanalyzer.read import Store, ingest, pool
from traceanalyzer.read import streaming as reading
from traceanalyzer.read.trace_text import Window


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "WINDOW_BYTES", 2_000)
    monkeypatch.setattr(reading, "WORKERS_FROM_BYTES", 1)


def read(path: Path, processes: int) -> Store:
    (store,) = ingest([str(path)], cache=False, processes=processes).stores
    return store


@pytest.mark.usefixtures("small_windows")
def test_workers_and_this_process_agree(document: Any, tmp_path: Path) -> None:
    document["traceEvents"][7]["dur"] = "NaN"
    document["traceEvents"][20]["args"]["correlation"] = 2**70
    document["traceEvents"][40]["args"]["calls"] = [{"ph": "X"}, {"ph": "Y"}]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document, indent=1).replace('"ts": 2026.0', '"ts" 2026.0'))
    here, there = read(path, 0), read(path, 2)
    assert_frame_equal(here.scan().sort("index").collect(), there.scan().sort("index").collect())
    assert codes(here) == codes(there)
    assert here.metadata.warnings == there.metadata.warnings
    assert any(file.name.startswith("device-w") for file in there.directory.iterdir())


def test_what_turns_out_to_be_large_is_handed_over_to_workers(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "WINDOW_BYTES", 2_000)
    monkeypatch.setattr(reading, "WORKERS_FROM_BYTES", 6_000)
    monkeypatch.setattr(reading, "TYPICAL_RATIO", 1)
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(text.encode()))
    store = read(path, 2)
    assert {"h", "w"} <= {file.name.split("-")[1][0] for file in store.files("device")}
    index = store.scan().sort("index").collect()["index"].to_list()
    assert index == read(path, 0).scan().sort("index").collect()["index"].to_list()


@pytest.mark.usefixtures("small_windows")
def test_this_process_decodes_what_workers_cannot_take_at_once(text: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text)
    store = read(path, 1)
    assert {file.name.split("-")[1][0] for file in store.directory.glob("*.parquet")} == {"m", "w"}
    assert store.metadata.source.events == 89


@pytest.mark.usefixtures("small_windows")
def test_a_list_that_ends_early_is_found_by_the_workers(text: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text + text.split('"traceEvents": [')[1] * 3)
    store = read(path, 2)
    assert store.metadata.source.events == 89
    assert codes(store) == ["trailing_data"]


@pytest.mark.usefixtures("small_windows")
def test_a_worker_that_dies_is_an_error_in_one_line(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "START", "import sys; sys.exit(3)")
    path = tmp_path / "trace.json"
    path.write_text(text)
    with pytest.raises(TraceError, match=r"process died \(exit status 3\)"):
        read(path, 2)


@pytest.mark.usefixtures("small_windows")
def test_where_no_process_can_be_started_this_one_does_the_work(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    path = tmp_path / "trace.json"
    path.write_text(text)
    assert read(path, 2).metadata.source.events == 89


def test_the_callers_main_module_is_not_run_again(document: Any, tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text(json.dumps(document))
    script = tmp_path / "script.py"
    script.write_text(
        "from traceanalyzer.read import ingest, streaming\n"
        "streaming.WINDOW_BYTES, streaming.WORKERS_FROM_BYTES = 2_000, 1\n"
        "print(ingest(['trace.json'], processes=2).stores[0].metadata.source.events)\n"
    )
    done = subprocess.run([sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("89\n", "")


def test_progress_counts_up_to_the_whole_input(text: str, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("rank0.json", "rank1.json"):
        (folder / name).write_text(text)
    ingest([str(folder)], progress=lambda done, total: seen.append((done, total)))
    size = 2 * len(text)
    assert seen[-1] == (size, size)
    assert seen == sorted(seen)


class _SlowWorker:
    """Answers after a while, as a real one does."""

    def __init__(self) -> None:
        self.busy = threading.Event()

    def ask(self, task: pool.WindowTask, payload: bytes = b"", kind: object = None) -> None:
        if payload:
            self.busy.set()
            time.sleep(0.3)


def test_no_thread_uses_a_worker_after_this_process_gave_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = _SlowWorker()

    def give_up(self: object, window: Window) -> None:
        worker.busy.wait()
        raise pool.ListEndedError

    monkeypatch.setattr(pool.WindowDecoder, "decode", give_up)
    windows = [Window(number=n, offset=0, line=1, buffer=b"{}") for n in range(8)]
    before = threading.active_count()
    with pytest.raises(pool.ListEndedError):
        pool.WindowDistribution([cast(workers.Worker, worker)], tmp_path).decode(windows)
    assert threading.active_count() == before
