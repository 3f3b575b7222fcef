"""What SECURITY.md says of the code, and what of it has no test elsewhere."""

from __future__ import annotations

import ast
import functools
import json
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from synthetic import generate, write
from synthetic.models import llama_decode
from tests.support.places import ROOT
from traceanalyzer.cli.main import cli
from traceanalyzer.read.scratch import Scratch

NEVER_IMPORTED = {
    "pickle",
    "marshal",
    "shelve",
    "dill",
    "cloudpickle",
    "joblib",
    "yaml",
    "ctypes",
    "runpy",
    "telnetlib",
}
NEVER_CALLED = {"eval", "exec", "compile"}
NEVER_METHODS = {"system", "popen", "mktemp", "extractall", "execv", "execvp", "spawnv", "fork"}
STARTS_PROCESSES = {
    "workers.py",
    "commands/tune/compile/compilation.py",
}
CALLS_THE_C_LIBRARY = {("workers.py", "ctypes")}
"""prctl, so that a worker does not outlive what started it."""
USES_NETWORK = {"commands/capture/http.py", "commands/capture/load.py", "read/remote.py"}


@functools.cache
def trees() -> dict[str, ast.Module]:
    package = ROOT / "traceanalyzer"
    folders = (package, ROOT / "kernels")
    paths = {path.relative_to(folder).as_posix(): path for folder in folders for path in folder.rglob("*.py")}
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in paths.items()}


def imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def calls() -> Iterator[tuple[str, ast.Call]]:
    for name, tree in trees().items():
        yield from ((name, node) for node in ast.walk(tree) if isinstance(node, ast.Call))


def importers(*modules: str) -> set[str]:
    return {name for name, tree in trees().items() for one in imports(tree) if one.startswith(modules)}


def test_nothing_can_unpickle_or_evaluate() -> None:
    assert len(trees()) > 300
    assert {(name, one) for name, tree in trees().items() for one in imports(tree)
            if one.partition(".")[0] in NEVER_IMPORTED} == CALLS_THE_C_LIBRARY  # fmt: skip
    called = {(name, node.func.id) for name, node in calls() if isinstance(node.func, ast.Name)}
    assert {(name, one) for name, one in called if one in NEVER_CALLED} == set()
    methods = {(name, node.func.attr) for name, node in calls() if isinstance(node.func, ast.Attribute)}
    assert {(name, one) for name, one in methods if one in NEVER_METHODS} == set()


def test_processes_and_connections_are_started_where_it_is_said_and_never_by_a_shell() -> None:
    assert importers("subprocess", "multiprocessing", "pty") == STARTS_PROCESSES
    assert importers("socket", "http", "urllib.request", "requests", "aiohttp", "ftplib", "smtplib") == USES_NETWORK
    assert [name for name, node in calls() for word in node.keywords if word.arg == "shell"] == []


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Return a trace whose kernel names are an address, an escape sequence, and text written from right to left."""
    path = write(generate(llama_decode(layers=2, steps=3)), tmp_path / "hostile.json")
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    kernels = [event for event in document["traceEvents"] if event.get("cat") == "kernel"]
    for kernel, name in zip(kernels, ("http://127.0.0.1:9/x.js", "\x1b[31mred\x07", "\u202egnirts"), strict=False):
        kernel["name"] = name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_no_command_on_a_trace_opens_a_connection(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for command in (["ingest"], ["hotspots"], ["idle"], ["roofline"], ["report", "-o", str(tmp_path / "r.html")]):
        result = CliRunner().invoke(cli, [command[0], str(hostile), "--no-cache", *command[1:]])
        assert result.exit_code == 0, result.output


def test_names_cannot_steer_the_terminal(hostile: Path) -> None:
    result = CliRunner().invoke(cli, ["hotspots", str(hostile), "--limit", "0", "--no-cache"])
    assert result.exit_code == 0, result.output
    assert "\\x1b[31mred\\x07" in result.stdout
    assert "\\u202egnirts" in result.stdout
    assert not {"\x1b", "\x07", "\u202e"} & set(result.output)


def test_temporary_directories_are_their_owners_only(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    try:
        assert stat.S_IMODE(scratch.path.stat().st_mode) == 0o700
        assert stat.S_IMODE(scratch.publish(tmp_path / "entry").stat().st_mode) == 0o700
    finally:
        scratch.discard()
