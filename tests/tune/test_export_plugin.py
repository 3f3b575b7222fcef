"""The plugin applies its rules inside a process like vLLM's, says so, and never stands in the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.places import ROOT
from tests.support.stand_in_triton_kernels import install
from traceanalyzer.commands.tune.export.plugin import ENTRY_POINT_GROUP, plugin_files, write_plugin
from traceanalyzer.commands.tune.formats import read_sweep
from traceanalyzer.commands.tune.policy.compute import Policy, Rule, make_policy
from traceanalyzer.commands.tune.tile_config import TileConfig
from traceanalyzer.problems import TraceError

SEED = ROOT / "docs" / "data" / "strix_halo_sweep.log"

# What a vLLM process does: load the plugins of the group, import the kernels, ask for flags.
PROCESS = """
import importlib, json, logging, sys
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
from importlib.metadata import entry_points
asked = json.loads(sys.argv[1])
def load():
    for entry in entry_points(group="vllm.general_plugins"):
        entry.load()()
if not asked.get("late"):
    load()
answers = []
if asked["module"]:
    module = importlib.import_module(asked["module"])
    if asked.get("late"):
        load()
        load()
    module.update_opt_flags_constraints(asked.get("fixed", {}))
    for vendor, m, block_k in asked["calls"]:
        flags = module.make_opt_flags(vendor, m, block_k)
        answers.append([flags.block_m, flags.block_n, flags.block_k, flags.split_k, flags.num_warps])
