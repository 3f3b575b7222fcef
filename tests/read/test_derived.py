"""Segmentations kept beside a store: found by the next command, never wrong, never in the way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from synthetic import TraceSpec, decode_steps, generate, write
from synthetic.models import llama_dense
from traceanalyzer.cli.main import cli
from traceanalyzer.read.derived import SUFFIX, Derived
from traceanalyzer.segment import Segmentation, segment, segmentation
from traceanalyzer.segment import segmentation_cache as kept
from traceanalyzer.trace import Trace, open_trace, open_traces


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    made = generate(TraceSpec(model=llama_dense(layers=3), steps=decode_steps(4, batch=2)))
    return write(made, tmp_path / "rank0.json")


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[Trace]:
    """The traces that were cut up anew, in order."""
    original, found = segmentation.cut_up, []

    def counted(trace: Trace) -> Segmentation:
        found.append(trace)
        return original(trace)

    monkeypatch.setattr(segmentation, "cut_up", counted)
    return found


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob(f"*{SUFFIX}"))


def assert_same(one: Segmentation, two: Segmentation) -> None:
    for left, right in ((one.steps, two.steps), (one.blocks, two.blocks), (one.events, two.events)):
        assert left.schema == right.schema
        assert left.equals(right)
    assert one.warnings == two.warnings


def test_the_second_command_finds_what_the_first_one_cut_up(trace: Path, computed: list[Trace]) -> None:
    first, second = segment(open_trace(trace)), segment(open_trace(trace))
    assert len(computed) == 1
    assert_same(first, second)
    assert first.blocks.height == 12


def test_warnings_and_absent_devices_are_kept_too(computed: list[Trace], tmp_path: Path) -> None:
    path = tmp_path / "cpu.json"
    op = {"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1, "dur": 2.0}
    events = [op | {"name": name, "ts": 10.0 * at} for at, name in enumerate(["aten::mm", "aten::add"] * 9)]
    path.write_text(json.dumps({"traceEvents": events}))
    first, second = segment(open_trace(path)), segment(open_trace(path))
    assert len(computed) == 1
    assert first.warnings
    assert_same(first, second)
    assert second.events["device"].null_count() == len(second.events)


@pytest.mark.parametrize("content", [b"", b"PK", b"{}", "half", "flipped"])
def test_a_damaged_file_is_made_anew(content: bytes | str, trace: Path, own_cache: Path, computed: list[Trace]) -> None:
    first = segment(open_trace(trace))
    (file,) = files(own_cache)
    whole = file.read_bytes()
    middle = len(whole) // 2
    damaged = {"half": whole[:middle], "flipped": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]}
    file.write_bytes(content if isinstance(content, bytes) else damaged[content])
    assert_same(first, segment(open_trace(trace)))
    assert len(computed) == 2
    assert file.read_bytes() != content
    segment(open_trace(trace))
    assert len(computed) == 2


def test_a_file_of_another_trace_is_not_believed(
    trace: Path, tmp_path: Path, own_cache: Path, computed: list[Trace]
) -> None:
    segment(open_trace(trace))
    (own,) = files(own_cache)
    other = generate(TraceSpec(model=llama_dense(layers=3), steps=decode_steps(4, batch=2)), seed=5)
    segment(open_trace(write(other, tmp_path / "other.json")))
    (foreign,) = set(files(own_cache)) - {own}
    shutil.copy(foreign, own)
    segment(open_trace(trace))
    assert len(computed) == 3


def test_tables_of_another_shape_are_not_believed(trace: Path, computed: list[Trace]) -> None:
    opened = open_trace(trace)
    found = segment(opened)
    version = kept.algorithm_version()
    assert opened.derived is not None
    assert version is not None
    tables = {"steps": found.steps, "blocks": found.blocks, "places": found.events.head(3).select("step")}
    for written in (tables, {"steps": found.steps}):
        opened.derived.write("segmentation", version, written, b"[]")
        assert_same(found, segment(open_trace(trace)))
    assert len(computed) == 3


def test_a_changed_algorithm_makes_the_kept_result_out_of_date(
    trace: Path, computed: list[Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    segment(open_trace(trace))
    monkeypatch.setattr(kept, "algorithm_version", lambda: "another")
    segment(open_trace(trace))
    segment(open_trace(trace))
    assert len(computed) == 2


def test_the_version_follows_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(kept._PACKAGE, tmp_path / "copy", ignore=shutil.ignore_patterns("__pycache__"))
    versions = []
    monkeypatch.setattr(kept, "_PACKAGE", tmp_path / "copy")
    for change in ("", "# a comment\n"):
        with (tmp_path / "copy" / "segment" / "roles.py").open("a") as source:
            source.write(change)
        versions.append(kept.algorithm_version.__wrapped__())
    shutil.rmtree(tmp_path / "copy" / "names")
    versions.append(kept.algorithm_version.__wrapped__())
    assert None not in versions[:2]
    assert versions[0] != versions[1]
    assert versions[2] is None


def test_no_cache_neither_reads_nor_writes(trace: Path, tmp_path: Path, own_cache: Path, computed: list[Trace]) -> None:
    store = tmp_path / "store"
    open_traces(trace, output=store)
    for _ in range(2):
        segment(open_traces(store, cache=False).traces[0])
    assert files(tmp_path) == []
    segment(open_trace(store))
    segment(open_trace(store))
    assert len(computed) == 3
    segment(open_traces(store, cache=False).traces[0])
    assert len(computed) == 4
    assert files(own_cache) == []


def test_a_store_that_was_asked_for_holds_the_result(trace: Path, tmp_path: Path, computed: list[Trace]) -> None:
    run = CliRunner().invoke(cli, ["ingest", str(trace), "--output", str(tmp_path / "store"), "--json"])
    assert run.exit_code == 0, run.output
    assert len(files(tmp_path / "store")) == 1
    segment(open_trace(tmp_path / "store"))
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    segment(open_trace(tmp_path / "copy"))
    assert len(computed) == 1


def test_a_store_that_cannot_be_written_is_cut_up_each_time(
    trace: Path, tmp_path: Path, computed: list[Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    open_traces(trace, output=store)

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("traceanalyzer.files.tempfile.mkstemp", refused)
    assert_same(segment(open_trace(store)), segment(open_trace(store)))
    assert len(computed) == 2
    assert sorted(path.suffix for path in store.iterdir()) == [
        ".json",
        *[".parquet"] * (len(list(store.iterdir())) - 1),
    ]


def test_nothing_is_kept_in_a_temporary_store(trace: Path) -> None:
    opened = open_traces(trace, cache=False).traces[0]
    assert opened.store is not None
    assert Derived.beside(opened.store) is None


def test_processes_at_once_leave_one_readable_file(trace: Path, own_cache: Path, computed: list[Trace]) -> None:
    open_trace(trace)
    code = "import sys; from traceanalyzer.trace import open_trace; from traceanalyzer.segment import segment; "
    code += "print(segment(open_trace(sys.argv[1])).blocks.height)"
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(trace)], stdout=subprocess.PIPE, text=True, env=os.environ)
        for _ in range(2)
    ]
    assert [process.communicate()[0].strip() for process in running] == ["12", "12"]
    (file,) = files(own_cache)
    assert [path for path in file.parent.iterdir() if path.name.startswith(".")] == []
    assert segment(open_trace(trace)).blocks.height == 12
    assert computed == []


def test_a_table_keeps_its_types(trace: Path, tmp_path: Path) -> None:
    store = open_traces(trace, output=tmp_path / "store").traces[0].store
    assert store is not None
    derived = Derived.beside(store)
    assert derived is not None
    frame = pl.DataFrame({"a": [1, None], "b": ["x", None], "c": [0.5, None]}, schema_overrides={"a": pl.Int32})
    derived.write("other", "1", {"one": frame}, b'{"n": 1}')
    assert derived.read("other", "2") is None
    assert derived.read("absent", "1") is None
    found = derived.read("other", "1")
    assert found is not None
    assert found[0]["one"].schema == frame.schema
    assert found[0]["one"].equals(frame)
    assert json.loads(found[1]) == {"n": 1}
