"""``tune plan`` as users and programs meet it: the contract, and commands that can be run as they are."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest
from click.testing import CliRunner

from synthetic.models import gptoss_20b_decode, llama_decode
from tests.support.places import ROOT
from tests.support.plan_traces import MOE_CONFIG, fused_moe
from traceanalyzer.cli.main import cli
from traceanalyzer.cli.request_options import given_gpu
from traceanalyzer.commands.tune.compile.device import device_of
from traceanalyzer.commands.tune.spec_text import candidates_of, problems_to_measure, routing_draws, space_of

Save = Callable[..., Path]
SCHEMA = ROOT / "docs" / "schemas" / "tune-plan.json"
CONTRACT = {
    "kernel", "role", "m", "n", "k", "experts", "top_k", "dtypes", "tile", "num_warps", "measured_us", "floor_us",
    "worth_us_per_step", "worth_tpot_percent",
}  # fmt: skip


def plan(*arguments: str) -> Any:
    result = CliRunner().invoke(cli, ["tune", "plan", *arguments, "--no-cache", "--json"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    jsonschema.validate(document, json.loads(SCHEMA.read_text(encoding="utf-8")))
    return document


def parsed(command: str) -> tuple[str, dict[str, Any]]:
    """Parse a command of a plan with the options that it really has, without running it."""
    words = shlex.split(command)
    assert words[0] == "traceanalyzer"
    group: click.Command = cli
    context = click.Context(cli)
    rest = words[1:]
    while isinstance(group, click.Group):
        found = group.get_command(context, rest[0])
        assert found is not None, command
        group, rest = found, rest[1:]
    made = group.make_context(group.name, list(rest))
    return str(group.name), made.params


def check_commands(document: Any) -> list[str]:
    """Parse every command to run next, and the shapes and rows that they name."""
    names = []
    for command in document["next"]:
        name, options = parsed(command)
        names.append(name)
        if name == "run":
            problems = problems_to_measure(
                options["kernel"], options["shape"], options["dtype"], "gpu", options["m_text"], options["concurrency"]
            )
            assert [problem.m for problem in problems][: len(document["target"]["m"])] == document["target"]["m"]
            routing_draws(problems, options["routings"])
        if name == "screen":
            (problem,) = problems_to_measure(
                options["kernel"], options["shape"], options["dtype"], "gpu", str(options["m"]), None
            )
            device = device_of(None, given_gpu(options["gpu"], options["gpu_file"]))
            pool = candidates_of(space_of(options["kernel"]), problem, device.target, options["axis_texts"], ())
            assert pool.configs
            assert not pool.untried
    return names


def test_the_samples_plan_can_be_followed(samples: Path) -> None:
    document = plan(str(samples / "gptoss20b_decode_synthetic.json.gz"))
    assert set(document["target"]) >= CONTRACT
    assert document["target"]["kernel"] == "_matmul_ogs_NNT_bf16xbf16xmxfp4_32x256x128x1_swiglu"
    assert document["target"]["m"][0] == 4
    assert check_commands(document) == ["screen", "run", "policy", "verify"]


def test_the_real_traces_keep_the_contract(shared: Path) -> None:
    document = plan(str(shared / "traces/gpu/gptoss20b_vllm_decode_mi300x.json.gz"))
    target = document["target"]
    assert (target["n"], target["k"], target["experts"], target["top_k"]) == (2880, 2880, 32, 4)
    assert target["dtypes"] == {"output": "bf16", "activation": "bf16", "weight": "mxfp4"}
    assert target["tile"] == "16x128x256"
    assert target["worth_tpot_percent"] == pytest.approx(29.1, abs=0.1)
    assert check_commands(document) == ["screen", "run", "policy", "verify"]
    for path in ("qwen3_8b_sglang_decode_mi300x.json.gz", "qwen1.5_0.5b_hf_h100.json.gz"):
        unknown = plan(str(shared / "traces/gpu" / path))
        assert unknown["target"] is None
        assert unknown["reason"]
        assert unknown["refused"]
        assert check_commands(unknown)


def test_a_missing_model_is_asked_for_in_a_command_that_runs(shared: Path) -> None:
    path = str(shared / "traces/gpu/qwen3_8b_sglang_decode_mi300x.json.gz")
    commands = plan(path)["next"]
    assert f"traceanalyzer tune plan {path} --model Qwen/Qwen3-8B" in commands
    again = plan(*shlex.split(commands[-1])[3:])
    assert again["target"]["role"] == "gate_up"
    assert check_commands(again) == ["verify"], "nothing here tunes hipBLASLt"
    assert "TunableOp" in again["target"]["knob"]


@pytest.mark.parametrize("ep", [1, 2, 8])
def test_commands_hold_for_every_layout(save: Save, tmp_path: Path, ep: int) -> None:
    spec = replace(gptoss_20b_decode("cuda", batch=3), world_size=max(ep, 1))
    document = plan(str(save(spec)), "--model", "gpt-oss-20b", "--tp", str(ep), "--ep", str(ep))
    target = document["target"]
    assert target["experts"] == 32 // ep
    _, options = parsed(next(command for command in document["next"] if "tune run" in command))
    (problem,) = problems_to_measure(options["kernel"], options["shape"], None, "gpu", options["m_text"], None)
    assert problem.experts == 32 // ep
    assert problem.m >= target["m"][0] > problem.m - (problem.top_k or 1)


@pytest.mark.parametrize("tp", [4, 8])
def test_thin_ranks_are_tuned_at_the_size_that_mxfp4_is_padded_to(save: Save, tp: int) -> None:
    spec = replace(gptoss_20b_decode("cuda", batch=3), world_size=tp)
    document = plan(str(save(spec)), "--model", "gpt-oss-20b", "--tp", str(tp))
    target = document["target"]
    assert target["n"] == 2 * 2880 // tp
    assert target["executed_n"] % 128 == 0
    assert "run" in check_commands(document)


def test_fused_moe_is_run_but_not_screened(save: Save, tmp_path: Path) -> None:
    config = tmp_path / "my model" / "config.json"
    config.parent.mkdir()
    config.write_text(json.dumps(MOE_CONFIG))
    document = plan(str(save(replace(gptoss_20b_decode("cuda", batch=4), model=fused_moe()))), "--model", str(config))
    assert check_commands(document) == ["run", "policy", "verify"]
    assert document["target"]["tile"] is None, "the name holds none"


def test_the_triton_cache_adds_tile_warps_and_spills(save: Save, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    home = cache / "H0"
    home.mkdir(parents=True)
    name = "_matmul_ogs_NNT_bf16xbf16xmxfp4_32x256x128x1_swiglu"
    facts = {"name": name, "num_warps": 4, "num_stages": 2, "shared": 65536, "warp_size": 32,
             "target": {"backend": "hip", "arch": "gfx1151", "warp_size": 32}}  # fmt: skip
    (home / f"{name}.json").write_text(json.dumps(facts))
    (home / f"{name}.amdgcn").write_text(
        "  .vgpr_count:     256\n    .vgpr_spill_count: 1215\n    .private_segment_fixed_size: 4860\n"
    )
    path = str(save(gptoss_20b_decode()))
    target = plan(path, "--triton-cache", str(cache))["target"]
    assert (target["kernel"], target["num_warps"], target["spills"]) == (name, 4, 1215)
    assert (
        "1215 registers spilled"
        in CliRunner().invoke(cli, ["tune", "plan", path, "--no-cache", "--triton-cache", str(cache)]).output
    )


def test_what_the_user_stated_is_kept_in_the_commands(save: Save, shared: Path) -> None:
    path = str(shared / "traces/gpu/qwen3_8b_sglang_decode_mi300x.json.gz")
    document = plan(path, "--tp", "1", "--phase", "decode")
    assert all("--tp 1" in command and "--phase decode" in command for command in document["next"])
    assert check_commands(document)
    target = plan(str(save(gptoss_20b_decode())), "--rank", "0", "--tp", "1")
    assert target["next"][-1].endswith("AFTER.json.gz --rank 0")
    assert check_commands(target)


def test_the_servers_padding_and_grouping_are_in_the_commands(samples: Path) -> None:
    document = plan(str(samples / "gptoss20b_decode_synthetic.json.gz"))
    for command in document["next"][:2]:
        assert "n=5888,k=2944" in command
        assert "--axis group_m=4" in command, "half as many candidates, none of them alike to the screen"


def test_a_gpu_of_the_users_own_is_told_to_every_command_that_needs_it(save: Save, tmp_path: Path) -> None:
    file = tmp_path / "my gpus.toml"
    file.write_text('[[gpu]]\nname = "My GPU"\nlike = "MI300X"\n')
    document = plan(str(save(gptoss_20b_decode())), "--gpu-file", str(file))
    for command in document["next"][:2]:
        assert shlex.join(["--gpu", "My GPU", "--gpu-file", str(file)]) in command
    assert check_commands(document) == ["screen", "run", "policy", "verify"]


@pytest.mark.parametrize("width", [40, 60, 77, 100])
def test_no_figure_is_parted_from_its_unit(samples: Path, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    arguments = ["tune", "plan", str(samples / "gptoss20b_decode_synthetic.json.gz"), "--no-cache"]
    lines = CliRunner().invoke(cli, arguments).stdout.partition("\nNext")[0].splitlines()
    for line, following in pairwise(lines):
        assert not (line.rstrip()[-1:].isdigit() and re.match(r"\s*(ms|µs|s|%)\b", following)), f"{line}\n{following}"


def test_refused_kernels_of_like_names_are_told_apart(samples: Path) -> None:
    path = str(samples / "gptoss20b_decode_synthetic.json.gz")
    lines = CliRunner().invoke(cli, ["tune", "plan", path, "--no-cache"]).stdout.splitlines()
    refused = [line.strip() for line in lines if "Cijk_" in line]
    assert [line.partition(",")[0] for line in refused] == ["lm_head", "qkv_proj", "o_proj"]
    assert all(", tile " in line and len(line) <= 98 for line in refused)


def test_people_read_what_to_tune_and_whole_commands(samples: Path) -> None:
    result = CliRunner().invoke(
        cli, ["tune", "plan", str(samples / "gptoss20b_decode_synthetic.json.gz"), "--no-cache"]
    )
    assert result.exit_code == 0
    assert result.stdout.startswith("Tune _matmul_ogs")
    assert "of TPOT" in result.stdout
    run = next(line for line in result.stdout.splitlines() if "tune run" in line)
    assert run.endswith("moe_gate_up.jsonl")


def test_wrong_words_are_usage_errors(samples: Path) -> None:
    path = str(samples / "gptoss20b_decode_synthetic.json.gz")
    for words, told in (
        (("--model", "no-such-model"), "no-such-model"),
        (("--gpu", "no-such-gpu"), "no-such-gpu"),
        (("--tp", "7"), "tp = 7"),
    ):
        result = CliRunner().invoke(cli, ["tune", "plan", path, "--no-cache", *words])
        assert result.exit_code == 2, words
        assert told in " ".join(result.output.split())


def test_a_hostile_kernel_name_does_not_reach_the_terminal(save: Save) -> None:
    spec = llama_decode(layers=4)
    layers = tuple(
        replace(
            layer,
            kernels=tuple(
                replace(k, name="evil\x1b[2J\u202egemm_kernel") if k.role == "down" else k for k in layer.kernels
            ),
        )
        for layer in spec.model.layers
    )
    result = CliRunner().invoke(
        cli, ["tune", "plan", str(save(replace(spec, model=replace(spec.model, layers=layers)))), "--no-cache"]
    )
    assert result.exit_code == 0
    assert "\x1b" not in result.output
    assert "\u202e" not in result.output
