"""Files are written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from traceanalyzer.files import write_whole, written_whole
from traceanalyzer.problems import TraceError


def test_a_failing_writer_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    path.write_text("old")
    with pytest.raises(TypeError), written_whole(path) as out:
        out.writelines([b"half", None])  # type: ignore[list-item]
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        write_whole(tmp_path / "new", "text")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_what_is_no_file_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(pipe, "text")
        assert os.read(reader, 10) == b"text"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "folder" / "file")
    write_whole(link, "text")
    assert link.is_symlink()
    assert (tmp_path / "folder" / "file").read_text() == "text"


def test_a_missing_folder_is_an_error_unless_it_may_be_made(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be written"):
        write_whole(tmp_path / "absent" / "file", "text")
    write_whole(tmp_path / "absent" / "file", "grüße", make_folder=True)
    assert (tmp_path / "absent" / "file").read_bytes() == "grüße".encode()
