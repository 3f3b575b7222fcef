"""The cache: found again by content, never half-written, never in the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.stores import kernels
from traceanalyzer.problems import TraceError
from traceanalyzer.read import ingest
from traceanalyzer.read import ingest as package_ingest
from traceanalyzer.read import streaming as reading
from traceanalyzer.read.scratch import PREFIX, Scratch


@pytest.fixture
def trace(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "rank0.json"
    path.write_text(text)
    return path


def entries(cache: Path) -> list[Path]:
    found = (cache / "traceanalyzer").glob("v*/*")
    return [path for path in found if path.name != "index" and not path.name.startswith(PREFIX)]


def test_the_second_time_nothing_is_decoded(trace: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ingest([str(trace)])
    monkeypatch.setattr(reading, "TraceText", None)
    second = ingest([str(trace)])
    assert second.stores == first.stores
    assert first.effort.text_bytes > 0
    assert second.effort.text_bytes == 0
    assert len(entries(own_cache)) == 1


def test_the_key_is_the_content(trace: Path, own_cache: Path, text: str) -> None:
    ingest([str(trace)])
    copy = trace.parent / "elsewhere" / trace.name
    copy.parent.mkdir()
    copy.write_text(text)
    (store,) = ingest([str(copy)]).stores
    assert store.metadata.source.path == str(copy)
    assert len(entries(own_cache)) == 1
    trace.write_text(text.replace('"dur": 14.2', '"dur": 15.2'))
    assert kernels(ingest([str(trace)]).stores[0])["dur_ns"].sum() > 945_000
    assert len(entries(own_cache)) == 2


def test_a_change_that_keeps_size_and_time_is_a_change_of_content(trace: Path, text: str) -> None:
    ingest([str(trace)])
    status = trace.stat()
    copy = trace.with_name("new")
    copy.write_text(text.replace('"dur": 14.2', '"dur": 99.2'))
    os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
    copy.rename(trace)
    assert kernels(ingest([str(trace)]).stores[0])["dur_ns"].max() == 118_400
    assert kernels(ingest([str(trace)]).stores[0])["dur_ns"].sum() > 945_000


@pytest.mark.parametrize("name", ["entry.json", "0/trace.json", "0/device-h00000.parquet"])
@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", None])
def test_a_damaged_entry_is_made_anew(name: str, content: bytes | None, trace: Path, own_cache: Path) -> None:
    ingest([str(trace)])
    (entry,) = entries(own_cache)
    assert (entry / name).exists()
    if content is None:
        (entry / name).unlink()
    else:
        (entry / name).write_bytes(content)
    assert kernels(ingest([str(trace)]).stores[0]).height == 68
    assert kernels(ingest([str(trace)]).stores[0]).height == 68


def test_without_the_cache_nothing_is_left_in_it(trace: Path, own_cache: Path) -> None:
    assert kernels(ingest([str(trace)], cache=False).stores[0]).height == 68
    assert not own_cache.exists()


def test_a_cache_that_cannot_be_made_is_a_warning(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(trace))
    result = ingest([str(trace)])
    assert kernels(result.stores[0]).height == 68
    assert [warning.code for warning in result.warnings] == ["no_cache"]


def test_a_full_disk_is_an_error_in_one_line(trace: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import polars as pl

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(TraceError, match="disk is full"):
        ingest([str(trace)])
    assert not list(own_cache.rglob(f"{PREFIX}*"))


def test_what_a_dead_process_left_is_removed_and_what_a_living_one_has_is_not(tmp_path: Path) -> None:
    code = "import sys, time; from pathlib import Path; from traceanalyzer.read.scratch import Scratch; "
    code += "s = Scratch(Path(sys.argv[1])); print(s.path, flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        mine = Scratch(tmp_path)
        assert left.is_dir()
        process.send_signal(signal.SIGKILL)
    other = Scratch(tmp_path)
    assert not left.exists()
    assert mine.path.is_dir()
    mine.discard()
    other.discard()


def test_two_processes_at_once_leave_one_entry(trace: Path, own_cache: Path) -> None:
    code = "import sys; from traceanalyzer.read import ingest; print(ingest([sys.argv[1]]).stores[0].directory)"
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(trace)], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    printed = {process.communicate()[0] for process in running}
    assert all(process.returncode == 0 for process in running)
    assert len(printed) == 1
    assert len(entries(own_cache)) == 1
    assert kernels(ingest([str(trace)]).stores[0]).height == 68


def test_a_killed_ingest_leaves_nothing_wrong(trace: Path, own_cache: Path, text: str) -> None:
    head, events = text.split('"traceEvents": [\n')
    body = events.split("\n],\n")[0]
    trace.write_text(head + '"traceEvents": [\n' + ",\n".join([body] * 1500) + "\n]}")
    code = "import sys; from traceanalyzer.read import ingest; print(1, flush=True); ingest([sys.argv[1]], processes=2)"
    with subprocess.Popen([sys.executable, "-c", code, str(trace)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        deadline = time.monotonic() + 30
        while not list(own_cache.rglob("*.parquet")) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        process.kill()
    result = package_ingest([str(trace)])
    assert result.stores[0].metadata.source.events == 1500 * 89
    assert len(entries(own_cache)) == 1


def test_a_file_that_grows_while_it_is_read_is_not_cached(
    trace: Path, own_cache: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = reading.TraceText.windows

    def windows(self: reading.TraceText) -> object:
        with trace.open("a") as file:
            file.write("\n")
        return original(self)

    monkeypatch.setattr(reading.TraceText, "windows", windows)
    result = ingest([str(trace)])
    assert "changed_while_read" in [warning.code for warning in result.warnings]
    assert entries(own_cache) == []
