"""The tune commands as a user meets them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from traceanalyzer.cli.main import cli
from traceanalyzer.commands.tune.formats import read_sweep
from traceanalyzer.commands.tune.spec_text import parse_axes, parse_config, parse_counts, parse_problem


def tune(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["tune", *arguments])


DENSE = ("--kernel", "dense", "--shape", "n=64,k=64")
GATE_UP = ("--kernel", "moe_gate_up", "--shape", "gpt-oss-20b")


@pytest.mark.parametrize("command", ["import", "run", "screen", "verify"])
def test_every_command_has_help(command: str) -> None:
    result = tune(command, "--help")
    assert result.exit_code == 0
    assert "--json" in result.output


def test_help_imports_neither_torch_nor_triton() -> None:
    script = (
        "import sys; from click.testing import CliRunner; from traceanalyzer.cli.main import cli\n"
        "for name in ('screen', 'run', 'verify', 'import'): CliRunner().invoke(cli, ['tune', name, '--help'])\n"
        "print(sorted({'torch', 'triton', 'polars', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("screen", *DENSE, "--target", "sm_42"), "unknown architecture"),
        (("screen", *DENSE), "an architecture or a GPU is needed"),
        (("screen", "--kernel", "dense", "--shape", "llama-9", "--target", "sm_90"), "unknown shape"),
        (("screen", "--kernel", "moe_down", "--shape", "n=64,k=64", "--target", "sm_90"), "needs experts"),
        (("screen", *DENSE, "--target", "sm_90", "--axis", "block_q=1"), "an axis is written"),
        (("screen", *DENSE, "--target", "sm_90", "--config", "16"), "begins with its tile"),
        (("screen", *DENSE, "--target", "sm_90", "--axis", "waves_per_eu=2"), "mean something to AMD's compiler only"),
        (("screen", *DENSE, "--target", "sm_90", "--config", "16x16x64,waves_per_eu=2"), "AMD's compiler only"),
        (("screen", *DENSE, "--target", "sm_90", "--m", "0"), "--m"),
        (("screen", "--kernel", "softmax", "--shape", "n=1,k=1", "--target", "sm_90"), "'softmax' is not one of"),
        (("run", *DENSE, "--m", "4", "--concurrency", "2"), "not both"),
        (("run", *DENSE, "--m", "4-2"), "'4-2'"),
        (("run", *GATE_UP, "--concurrency", "2", "--routing", "1,2"), "names 2 experts"),
        (("run", *GATE_UP, "--m", "5"), "whole number of tokens"),
        (("verify", *DENSE, "--before", "16x16x64", "--after", "16x16x64x1"), "same configuration"),
        (("verify", *DENSE, "--before", "16x16x60", "--after", "16x16x64"), "power of two"),
    ],
)
def test_wrong_words_are_usage_errors_that_say_what_is_wrong(arguments: tuple[str, ...], words: str) -> None:
    result = tune(*arguments)
    assert result.exit_code == 2, result.output
    assert words in " ".join(result.output.split())


def test_a_run_without_a_gpu_points_to_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "")
    result = tune("run", *DENSE)
    assert result.exit_code == 1
    assert "no GPU" in result.output
    assert "tune screen" in result.output


@pytest.mark.parametrize("backend", ["triton_kernels", "fused_moe"])
def test_a_backend_that_is_not_installed_is_told(backend: str) -> None:
    kernel = GATE_UP if backend == "triton_kernels" else ("--kernel", "fused_moe", "--shape", "mixtral-8x7b")
    result = tune("run", *kernel, "--backend", backend, "--device", "interpret")
    assert result.exit_code == 1
    assert "GPU only" in result.output


def test_the_interpreter_runs_everything_and_is_marked_as_no_measurement(tmp_path: Path) -> None:
    sweep = tmp_path / "sweep.jsonl"
    options = ("--device", "interpret", "--rounds", "1", "--samples", "1", "--m", "8")
    tiles = ("--config", "16x32x64", "--config", "16x16x64,num_warps=2")
    result = tune("run", *GATE_UP, *options, *tiles, "--output", str(sweep), "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["schema"] == "traceanalyzer/tune-run/1"
    assert document["measured"] is False
    assert document["device"]["name"] == "Triton interpreter"
    results = document["problems"][0]["results"]
    assert [found["verdict"] for found in results] in (["best", "unclear"], ["best", "dropped"])
    assert document["problems"][0]["problem"]["k"] == 128, "cut to what the interpreter can do"
    points = read_sweep(sweep).points
    assert [point.measured for point in points] == [False, False]
    again = tune("run", *GATE_UP, *options, *tiles, "--output", str(sweep))
    assert again.exit_code == 0, again.output
    assert "no measurement" in again.output
    assert "BEST 2 {'bm': 16" in again.output
    lines = [line for line in again.output.splitlines() if line.startswith("conc=2 bm=16")]
    assert len(lines) == 2
    assert all(line.endswith("]") for line in lines), "a line is never wrapped"
    log = tmp_path / "log"
    log.write_text("\n".join(lines) + "\n")
    assert [point.median_ms for point in read_sweep(log).points] == [point.median_ms for point in points]


def test_verify_in_the_interpreter_gives_one_document() -> None:
    options = ("--device", "interpret", "--rounds", "1", "--samples", "1", "--m", "4")
    result = tune("verify", *DENSE, *options, "--before", "16x32x32", "--after", "16x16x64", "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["measured"] is False
    assert document["problems"][0]["verdict"] == "unclear", "one round proves nothing"
    assert document["problems"][0]["ratio"] > 0


def test_the_screen_ranks_and_explains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tiles = ("--config", "16x32x64,num_warps=1,num_stages=2", "--config", "64x64x256,num_warps=4,num_stages=4")
    arguments = ("screen", "--kernel", "dense", "--shape", "n=512,k=512", "--target", "gfx942", *tiles)
    result = tune(*arguments, "--json", "--jobs", "1")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["target_arch"] == "gfx942"
    first, last = document["candidates"]
    assert (first["rank"], first["fits"], first["spills"], first["reason"]) == (1, True, 0, None)
    assert {"config", "registers", "shared_bytes", "work_ratio"} <= set(first)
    assert (last["rank"], last["fits"]) == (None, False)
    assert last["reason"]
    assert list((tmp_path / "traceanalyzer" / "compiled").glob("*.json")), "compiled candidates are kept"
    table = tune(*arguments, "--jobs", "1")
    assert "16x32x64x1" in table.output
    assert "cannot run: 64x64x256x1" in table.output
    assert "not a measurement" in table.output


def test_import_reads_what_the_contract_says(shared: Path) -> None:
    result = tune("import", str(shared / "data" / "tuner" / "strix_halo_sweep.log"), "--top-k", "4", "--json")
    assert result.exit_code == 0, result.output
    points = json.loads(result.stdout)["points"]
    assert len(points) == 48
    assert points[0]["m"] == 4
    assert points[0]["concurrency"] == 1
    assert points[0]["config"]["num_warps"] is None, "the log does not say it"
    assert points[0]["median_ms"] == points[0]["samples_ms"][0]


def test_import_of_something_else_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_text("nothing\n")
    result = tune("import", str(path))
    assert result.exit_code == 1
    assert str(path) in result.output
    assert "Traceback" not in result.output


def test_problems_configs_axes_and_counts_are_read_as_written() -> None:
    assert parse_problem("n=64,k=32,experts=8,top_k=2", {}).m == 2, "one token"
    assert parse_problem("m=4,n=64,k=32", {}, "fp16").dtype == "fp16"
    assert parse_config("16x32x64x2, num_warps=8,group_m=4").label == "16x32x64x2 warps=8 stages=2 group=4"
    assert parse_axes(["num_warps=2,8", "waves_per_eu=none,2"]) == {"num_warps": (2, 8), "waves_per_eu": (None, 2)}
    assert parse_counts("1,4-6,5") == (1, 4, 5, 6)
    for wrong in ("0", "a", "1-", "3-1", "", "1-999999999"):
        with pytest.raises(ValueError, match=r".+"):
            parse_counts(wrong)


def test_the_worker_is_not_run_with_the_interpreter_left_on() -> None:
    assert "TRITON_INTERPRET" not in os.environ
