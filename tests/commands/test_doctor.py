"""The doctor lists problems with place and effect, and writes a valid copy."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.places import CASES
from traceanalyzer.commands.doctor.command import doctor as command
from traceanalyzer.commands.doctor.compute import EFFECTS, examine
from traceanalyzer.problems import TraceError

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def text() -> str:
    return (CASES / "000_baseline.json").read_text()


def run(*args: str) -> Any:
    return CliRunner().invoke(command, list(args))


def test_a_sound_trace_has_no_problems(tmp_path: Path) -> None:
    path = str(CASES / "000_baseline.json")
    result = run(path, "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document == {"schema": "traceanalyzer/doctor/1", "usable": True, "problems": [], "repaired": None}
    assert "no problems" in run(path).stdout


def test_every_problem_has_a_place_and_an_effect() -> None:
    (problem,) = examine(str(CASES / "001_truncated_midevent.json")).problems
    assert (problem.code, problem.byte_offset, problem.line, problem.count) == ("truncated", 22327, 79, 68)
    assert "incomplete" in problem.effect
    for path in sorted(CASES.glob("[01]*")):
        assert all(p.code in EFFECTS or p.code == "unusable" for p in examine(str(path)).problems)


@pytest.mark.parametrize("name", ["empty.json", "missing.json"])
def test_what_cannot_be_used_gives_status_1_and_one_document(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty.json").touch()
    result = run(str(tmp_path / name), "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["usable"] is False
    assert [problem["code"] for problem in document["problems"]] == ["unusable"]


@pytest.mark.parametrize("path", sorted(CASES.glob("[01]*.json*")), ids=lambda path: path.name)
def test_the_repaired_copy_is_valid_and_holds_the_same_events(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.json"
    before = examine(str(path), None)
    if not before.usable:
        return
    assert examine(str(path), copy).repaired == str(copy)
    json.loads(copy.read_text(), parse_constant=lambda _: pytest.fail("not JSON"))
    kept = {
        "invalid_gpu_times",
        "invalid_host_times",
        "clipped_durations",
        "begin_end_pairs",
        "unmatched_begin_end",
        "cpu_only",
    }
    after = examine(str(copy)).problems
    assert {(p.code, p.count) for p in after} == {(p.code, p.count) for p in before.problems if p.code in kept}


def test_the_copy_changes_only_what_was_wrong(text: str, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text(text.replace('"dur": 14.2', '"dur": NaN', 1) + "garbage")
    examine(str(tmp_path / "in.json"), tmp_path / "out.json.gz")
    copy = json.loads(gzip.decompress((tmp_path / "out.json.gz").read_bytes()))
    expected = json.loads(text)
    next(event for event in expected["traceEvents"] if event.get("dur") == 14.2)["dur"] = None
    assert copy == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.json", "out.json.gz"]


def test_the_copy_cannot_replace_its_original(text: str, tmp_path: Path) -> None:
    path = tmp_path / "in.json"
    path.write_text(text)
    with pytest.raises(TraceError, match="cannot replace"):
        examine(str(path), path)
    with pytest.raises(TraceError, match="cannot be written"):
        examine(str(path), path / "x.json")
    assert path.read_text() == text
