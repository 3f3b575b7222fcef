"""Directories being written: never taken from a living owner, removed when it died."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from traceanalyzer.read import scratch
from traceanalyzer.read.scratch import LOCK_FILE, PREFIX, Scratch, remove_stale

HOLD = "import sys, os; from pathlib import Path; from traceanalyzer.read.scratch import Scratch; "


def test_a_directory_is_never_seen_unlocked_under_its_locks_name(tmp_path: Path, monkeypatch) -> None:
    lock = scratch._lock
    seen = []

    def spy(descriptor: int) -> None:
        (directory,) = tmp_path.glob(f"{PREFIX}*")
        seen.append((directory / LOCK_FILE).exists())
        lock(descriptor)

    monkeypatch.setattr(scratch, "_lock", spy)
    made = Scratch(tmp_path)
    assert seen == [False]
    assert (made.path / LOCK_FILE).exists()


def test_a_living_owner_keeps_its_directory(tmp_path: Path) -> None:
    mine = Scratch(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", HOLD + "Scratch(Path(sys.argv[1]))", str(tmp_path)], check=True, capture_output=True
    )
    assert done.returncode == 0
    assert mine.path.is_dir()


def test_a_dead_owners_directory_is_removed(tmp_path: Path) -> None:
    code = HOLD + "Scratch(Path(sys.argv[1])); os._exit(1)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False, capture_output=True)
    (left,) = tmp_path.glob(f"{PREFIX}*")
    remove_stale(tmp_path)
    assert not left.exists()


def test_nothing_is_removed_where_the_system_has_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nothing tells the living from the dead."""
    monkeypatch.setattr(scratch, "_locks", lambda: None)
    living = Scratch(tmp_path)
    Scratch(tmp_path).discard()
    assert living.path.exists()


def test_a_published_directory_has_no_lock(tmp_path: Path) -> None:
    target = Scratch(tmp_path).publish(tmp_path / "store")
    assert target.is_dir()
    assert not list(target.iterdir())


@pytest.mark.parametrize("round_", range(3))
def test_many_processes_at_once_lose_nothing(tmp_path: Path, round_: int) -> None:
    code = HOLD + (
        "\nfor i in range(40):\n"
        "    made = Scratch(Path(sys.argv[1])); (made.path / 'x').write_text('x'); made.publish(Path(sys.argv[1]) / "
        "f'{os.getpid()}-{i}')"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stderr=subprocess.PIPE) for _ in range(3)]
    errors = [process.communicate()[1].decode() for process in running]
    assert errors == ["", "", ""]
    assert len(list(tmp_path.glob("*-*/x"))) == 120
