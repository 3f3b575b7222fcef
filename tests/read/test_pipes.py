"""Traces through pipes: what comes out is what the same bytes give as a file."""

from __future__ import annotations

import gzip
import io
import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.archives import of_rank, tarred, zipped
from tests.support.places import CASES
from tests.support.stores import codes, kernels
from traceanalyzer.problems import TraceError
from traceanalyzer.read import IngestResult, Store, ingest, inputs, pipes
from traceanalyzer.read import replay_buffer as kept

Piped = Callable[..., IngestResult]


@pytest.fixture
def piped(tmp_path: Path) -> Iterator[Piped]:
    """Return a function that writes content into a named pipe and ingests the pipe."""
    writers: list[threading.Thread] = []

    def run(content: bytes, **options: Any) -> IngestResult:
        path = tmp_path / f"pipe{len(writers)}"
        os.mkfifo(path)

        def write() -> None:
            with path.open("wb") as out:
                try:
                    out.write(content)
                except BrokenPipeError:
                    return

        writers.append(threading.Thread(target=write))
        writers[-1].start()
        return ingest([str(path)], processes=0, **options)

    yield run
    for writer in writers:
        writer.join()


def same(one: Store, other: Store) -> bool:
    """Whether two stores hold the same events and say the same of them, but for where they came from."""
    told = [
        [(w.code, w.message, w.count, w.byte_offset, w.line) for w in store.metadata.warnings] for store in (one, other)
    ]
    frames = [store.scan().collect().sort("index") for store in (one, other)]
    return told[0] == told[1] and frames[0].equals(frames[1])


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda raw: gzip.compress(gzip.compress(raw))])
def test_a_pipe_gives_what_the_file_gives(
    pack: Callable[[bytes], bytes], text: str, piped: Piped, read_one: Callable[..., Store]
) -> None:
    content = pack(text.encode())
    (store,) = piped(content).stores
    assert same(store, read_one(content))
    assert store.metadata.source.bytes == len(content)


@pytest.mark.parametrize("case", sorted(path.name for path in CASES.glob("[01]*.json*")))
def test_damage_is_mended_as_in_files(case: str, piped: Piped, read: Callable[..., IngestResult]) -> None:
    content = (CASES / case).read_bytes()
    expected, found = outcome(lambda: read(content)), outcome(lambda: piped(content))
    if isinstance(expected, Store) and isinstance(found, Store):
        assert same(found, expected)
    else:
        assert found == expected


def outcome(run: Callable[[], IngestResult]) -> Store | str:
    """Return the one store that comes out, or why none does."""
    try:
        return run().stores[0]
    except TraceError as error:
        return error.reason


def damaged_gzip(text: str, members: int = 1) -> bytes:
    """Return a trace in gzip with a byte in its middle that no code word fits to."""
    head, separator, tail = text.partition('"traceEvents": [')
    event = tail[tail.index("{") :]
    noise = random.Random(7)
    more = "".join(
        f'{{"ph": "X", "cat": "kernel", "name": "k{noise.random()}", "pid": 0, "tid": 7, "ts": {n}, "dur": 1}},\n'
        for n in range(1, 4000)
    )
    raw = (head + separator + more + event).encode()
    step = len(raw) // members + 1
    packed = [bytearray(gzip.compress(raw[at : at + step], 6)) for at in range(0, len(raw), step)]
    middle = packed[len(packed) // 2]
    middle[len(middle) // 2 : len(middle) // 2 + 400] = b"\xff" * 400
    return b"".join(packed)


@pytest.mark.parametrize("members", [1, 5])
def test_damaged_compression_costs_no_more_than_in_a_file(
    members: int, text: str, piped: Piped, read_one: Callable[..., Store]
) -> None:
    content = damaged_gzip(text, members)
    (store,) = piped(content).stores
    assert "damaged_compression" in codes(store)
    assert same(store, read_one(content))


def test_of_a_long_damaged_stream_the_last_piece_is_lost(
    text: str, piped: Piped, read_one: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = damaged_gzip(text)
    expected = read_one(content)
    monkeypatch.setattr(kept, "MAX_KEPT_BYTES", 20_000)
    (store,) = piped(content).stores
    lost = kernels(expected).height - kernels(store).height
    assert 0 <= lost < 100
    assert kernels(store).equals(kernels(expected).head(kernels(store).height))


def test_an_empty_pipe_is_an_empty_file(piped: Piped, tmp_path: Path) -> None:
    (tmp_path / "empty.json").touch()
    with pytest.raises(TraceError) as file:
        ingest([str(tmp_path / "empty.json")])
    with pytest.raises(TraceError) as pipe:
        piped(b"")
    assert pipe.value.reason == file.value.reason


def test_nothing_that_comes_through_a_pipe_is_cached(piped: Piped, text: str, own_cache: Path) -> None:
    piped(text.encode())
    assert [path for path in own_cache.rglob("*") if path.is_file()] == []


def test_an_output_keeps_what_came_through_a_pipe(piped: Piped, text: str, tmp_path: Path) -> None:
    first = piped(text.encode(), output=tmp_path / "out")
    again = ingest([str(tmp_path / "out")])
    assert kernels(first.stores[0]).equals(kernels(again.stores[0]))


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_archives_come_through_pipes(pack: Callable[..., bytes], text: str, piped: Piped) -> None:
    result = piped(pack({f"rank{rank}.json": of_rank(text, rank, 2) for rank in range(2)}))
    assert [store.metadata.rank for store in result.stores] == [0, 1]
    assert all(kernels(store).height == 68 for store in result.stores)


def test_a_pipe_is_read_in_windows(text: str, piped: Piped, monkeypatch: pytest.MonkeyPatch) -> None:
    from traceanalyzer.read import streaming as reading

    (whole,) = piped(text.encode()).stores
    monkeypatch.setattr(reading, "WINDOW_BYTES", 5_000)
    (pieces,) = piped(text.encode()).stores
    assert len(pieces.window_starts) > 5
    assert same(whole, pieces)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_standard_input_must_be_a_pipe_or_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Terminal())
    with pytest.raises(TraceError, match="terminal"):
        ingest(["-"])
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(TraceError, match="closed"):
        ingest(["-"])


def test_a_file_named_like_standard_input_is_not_meant_by_it(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("-").write_text(text)
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(TraceError, match="closed"):
        ingest(["-"])
    assert len(ingest(["./-"]).stores) == 1


def test_a_pipe_named_twice_is_refused_before_it_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    with pytest.raises(TraceError, match="named twice"):
        ingest([str(pipe), str(tmp_path / "link")])


def test_pipes_in_a_directory_are_left_alone(text: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    os.mkfifo(folder / "rank1.json")
    (folder / "rank0.json").write_text(text)
    assert len(ingest([str(folder)]).stores) == 1


def test_what_must_be_read_twice_refuses_pipes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), pipes.STANDARD_INPUT):
        with pytest.raises(TraceError, match="only once"):
            inputs.check_file(path)
