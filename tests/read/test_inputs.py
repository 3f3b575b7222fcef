"""Files, directories, archives, stores and URLs as input."""

from __future__ import annotations

import functools
import gzip
import http.server
import io
import os
import stat
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.archives import of_rank, tarred, zipped
from tests.support.places import CASES
from tests.support.stores import kernels
from traceanalyzer.problems import TraceError
from traceanalyzer.read import container, ingest, inputs
from traceanalyzer.read.rank_of_file import placement
from traceanalyzer.trace import TraceSet


@pytest.fixture
def folder(tmp_path: Path, text: str) -> Path:
    """Return a directory as vLLM leaves it: ranks 0, 1 and 3 of 4, the front end, and side files."""
    path = tmp_path / "profile"
    path.mkdir()
    for rank in (0, 1, 3):
        name = f"dp0_pp0_tp{rank}_dcp0_ep{rank}_rank{rank}.17672256000{rank}.pt.trace.json.gz"
        (path / name).write_bytes(gzip.compress(of_rank(text, rank)))
    (path / "host_123.async_llm.1767.pt.trace.json.gz").write_bytes(gzip.compress(b'{"traceEvents": []}'))
    (path / "rank0.profiler_out.txt").write_text("Self CPU time")
    (path / "config.json").write_text('{"model_type": "llama"}')
    (path / "capture_traces").mkdir()
    (path / "capture_traces" / "graph_capture_rank_0.json").write_bytes(of_rank(text, 0))
    return path


def test_a_directory_gives_one_store_a_rank_and_names_the_gap(folder: Path) -> None:
    result = ingest([str(folder)])
    assert [store.metadata.rank for store in result.stores] == [0, 1, 3]
    assert [store.metadata.parallel["ep"] for store in result.stores if store.metadata.parallel] == [0, 1, 3]
    opened = TraceSet.from_result(result)
    assert (opened.world_size, opened.missing_ranks) == (4, [2])
    assert [warning.code for warning in result.warnings] == ["missing_ranks"]
    skipped = {Path(source.path).name: source.skipped for source in result.sources if source.skipped}
    assert len(skipped) == 4
    assert "front-end" in str(skipped["host_123.async_llm.1767.pt.trace.json.gz"])
    assert "not a profiler trace" in str(skipped["config.json"])


