"""Terminals that are narrow, know no Unicode or refuse to be written to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from synthetic import generate, write
from synthetic.models import llama_decode
from tests.support.places import CASES
from traceanalyzer.cli.main import cli, of_system

MOE = CASES / "210_dense_first3_moe.json.gz"


@pytest.fixture(scope="module")
def trace(tmp_path_factory) -> Path:
    return write(generate(llama_decode(layers=4, steps=3)), tmp_path_factory.mktemp("terminal") / "trace.json.gz")


def in_process(command: str, path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "traceanalyzer", command, str(path), "--no-cache"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("command", ["ingest", "blocks"])
def test_a_terminal_without_unicode_gets_plain_signs(command, trace) -> None:
    result = in_process(command, trace, PYTHONIOENCODING="ascii")
    assert result.returncode == 0, result.stderr
    assert result.stdout.isascii()
    assert "?" not in result.stdout
    assert "us" in result.stdout


@pytest.mark.parametrize("command", ["ingest", "hotspots", "blocks", "idle"])
def test_a_very_narrow_terminal_loses_columns_not_digits(command, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    result = CliRunner().invoke(cli, [command, str(MOE), "--no-cache"])
    assert result.exit_code == 0
    # Commands to paste are never broken.
    lines = [line for line in result.stdout.splitlines() if not line.startswith("  traceanalyzer ")]
    assert max(map(len, lines)) <= 40
    for start, line in enumerate(lines):
        if set(line) == {"─"}:
            assert all(not row.startswith(" ") for row in lines[start + 1 : start + 3])


def test_what_the_system_refuses_is_one_line_with_the_file() -> None:
    assert of_system(PermissionError(13, "Permission denied", "/there")) == "/there: permission denied"
    assert of_system(OSError(28, "No space left on device")) == "the system refused: no space left on device"


def test_a_phase_that_does_not_occur_is_said_with_those_that_do(trace) -> None:
    result = CliRunner().invoke(cli, ["hotspots", str(trace), "--phase", "prefill", "--no-cache"])
    assert result.exit_code == 1
    assert result.stdout == ""
    told = "has no complete prefill step; it has 3 complete steps: 3 decode. Use --phase decode"
    assert result.stderr.splitlines() == [f"Error: {trace}: {told}"]


def test_a_mean_over_different_phases_says_so() -> None:
    decode_only = CliRunner().invoke(cli, ["hotspots", str(MOE), "--no-cache"])
    assert "different phases" not in decode_only.stdout
    mixed = CASES / "201_vllm_native.json.gz"
    result = CliRunner().invoke(cli, ["hotspots", str(mixed), "--no-cache"])
    assert "different phases" in " ".join(result.stdout.split())


def test_a_kernel_of_several_roles_is_not_shown_without_one() -> None:
    result = CliRunner().invoke(cli, ["hotspots", str(MOE), "--no-cache"])
    assert "several" in result.stdout


def test_stderr_may_be_closed(trace) -> None:
    command = [sys.executable, "-m", "traceanalyzer", "ingest", str(trace), "--no-cache", "--json"]
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", *command], stdout=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["status"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_help_that_cannot_be_printed_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "traceanalyzer", "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "no space left" in done.stderr


def test_a_lack_of_memory_is_one_line(trace, monkeypatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("traceanalyzer.trace.open_traces", refuse)
    result = CliRunner().invoke(cli, ["hotspots", str(trace)])
    assert result.exit_code == 1
    assert result.output == "Error: not enough memory\n"


def test_sigterm_leaves_as_an_error_does(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys, pathlib, traceanalyzer.cli.main as main\n"
        "def run():\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        signal.pause()\n"
        "    finally:\n"
        f"        pathlib.Path({str(tmp_path / 'cleaned')!r}).touch()\n"
        "main.cli = run\n"
        "main.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert done.returncode == 143
    assert (tmp_path / "cleaned").exists()


@pytest.mark.parametrize("command", ["ingest", "hotspots", "blocks", "idle", "roofline"])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_lines_in_a_pipe_end_without_blanks(command, encoding, trace) -> None:
    result = in_process(command, trace, PYTHONIOENCODING=encoding)
    assert result.returncode == 0, result.stderr
    assert result.stdout
    assert [line for line in result.stdout.splitlines() if line != line.rstrip()] == []


def test_a_pipe_that_nobody_reads_ends_quietly(trace) -> None:
    command = [sys.executable, "-m", "traceanalyzer", "hotspots", str(trace), "--no-cache", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0
