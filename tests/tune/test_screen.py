"""Compiling candidates in processes: what is late, interrupted or damaged."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from traceanalyzer.cli.main import cli
from traceanalyzer.commands.tune.compile import compilation, screen
from traceanalyzer.commands.tune.compile.compilation import CompileFacts
from traceanalyzer.hardware.assembly import Assembly, Instructions
from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.kernels.target import find_target
from traceanalyzer.workers import Worker

PROBLEM, TARGET = Problem(16, 64, 64), find_target("sm_90")
CONFIGS = (Config(16, 16, 32), Config(16, 32, 32), Config(16, 64, 32))
CODE = Instructions(matrix=1, vector=10)
FACTS = CompileFacts("dense_kernel", 1024, Assembly(64, 0, 0, 0, CODE, CODE))


def test_a_compilation_that_takes_too_long_is_told_from_one_that_fails() -> None:
    compiled = screen.compile_all("dense", PROBLEM, TARGET, CONFIGS[:1], screen.Compiling(1, 0.01, None))
    assert compiled[CONFIGS[0]] == screen.NotCompiled("not compiled within 0.01 s", late=True)


def test_an_interrupted_screen_kills_what_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "compiling.py").write_text(
        "import time\nfrom traceanalyzer.workers import serve\ndef main(): serve(lambda question, _: time.sleep(60))\n"
    )
    workers: list[Worker] = []
    threads: list[threading.Thread] = []
    interrupted: list[bool] = []

    class Interrupted(threading.Thread):
        def start(self) -> None:
            threads.append(self)
            super().start()

        def join(self, timeout: float | None = None) -> None:
            if not interrupted:
                interrupted.append(True)
                while not all(worker.running for worker in workers):
                    time.sleep(0.01)
                raise KeyboardInterrupt
            super().join(timeout)

    def compiler(cache: Path | None, scratch: str) -> Worker:
        workers.append(Worker("compiling", environment={"PYTHONPATH": str(tmp_path)}))
        return workers[-1]

    monkeypatch.setattr(screen.threading, "Thread", Interrupted)
    monkeypatch.setattr(screen, "_compiler", compiler)
    with pytest.raises(KeyboardInterrupt):
        screen.compile_all("dense", PROBLEM, TARGET, CONFIGS, screen.Compiling(2, 60, None))
    assert [worker.starts for worker in workers] == [1, 1]
    assert not any(thread.is_alive() for thread in threads)


def test_a_damaged_cache_file_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "launch_key", lambda launch, target: "key")
    monkeypatch.setattr(compilation, "compile_launch", lambda launch, target: FACTS)
    question = {"kernel": "dense", "problem": PROBLEM.to_dict(), "config": CONFIGS[0].to_dict(), "target": "sm_90"}
    path = tmp_path / "key.json"
    for damaged in ('{"name": "den', "[1]", ""):
        path.write_text(damaged)
        assert compilation.answer(question, tmp_path) == {"facts": FACTS, "cached": False}
        assert compilation.answer(question, tmp_path) == {"facts": FACTS, "cached": True}


def screened(*arguments: str) -> dict[str, object]:
    words = ("tune", "screen", "--kernel", "dense", "--shape", "n=512,k=512", "--no-cache", *arguments)
    result = CliRunner().invoke(cli, [*words, "--json"])
    assert result.exit_code == 0, result.output
    document: dict[str, object] = json.loads(result.stdout)
    return document


@pytest.fixture
def _compiles_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        screen, "compile_all", lambda kernel, problem, target, configs, how: dict.fromkeys(configs, FACTS)
    )


@pytest.mark.usefixtures("_compiles_at_once")
def test_every_value_of_an_axis_is_screened_or_told_why_not() -> None:
    axes = ("--axis", "block_m=16,32", "--axis", "group_m=1,8", "--compile", "20")
    document = screened("--m", "16", "--target", "sm_90", *axes)
    candidates = document["candidates"]
    assert isinstance(candidates, list)
    assert {one["config"]["block_m"] for one in candidates} == {16, 32}, "32 rows too, although there are 16"
    assert document["not_tried"] == [
        {"value": "group_m=8", "reason": "group_m orders row tiles, and there is only one"}
    ]
    words = ["tune", "screen", "--kernel", "dense", "--shape", "n=512,k=512", "--m", "16", "--target", "sm_90", *axes]
    assert "group_m=8 is not tried: group_m orders row tiles" in CliRunner().invoke(cli, words).output


@pytest.mark.usefixtures("_compiles_at_once")
def test_the_screen_takes_a_gpu_of_the_users_own(tmp_path: Path) -> None:
    file = tmp_path / "gpus.toml"
    file.write_text('[[gpu]]\nname = "Thing"\nlike = "MI300X"\ncompute_units = 38\n')
    one = ("--config", "16x32x64")
    named = screened("--gpu", "Thing", "--gpu-file", str(file), *one)
    assert (named["gpu"], named["target_arch"]) == ("Thing", "gfx942")
    assert screened("--gpu-file", str(file), *one)["gpu"] == "Thing", "the only one of the file"


@pytest.mark.usefixtures("_compiles_at_once")
def test_rows_that_differ_in_their_group_show_it() -> None:
    words = ["tune", "screen", "--kernel", "dense", "--shape", "n=512,k=512", "--m", "64", "--target", "sm_90"]
    tiles = ["--config", "16x32x64,group_m=1", "--config", "16x32x64,group_m=8"]
    assert " group " in CliRunner().invoke(cli, [*words, *tiles]).output
    assert " group " not in CliRunner().invoke(cli, [*words, *tiles[:2]]).output