def test_a_damaged_file_in_a_directory_does_not_cost_the_others(folder: Path) -> None:
    (folder / "rank2.json").write_bytes(b'{"traceEvents": [{"ph"')
    result = ingest([str(folder)])
    assert len(result.stores) == 3
    assert "skipped_file" in [warning.code for warning in result.warnings]


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank5.1767.pt.trace.json", 5),
        ("dp0_pp0_tp1_dcp0_ep1_rank1.pt.trace.json", 1),
        ("host_12-rank-3.pt.trace.json", 3),
        ("prefix_rank_12.json", 12),
        ("1767225600-TP-2-EP-1.trace.json", 2),
        ("1767225600-TP-2-DP-1.trace.json", None),
        ("franken3.json", None),
        ("trace.json", None),
    ],
)
def test_the_name_tells_the_rank_where_the_trace_does_not(
    name: str, rank: int | None, text: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(of_rank(text, None))
    (store,) = ingest([str(tmp_path / name)]).stores
    assert store.metadata.rank == rank
    assert store.metadata.rank_source == (None if rank is None else "filename")


def test_the_trace_is_believed_over_its_name_and_ranks_are_not_renumbered(text: str, tmp_path: Path) -> None:
    paths = []
    for name, rank in (("rank0.json", 1), ("rank1.json", 1)):
        paths.append(str(tmp_path / name))
        (tmp_path / name).write_bytes(of_rank(text, rank, 2))
    result = ingest(paths)
    assert [store.metadata.rank for store in result.stores] == [1, 1]
    assert [warning.code for warning in result.stores[0].metadata.warnings] == ["rank_conflict"]
    assert [warning.code for warning in result.warnings] == ["missing_ranks", "duplicate_rank"]


PACKERS: dict[str, Callable[[dict[str, bytes]], bytes]] = {
    "zip": zipped,
    "tar": tarred,
    "tar.gz": lambda members: gzip.compress(tarred(members)),
    "zip in gzip": lambda members: gzip.compress(zipped(members)),
    "zip in zip": lambda members: zipped({"inner.zip": zipped(members)}),
    "tar.gz in zip": lambda members: zipped({"inner.tgz": gzip.compress(tarred(members))}),
}


@pytest.mark.parametrize("kind", PACKERS)
def test_archives_give_every_trace_in_them(kind: str, text: str, tmp_path: Path) -> None:
    members = {
        "run/rank0.json": of_rank(text, 0, 2),
        "run/rank1.json.gz": gzip.compress(of_rank(text, 1, 2)),
        "notes.txt": b"hello",
        "config.json": b"{}",
    }
    path = tmp_path / "archive.bin"
    path.write_bytes(PACKERS[kind](members))
    result = ingest([str(path)])
    assert [store.metadata.rank for store in result.stores] == [0, 1]
    assert all(kernels(store).height == 68 for store in result.stores)
    assert sum(source.skipped is not None for source in result.sources) == 2
    assert result.warnings == ()


def test_members_that_lead_out_of_an_archive_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(
        zipped({"../rank0.json": text.encode(), "/etc/rank1.json": text.encode(), "rank2.json": text.encode()})
    )
    result = ingest([str(path)])
    assert [store.metadata.source.path for store in result.stores] == [f"{path}!rank2.json"]
    assert [warning.code for warning in result.warnings] == ["skipped_member", "skipped_member"]


def test_links_in_an_archive_are_not_followed(text: str, tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        link = tarfile.TarInfo("rank0.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    path = tmp_path / "a.tar"
    path.write_bytes(out.getvalue())
    with pytest.raises(TraceError, match="link"):
        ingest([str(path)])


def test_a_cut_off_archive_gives_what_it_can(text: str, tmp_path: Path) -> None:
    members = {"rank0.json": of_rank(text, 0, 2), "rank1.json": of_rank(text, 1, 2)}
    for name, packed in (("a.zip", zipped(members)), ("a.tar", tarred(members))):
        path = tmp_path / name
        path.write_bytes(packed[: int(len(packed) * 0.7)])
        result = ingest([str(path)])
        assert kernels(result.stores[0]).height == 68
        assert 0 < kernels(result.stores[1]).height < 68
        assert "damaged_archive" in [warning.code for warning in result.warnings]


def test_a_decompression_bomb_is_refused(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "BOMB_FLOOR_BYTES", 4 << 20)
    bomb = text[: text.index("\n{")].encode() + b" " * (20 << 20)
    for name, packed in (("a.json.gz", gzip.compress(bomb)), ("a.zip", zipped({"rank0.json": bomb}))):
        (tmp_path / name).write_bytes(packed)
        with pytest.raises(TraceError, match="bomb"):
            ingest([str(tmp_path / name)])


def test_nesting_and_the_number_of_members_are_bounded(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = text.encode()
    for _ in range(6):
        packed = gzip.compress(packed)
    (tmp_path / "deep.json").write_bytes(packed)
    with pytest.raises(TraceError, match="times over"):
        ingest([str(tmp_path / "deep.json")])
    packed = zipped({"rank0.json": text.encode()})
    for _ in range(6):
        packed = zipped({"a.zip": packed})
    (tmp_path / "deep.zip").write_bytes(packed)
    with pytest.raises(TraceError, match="nested"):
        ingest([str(tmp_path / "deep.zip")])
    monkeypatch.setattr(inputs, "MAX_MEMBERS", 3)
    (tmp_path / "many.zip").write_bytes(zipped({f"{i}.txt": b"" for i in range(5)}))
    with pytest.raises(TraceError, match="more than 3 members"):
        ingest([str(tmp_path / "many.zip")])


def test_devices_and_missing_files_are_refused(tmp_path: Path) -> None:
    for path, reason in (
        ("/dev/null", "device"),
        (str(tmp_path / "missing"), "no such file"),
        (f"{tmp_path}/nul\0byte", "null byte"),
        (str(tmp_path), "no trace found"),
    ):
        with pytest.raises(TraceError, match=reason):
            ingest([path])


def test_names_of_files_may_be_odd(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x[red] =cmd|' \u202e\n.json"
    path.write_text(text)
    (store,) = ingest([str(path)]).stores
    assert store.metadata.source.path == str(path)


def test_an_output_is_an_input(text: str, folder: Path, tmp_path: Path) -> None:
    for source, count in ((folder, 3), (folder / "capture_traces" / "graph_capture_rank_0.json", 1)):
        output = tmp_path / f"out{count}"
        first = ingest([str(source)], output=output)
        assert all(output in (store.directory, store.directory.parent) for store in first.stores)
        again = ingest([str(output)])
        assert [store.metadata.rank for store in again.stores] == [store.metadata.rank for store in first.stores]
        assert kernels(again.stores[0]).equals(kernels(first.stores[0]))
        ingest([str(source)], output=output)
    with pytest.raises(TraceError, match="traceanalyzer did not write"):
        ingest([str(source)], output=folder)
    assert len(list(folder.iterdir())) == 7


def test_an_output_that_others_put_files_into_is_not_replaced(text: str, tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text(text)
    ingest([str(tmp_path / "trace.json")], output=tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(TraceError, match="choose another"):
        ingest([str(tmp_path / "trace.json")], output=tmp_path / "out")
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"


def test_an_output_may_be_read_by_those_who_may_read_any_new_directory(folder: Path, tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        ingest([str(folder)], output=tmp_path / "out")
    finally:
        os.umask(mask)
    found = [tmp_path / "out", *(tmp_path / "out").iterdir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o755}


def test_a_store_of_another_version_is_told_from_a_damaged_one(text: str, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text(text)
    ingest([str(tmp_path / "in.json")], output=tmp_path / "out")
    (tmp_path / "out" / "trace.json").write_text('{"schema": 1, "keys": "of then"}')
    with pytest.raises(TraceError, match="another version"):
        ingest([str(tmp_path / "out")])
    (tmp_path / "out" / "trace.json").write_text("{}")
    with pytest.raises(TraceError, match="not a readable store"):
        ingest([str(tmp_path / "out")])


def test_a_store_of_one_rank_lacks_no_more_ranks_than_its_file(text: str, tmp_path: Path) -> None:
    (tmp_path / "rank1.json").write_bytes(of_rank(text, 1))
    first = ingest([str(tmp_path / "rank1.json")], output=tmp_path / "out")
    assert ingest([str(tmp_path / "out")]).warnings == first.warnings == ()


def test_a_folder_may_be_named_after_graph_captures(text: str, tmp_path: Path) -> None:
    for place in ("graph_capture_study/rank0.json", "graph_capture_study/graph_capture_rank_0/host.json"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_bytes(of_rank(text, 0))
    result = ingest([str(tmp_path / "graph_capture_study")])
    assert [Path(store.metadata.source.path).name for store in result.stores] == ["rank0.json"]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Serve a directory on loopback."""
    folder = tmp_path / "served"
    folder.mkdir()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}", folder
        running.shutdown()
        thread.join()


def test_a_trace_is_read_from_a_web_server(server: tuple[str, Path], text: str) -> None:
    url, folder = server
    (folder / "rank0.json.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "ranks.zip").write_bytes(zipped({"rank0.json": text.encode()}))
    (store,) = ingest([f"{url}/rank0.json.gz"]).stores
    assert kernels(store)["dur_ns"].sum() == 945_000
    assert store.metadata.source.path == f"{url}/rank0.json.gz"
    assert kernels(ingest([f"{url}/ranks.zip"]).stores[0]).height == 68


def test_a_web_server_that_has_no_such_file_is_named(server: tuple[str, Path]) -> None:
    with pytest.raises(TraceError, match="404"):
        ingest([f"{server[0]}/missing.json"])
    with pytest.raises(TraceError, match="cannot be read"):
        ingest(["http://127.0.0.1:1/x.json"])


def test_a_trace_is_read_from_a_remote_file_system(text: str) -> None:
    import fsspec

    system = fsspec.filesystem("memory")
    for rank in (0, 1):
        system.pipe(f"/profile/rank{rank}.json.gz", gzip.compress(of_rank(text, rank, 2)))
    result = ingest(["memory://profile"])
    assert [store.metadata.rank for store in result.stores] == [0, 1]
    assert [source.path for source in result.sources] == [
        "memory:///profile/rank0.json.gz",
        "memory:///profile/rank1.json.gz",
    ]
    with pytest.raises(TraceError):
        ingest(["memory://profile/missing.json"])
    with pytest.raises(TraceError):
        ingest(["nosuchprotocol://bucket/x.json"])


@pytest.mark.parametrize("info", [{"rank": 0, "world_size": 10**12}, {"rank": 10**10, "world_size": 4}])
def test_an_absurd_job_is_not_believed(info: dict[str, int]) -> None:
    placed = placement("trace_rank3.json", info)
    assert (placed.rank, placed.world_size, placed.source) == (3, None, "filename")
    assert [warning.code for warning in placed.warnings] == ["rank_conflict"]


def test_an_entry_that_may_not_be_looked_at_is_skipped_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rank0.json").write_bytes((CASES / "000_baseline.json").read_bytes())
    (tmp_path / "secret.json").write_bytes(b"{}")
    is_file, open_file = Path.is_file, Path.open

    def refuse(path: Path) -> None:
        if path.name == "secret.json":
            raise PermissionError(13, "Permission denied", str(path))

    def guarded_is_file(path: Path) -> bool:
        refuse(path)
        return is_file(path)

    def guarded_open(path: Path, *arguments: Any, **named: Any) -> Any:
        refuse(path)
        return open_file(path, *arguments, **named)

    monkeypatch.setattr(Path, "is_file", guarded_is_file)
    monkeypatch.setattr(Path, "open", guarded_open)
    result = ingest([str(tmp_path)], cache=False)
    assert len(result.stores) == 1
    (skipped,) = [source for source in result.sources if source.skipped]
    assert "permission denied" in str(skipped.skipped)


def test_a_name_that_is_not_utf8_is_read_and_written_out(tmp_path: Path) -> None:
    content = (CASES / "000_baseline.json").read_bytes()
    folder = tmp_path / "in"
    folder.mkdir()
    odd = os.fsdecode(os.fsencode(folder) + b"/bad\xff.json")
    try:
        Path(odd).write_bytes(content)
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    for cache in (False, True, True):
        (source,) = ingest([odd], cache=cache).sources
        assert source.path == f"{folder}/bad\\udcff.json"
    (folder / "rank0.json").write_bytes(content)
    assert len(ingest([str(folder)], cache=False).stores) == 2


def test_a_member_whose_name_is_not_utf8_is_read(tmp_path: Path) -> None:
    content = (CASES / "000_baseline.json").read_bytes()
    with tarfile.open(tmp_path / "ranks.tar", "w") as archive:
        member = tarfile.TarInfo("bad\udcff.json")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    (store,) = ingest([str(tmp_path / "ranks.tar")], cache=False).stores
    assert kernels(store).height == 68