print(json.dumps(answers))
"""

OGS = "triton_kernels.matmul_ogs_details.opt_flags"


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    policy = make_policy(read_sweep(SEED, top_k=4), 0.15)
    write_plugin(tmp_path / "plugin", plugin_files(policy))
    return tmp_path / "plugin"


def run(folders: list[Path], module: str | None, calls: list[Any], **more: Any) -> tuple[list[list[int]], str]:
    asked = json.dumps({"module": module, "calls": calls, **more})
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    done = subprocess.run(
        [sys.executable, "-c", PROCESS, asked],
        env=environment,
        text=True,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    answers: list[list[int]] = json.loads(done.stdout)
    return answers, done.stderr


@pytest.mark.parametrize(
    ("version", "home"),
    [("3.5.0", "triton_kernels"), ("newer", "triton_kernels"), ("3.5.0", "vllm.third_party.triton_kernels")],
)
@pytest.mark.parametrize("late", [False, True], ids=["plugin first", "kernels first"])
def test_rules_are_applied_by_m_and_logged(plugin: Path, tmp_path: Path, version: str, home: str, late: bool) -> None:
    install(tmp_path / "site", version, home)
    module = f"{home}.{'matmul_ogs_details' if version == '3.5.0' else 'matmul_details'}.opt_flags"
    answers, log = run(
        [plugin, tmp_path / "site"], module, [["amd", 4, None], ["amd", 16, None], ["amd", 17, None]], late=late
    )
    assert [answer[:4] for answer in answers] == [[32, 32, 128, 1], [32, 32, 128, 1], [16, 128, 128, 1]]
    assert "INFO vllm.vllm_tile_rules tile rules active for amd: 2 rules in" in log
    assert log.count("tile rules active for amd") == 1
    assert "m = 1 to 16 now takes" in log


def test_nvidia_is_left_alone_with_the_reason(plugin: Path, tmp_path: Path) -> None:
    install(tmp_path / "site", "3.5.0")
    answers, log = run([plugin, tmp_path / "site"], OGS, [["nvidia", 4, None]])
    assert answers == [[64, 128, 128, 1, 2]]
    assert "not active for nvidia" in log
    assert "cannot set block_n" in log


def test_without_triton_kernels_the_log_says_so(plugin: Path) -> None:
    _, log = run([plugin], None, [])
    assert "WARNING vllm.vllm_tile_rules tile rules not active: this vLLM has no triton_kernels" in log


def test_what_a_call_demands_and_what_vllm_has_fixed_is_kept(plugin: Path, tmp_path: Path) -> None:
    install(tmp_path / "site", "3.5.0")
    calls = [["amd", 4, 64], ["amd", 4, None]]
    answers, log = run([plugin, tmp_path / "site"], OGS, calls, fixed={"split_k": 2, "block_m": 128})
    assert answers[0] == [32, 32, 64, 2, 2]
    assert answers[1] == [32, 32, 128, 2, 2]
    assert "split_k stays as vLLM has fixed it" in log


def test_a_rule_that_fails_leaves_the_default(tmp_path: Path) -> None:
    policy = Policy((Rule(1, None, TileConfig({"block_m": 16, "split_k": 4, "fused_scatter": True})),))
    write_plugin(tmp_path / "plugin", plugin_files(policy))
    install(tmp_path / "site", "3.5.0")
    answers, log = run([tmp_path / "plugin", tmp_path / "site"], OGS, [["amd", 4, None]] * 3)
    assert answers == [[64, 256, 128, 1, 2]] * 3
    assert log.count("a rule could not be applied (ValueError: Not supported)") == 1


def test_num_warps_is_set_on_amd_also_where_it_is_no_constraint(tmp_path: Path) -> None:
    rule = Rule(1, None, TileConfig({"block_m": 16, "num_warps": 4, "group_m": 1, "waves_per_eu": 2}))
    write_plugin(tmp_path / "plugin", plugin_files(Policy((rule,))))
    install(tmp_path / "site", "3.5.0")
    answers, log = run([tmp_path / "plugin", tmp_path / "site"], OGS, [["amd", 4, None], ["nvidia", 4, None]])
    assert answers == [[16, 256, 128, 1, 4], [64, 128, 128, 1, 2]]
    assert "cannot set group_m, num_warps, waves_per_eu" in log


@pytest.mark.parametrize(
    "text", ["", "{}", '{"rules": []}', '{"rules": [{"min_m": 2, "max_m": null, "config": {"a": 1}}]}']
)
def test_broken_rules_do_not_break_the_start(plugin: Path, tmp_path: Path, text: str) -> None:
    (plugin / "vllm_tile_rules" / "rules.json").write_text(text, encoding="utf-8")
    install(tmp_path / "site", "3.5.0")
    answers, log = run([plugin, tmp_path / "site"], OGS, [["amd", 4, None]])
    assert answers == [[64, 256, 128, 1, 2]]
    assert "tile rules not active: unexpected error" in log


def test_triton_kernels_of_an_unknown_kind_is_left_alone(plugin: Path, tmp_path: Path) -> None:
    path = install(tmp_path / "site", "3.5.0")
    path.write_text(path.read_text(encoding="utf-8").replace("constraints_supported", "allowed"), encoding="utf-8")
    answers, log = run([plugin, tmp_path / "site"], OGS, [["amd", 4, None]])
    assert answers == [[64, 256, 128, 1, 2]]
    assert "does not say which constraints it takes" in log


def test_the_package_names_its_entry_point(plugin: Path) -> None:
    text = (plugin / "pyproject.toml").read_text(encoding="utf-8")
    assert f'[project.entry-points."{ENTRY_POINT_GROUP}"]' in text
    assert 'vllm_tile_rules = "vllm_tile_rules:register"' in text
    assert "| 1 to 16 |" in (plugin / "README.md").read_text(encoding="utf-8")


def test_a_folder_with_other_files_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    files = plugin_files(Policy((Rule(1, None, TileConfig({"block_m": 16})),)))
    with pytest.raises(TraceError, match="holds other files"):
        write_plugin(tmp_path, files)
    with pytest.raises(TraceError, match="not a name for a module"):
        plugin_files(Policy((Rule(1, None, TileConfig({"block_m": 16})),)), "My-Rules")
