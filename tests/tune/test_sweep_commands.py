"""The commands: one JSON document, one line for an input that cannot be used, and every command of the guide."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.places import CASES, ROOT, SWEEPS
from tests.support.stand_in_triton_kernels import install
from traceanalyzer.cli.main import cli

SEED = ROOT / "docs" / "data" / "strix_halo_sweep.log"
MOE = SWEEPS / "fused_moe.jsonl"
CASE = CASES / "510_moe_cfg"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["tune", *map(str, arguments)])


def document(*arguments: object) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    parsed: dict[str, Any] = json.loads(result.stdout)
    return parsed


def test_import_gives_the_contracts_points() -> None:
    points = document("import", SEED, "--top-k", 4)["points"]
    assert len(points) == 48
    assert points[0]["m"] == 4
    assert points[0]["concurrency"] == 1
    assert points[0]["samples_ms"] == [10.100704000000007]
    assert points[0]["median_ms"] == 10.100704000000007
    assert points[0]["config"]["num_warps"] is None


def test_import_converts_to_a_sweep_file(tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    points = document("import", SEED, "--top-k", 4, "--output", path)["points"]
    assert document("import", path)["points"] == points


def test_policy_gives_the_contracts_rules() -> None:
    found = document("policy", SEED, "--top-k", 4, "--max-regret", 0.15)
    assert found["rules"] == [
        {"min_m": 1, "max_m": 16, "config": {"block_m": 32, "block_n": 32, "block_k": 128, "split_k": 1}},
        {"min_m": 17, "max_m": None, "config": {"block_m": 16, "block_n": 128, "block_k": 128, "split_k": 1}},
    ]
    assert [entry["m"] for entry in found["regret"]] == [4, 8, 12, 16, 20, 24, 28, 32]
    assert set(found["regret"][0]) >= {"m", "chosen_ms", "best_ms", "regret"}


def test_replay_gives_the_contracts_numbers() -> None:
    found = document("replay", SEED, "--budget-share", 0.5, "--seeds", 3)
    assert (found["space"], found["evaluations"], found["seeds"]) == (48, 24, 3)
    assert {"median_regret", "p90_regret", "random_median_regret"} <= set(found)


def test_configs_counts_shapes_not_lines_and_says_what_does_not_match() -> None:
    wanted = json.loads((CASES / "expected.json").read_text(encoding="utf-8"))["cases"]["510_moe_cfg"]["values"]
    found = document("configs", CASE / "server.log", "--folder", CASE)
    assert found["log_lines"] == wanted["log_lines"]
    assert [missing["shape"] for missing in found["missing"]] == wanted["missing_configs"]
    assert [missing["lines"] for missing in found["missing"]] == [2, 1]
    (near,) = found["missing"][0]["near"]
    assert "N=384 does not match N=192 (tensor parallel size changed" in near["why"][0]
    assert found["missing"][1]["near"] == []
    assert "N=384 does not match N=192" in " ".join(
        run("configs", CASE / "server.log", "--folder", CASE).output.split()
    )


def test_configs_of_a_log_without_any(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text("INFO Using configuration from /x/E=8,N=64,device_name=GPU.json for MoE layer.\n")
    found = document("configs", path)
    assert (found["missing"], found["used"]) == ([], ["E=8,N=64,device_name=GPU.json"])
    assert "no missing configuration" in run("configs", path).output


def test_export_of_a_moe_file(tmp_path: Path) -> None:
    found = document("export", "vllm-moe", MOE, "--max-regret", 0.1, "--output", tmp_path)
    (path,) = map(Path, found["files"])
    assert path.name == "E=8,N=4096,device_name=Example_GPU.json"
    assert json.loads(path.read_text())["triton_version"] == "3.5.0"


def test_what_to_do_with_an_export_can_be_pasted_into_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "40")
    folder = "my configurations of a GPU with a long name"
    result = run("export", "vllm-moe", MOE, "--max-regret", 0.1, "--output", folder)
    assert f"\n  VLLM_TUNED_CONFIG_FOLDER=$PWD/'{folder}' vllm serve ...\n" in result.stdout
    made = document("export", "plugin", SEED, "--top-k", 4, "--vendor", "amd", "--output", "my rules")
    assert made["next"] == ["pip install './my rules'", "PYTHONPATH=$PWD/'my rules' vllm serve ..."]
    install(tmp_path / "installed", "3.5.0")
    patch = ["export", "patch", SEED, "--top-k", 4, "--vendor", "amd", "--triton-kernels", tmp_path / "installed"]
    assert document(*patch, "--output", "my.patch")["next"] == ["patch -p1 -d / < my.patch"]
    assert document(*patch, "--output", "my rules.patch")["next"] == ["patch -p1 -d / < 'my rules.patch'"]


def test_export_refuses_what_the_kernels_cannot_be_told(tmp_path: Path) -> None:
    install(tmp_path, "3.5.0")
    arguments = ["export", "patch", SEED, "--top-k", 4, "--max-regret", 0.15, "--triton-kernels", tmp_path]
    result = run(*arguments, "--vendor", "nvidia")
    assert result.exit_code == 1
    assert "block_n" in result.stderr
    kept = run(*arguments, "--vendor", "nvidia", "--leave-out", "block_n")
    assert kept.exit_code == 0
    assert "+        constraints.update(block_m=32, block_k=128, split_k=1)" in kept.stdout
    assert run(*arguments).exit_code == 2
    without_rows = run("export", "patch", SEED, "--triton-kernels", tmp_path, "--vendor", "amd")
    assert "pass --top-k" in without_rows.stderr
    plugin = run("export", "plugin", SEED, "--top-k", 4, "--vendor", "nvidia", "--output", tmp_path / "plugin")
    assert plugin.exit_code == 1
    assert not (tmp_path / "plugin").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("import", "missing.log"),
        ("policy", "README"),
        ("replay", "README"),
        ("configs", "missing.log"),
        ("policy", CASE / "server.log"),
        ("policy", SEED, "--where", "kernel=other"),
        ("export", "vllm-moe", SEED, "--top-k", "4", "--output", "out"),
    ],
)
def test_an_input_that_cannot_be_used_ends_in_one_line(
    arguments: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("README").write_text("not a sweep")
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert len([line for line in result.stderr.splitlines() if line.startswith("Error: ")]) == 1
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [("policy", SEED, "--where", "nonsense"), ("policy", SEED, "--max-regret", "-1"), ("replay", SEED, "--seeds", "0")],
)
def test_a_usage_error_is_status_2(arguments: tuple[object, ...]) -> None:
    assert run(*arguments).exit_code == 2


def commands() -> list[str]:
    text = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def test_every_command_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(SEED, "sweep.log")
    shutil.copy(MOE, "fused_moe.jsonl")
    shutil.copy(CASE / "server.log", "server.log")
    install(tmp_path / "site-packages", "3.5.0")
    told = commands()
    assert len(told) >= 7
    for line in told:
        command, _, target = line.partition(" > ")
        result = CliRunner().invoke(cli, shlex.split(command)[1:])
        assert result.exit_code == 0, (line, result.output)
        if target:
            Path(target).write_text(result.stdout, encoding="utf-8")
    assert Path("tile-rules/vllm_tile_rules/rules.json").exists()
    assert Path("configs/E=8,N=4096,device_name=Example_GPU.json").exists()
    assert "+    if m <= 16:" in Path("rules.patch").read_text()


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"block_m": -16}, "block_m must be a power of two, not -16"),
        ({"block_n": 48}, "block_n must be a power of two, not 48"),
        ({"block_m": "16; import os"}, "block_m must be a power of two"),
        ({"block_m": True}, "block_m must be a power of two"),
        ({"split_k": 0}, "split_k must be a positive whole number, not 0"),
        ({"waves_per_eu": -1}, "waves_per_eu must be a whole number, 0 or larger"),
    ],
)
def test_rules_that_no_kernel_could_follow_are_not_exported(
    tmp_path: Path, config: dict[str, object], words: str
) -> None:
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"rules": [{"min_m": 1, "max_m": None, "config": config}]}))
    result = run("export", "plugin", path, "--vendor", "amd", "--output", tmp_path / "plugin")
    assert result.exit_code == 1
    assert words in result.stderr
    assert not (tmp_path / "plugin").exists()


def test_rules_written_by_hand_need_no_schema(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"rules": [{"min_m": 1, "max_m": None, "config": {"block_m": 16}}], "device": [1]}))
    result = run("export", "plugin", path, "--vendor", "amd", "--output", tmp_path / "plugin")
    assert result.exit_code == 0, result.output


def test_a_file_of_configurations_without_timings_is_not_called_failed() -> None:
    result = run("import", next(CASE.glob("E=*.json")))
    assert "not timed" in result.stdout
    assert "failed" not in result.stdout


LONG = "9" * 400
SWEEP_LINE = '{"schema": "traceanalyzer/sweep/1", "kernel": "dense", "shape": {"m": 1}, "config": {}, "round": 0, '


@pytest.mark.parametrize(
    ("name", "line", "reason"),
    [
        ("sample.jsonl", SWEEP_LINE + f'"samples_ms": [{LONG}]}}', "larger than any time"),
        ("sample.log", f"conc=1 bm=16 bn=32 bk=128 sk=1 median=10.1 ms samples=[{LONG}]", "cannot be read"),
        ("tile.log", f"conc=1 bm=16 bn=32 bk={LONG} median=10.1 ms", ""),
    ],
)
def test_an_impossible_line_is_one_line_of_error(name: str, line: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(line + "\n", encoding="utf-8")
    result = run("import", path)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {path}: ")
    assert reason in result.stderr
    assert "internal error" not in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_line_nested_too_deeply_is_skipped_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    path.write_text(SWEEP_LINE + '"samples_ms": [1.5]}\n' + "[" * 100_000 + "\n", encoding="utf-8")
    result = run("import", path)
    assert result.exit_code == 0, result.output
    assert "line skipped: not JSON" in result.stderr
