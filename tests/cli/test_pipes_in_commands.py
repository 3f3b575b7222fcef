"""Commands that read a trace from standard input and from named pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from synthetic import generate, write
from synthetic.models import llama_decode
from traceanalyzer.cli.main import cli


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(generate(llama_decode(layers=4, steps=3)), tmp_path_factory.mktemp("cli") / "trace.json.gz")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))


def invoke(*arguments: object, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], input=stdin)


def without_paths(value: Any) -> Any:
    """Return a document without what names or measures the file."""
    if isinstance(value, dict):
        return {k: without_paths(v) for k, v in value.items() if k not in {"path", "source", "seconds", "sources"}}
    return [without_paths(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("command", ["ingest", "hotspots", "blocks", "idle", "ranks"])
def test_standard_input_gives_what_the_file_gives(command: str, trace: Path) -> None:
    from_file = invoke(command, trace, "--json", "--no-cache")
    from_pipe = invoke(command, "-", "--json", stdin=trace.read_bytes())
    assert from_pipe.exit_code == 0, from_pipe.output
    assert without_paths(json.loads(from_pipe.stdout)) == without_paths(json.loads(from_file.stdout))


def test_a_trace_is_compared_with_one_from_standard_input(trace: Path) -> None:
    result = invoke("diff", trace, "-", "--json", stdin=trace.read_bytes())
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("diff", "-", "-"),
        ("blocks", "-", "-"),
        ("report", "--diff", "-", "-"),
        ("tune", "verify", "--before", "-", "--after", "-"),
    ],
)
def test_standard_input_named_twice_is_a_usage_error(arguments: tuple[str, ...], trace: Path) -> None:
    result = invoke(*arguments, stdin=trace.read_bytes())
    assert result.exit_code == 2
    assert "only once" in result.stderr


def test_a_named_pipe_given_twice_is_a_usage_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    result = invoke("diff", tmp_path / "pipe", tmp_path / "pipe")
    assert result.exit_code == 2


def test_an_empty_pipe_ends_in_one_line_and_status_1() -> None:
    result = invoke("hotspots", "-")
    assert result.exit_code == 1
    assert result.stderr == "Error: -: the file is empty (0 bytes)\n"


def test_a_truncated_stream_is_salvaged(trace: Path) -> None:
    result = invoke("ingest", "-", "--json", stdin=trace.read_bytes()[:-2000])
    assert result.exit_code == 0
    assert "truncated" in [warning["code"] for warning in json.loads(result.stdout)["warnings"]]


def test_what_a_pipe_gave_is_kept_by_output(trace: Path, tmp_path: Path) -> None:
    assert invoke("ingest", "-", "--output", tmp_path / "kept", stdin=trace.read_bytes()).exit_code == 0
    assert invoke("hotspots", tmp_path / "kept").exit_code == 0


def test_a_shell_can_put_a_command_in_the_place_of_a_path(trace: Path) -> None:
    command = f'"{sys.executable}" -m traceanalyzer hotspots <(cat "{trace}") --json'
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"]


def test_the_next_command_is_given_what_was_kept_of_a_pipe(trace: Path, tmp_path: Path) -> None:
    kept = invoke("ingest", "-", "--output", tmp_path / "kept", stdin=trace.read_bytes())
    assert f"traceanalyzer hotspots {tmp_path / 'kept'}" in kept.stdout
    lost = invoke("ingest", "-", stdin=trace.read_bytes())
    assert "traceanalyzer hotspots DIR" in lost.stdout
    assert "--output DIR" in lost.stderr


def test_repair_refuses_a_pipe_before_it_reads_it(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    command = [sys.executable, "-m", "traceanalyzer", "doctor", "-", "--repair", str(tmp_path / "copy.json")]
    done = subprocess.run(command, stdin=read_end, capture_output=True, text=True, check=False, timeout=60)
    os.close(read_end)
    os.close(write_end)  # open until here: who reads waits for its end
    assert done.returncode == 1
    assert "save it to a file first" in done.stderr
    assert not list(tmp_path.glob("*copy*"))


@pytest.mark.parametrize(
    "command", ["ingest", "hotspots", "diff", "doctor", "report", "estimate", "tune plan", "tune verify"]
)
def test_help_says_that_pipes_are_read_and_not_cached(command: str) -> None:
    text = " ".join(invoke(*command.split(), "--help").stdout.split())
    assert "standard input" in text
    assert "not cached" in text
