"""What a change of tile brought, end to end: whose the change is, and when nothing is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from synthetic import TraceSpec, decode_steps
from synthetic.models import gptoss_20b_decode
from tests.support.plan_traces import fused_moe, opened, renamed
from traceanalyzer.cli.main import cli
from traceanalyzer.commands.tune.verify.outcome import TileOutcome, TimeChange, outcome

Save = Callable[..., Path]
WIDE, NARROW = "32x256x128x1", "32x32x128x1"


def slower(spec: TraceSpec, role: str, factor: float) -> TraceSpec:
    """The same trace with the kernels of a role that much slower."""
    layers = tuple(
        replace(
            layer,
            kernels=tuple(replace(k, dur_us=k.dur_us * factor) if k.role == role else k for k in layer.kernels),
        )
        for layer in spec.model.layers
    )
    return replace(spec, model=replace(spec.model, layers=layers))


def between(save: Save, before: TraceSpec, after: TraceSpec) -> TileOutcome:
    return outcome(opened(save(before, 1)), opened(save(after, 2)))


def verify(*arguments: str) -> Any:
    return CliRunner().invoke(cli, ["tune", "verify", *arguments])


def test_a_step_that_a_tile_made_faster_is_the_tiles(save: Save) -> None:
    found = between(save, gptoss_20b_decode(tile=WIDE), gptoss_20b_decode(tile=NARROW))
    assert found.attribution == "tile"
    assert found.step.verdict == "faster"
    assert found.tile is not None
    assert found.tile.verdict == "faster"
    assert {one.role for one in found.kernels if one.tile} == {"moe_gate_up", "moe_down"}
    assert all("tile 32x256x128 -> 32x32x128" in one.what for one in found.kernels if one.tile)
    assert abs(found.rest_ns) < 0.2 * abs(found.step.delta_ns)
    assert found.tpot
    assert found.period is not None
    assert found.period.delta_ns == pytest.approx(found.step.delta_ns, rel=0.05)


def test_the_tiles_change_is_the_sum_of_its_kernels(save: Save) -> None:
    found = between(save, gptoss_20b_decode(tile=WIDE), gptoss_20b_decode(tile=NARROW))
    assert found.tile is not None
    assert found.tile.delta_ns == pytest.approx(1000 * sum(one.delta_us for one in found.kernels if one.tile))
    assert found.step.delta_ns == pytest.approx(found.compared.after_step_ns - found.compared.before_step_ns)


def test_a_gain_elsewhere_is_not_the_tiles(save: Save) -> None:
    before = slower(gptoss_20b_decode(tile=NARROW), "o_proj", 20)
    found = between(save, before, gptoss_20b_decode(tile="16x32x128x1"))
    assert found.step.verdict == "faster"
    assert found.attribution in ("other", "partly")
    assert abs(found.rest_ns) > abs(found.tile.delta_ns if found.tile else 0)


def test_a_loss_elsewhere_that_eats_the_tiles_gain_is_told(save: Save) -> None:
    after = slower(gptoss_20b_decode(tile=NARROW), "o_proj", 30)
    found = between(save, gptoss_20b_decode(tile=WIDE), after)
    assert found.tile is not None
    assert found.tile.verdict == "faster"
    assert found.step.verdict == "slower"
    assert found.attribution == "other"


def test_the_same_server_twice_has_no_tile_changed(save: Save) -> None:
    found = between(save, gptoss_20b_decode(), gptoss_20b_decode())
    assert found.attribution == "none"
    assert found.tile is None
    assert found.step.verdict in ("same", "unclear")


def test_too_few_steps_are_unclear(save: Save) -> None:
    found = between(save, gptoss_20b_decode(steps=2, tile=WIDE), gptoss_20b_decode(steps=2, tile=NARROW))
    assert found.attribution == "unclear"
    assert found.step.half_interval_ns is None
    assert found.step.delta_ns < 0


def test_another_number_of_warps_under_the_same_name_is_a_change_of_tile(save: Save) -> None:
    before = gptoss_20b_decode("cuda")
    layers = tuple(
        replace(
            layer,
            kernels=tuple(
                replace(k, block=(256, 1, 1), dur_us=k.dur_us / 2) if "matmul_ogs" in k.name else k
                for k in layer.kernels
            ),
        )
        for layer in before.model.layers
    )
    found = between(save, before, replace(before, model=replace(before.model, layers=layers)))
    assert {one.what for one in found.kernels if one.tile} == {"warps 4 -> 8"}
    assert found.attribution == "tile"


def test_a_kernel_whose_name_hides_its_tile_is_named_as_suspect(save: Save) -> None:
    before = replace(gptoss_20b_decode("cuda"), model=fused_moe())
    found = between(save, slower(before, "moe_gate_up", 3), before)
    assert found.attribution == "hidden"
    assert [one.role for one in found.hidden] == ["moe_gate_up", "moe_gate_up"], "of sliding and of full blocks"
    assert found.tile is None


def test_another_library_is_no_change_of_tile(save: Save) -> None:
    before = gptoss_20b_decode("cuda")
    other = renamed(before.model, lambda name, role: "marlin_moe_wna16::Marlin" if role == "moe_down" else name)
    found = between(save, before, replace(before, model=other))
    changed = [one for one in found.kernels if one.role == "moe_down"]
    assert changed
    assert not any(one.tile for one in changed)


def test_the_sum_of_a_splits_parts_belongs_to_the_tile(save: Save) -> None:
    before = gptoss_20b_decode(tile="32x32x128x1")
    after = gptoss_20b_decode(tile="32x32x128x4")
    summed = renamed(after.model, lambda name, role: "_reduce_grouped" if role == "moe_combine" else name)
    found = between(save, before, replace(after, model=summed))
    assert "moe_combine" in {one.role for one in found.kernels if one.tile}


def test_batches_weigh_as_often_as_they_occur_before(save: Save) -> None:
    few = replace(gptoss_20b_decode(tile=WIDE), steps=(*decode_steps(6, batch=1), *decode_steps(3, batch=4)))
    many = replace(gptoss_20b_decode(tile=NARROW), steps=(*decode_steps(3, batch=1), *decode_steps(6, batch=4)))
    found = between(save, few, many)
    assert found.compared.matched["requests"].to_list() == [1, 4]
    assert found.step.before_ns == pytest.approx(found.compared.before_step_ns)
    assert found.step.after_ns == pytest.approx(found.compared.after_step_ns)


@pytest.mark.parametrize(
    ("before", "after", "error", "verdict"),
    [
        (100.0, 80.0, 5.0, "faster"),
        (100.0, 120.0, 5.0, "slower"),
        (100.0, 100.1, 0.1, "same"),
        (100.0, 99.0, 5.0, "unclear"),
        (100.0, 80.0, None, "unclear"),
    ],
)
def test_verdicts_follow_the_interval(before: float, after: float, error: float | None, verdict: str) -> None:
    assert TimeChange(before, after, error).verdict == verdict


def test_traces_and_serving_results_in_one_document(save: Save, shared: Path) -> None:
    paths = [str(save(gptoss_20b_decode(tile=tile))) for tile in (WIDE, NARROW)]
    results = [str(shared / "cases" / f"500_bench_{side}.json") for side in ("before", "after")]
    result = verify(
        "--before", paths[0], "--after", paths[1], "--no-cache", "--json",
        "--before-results", results[0], "--after-results", results[1],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["schema"] == "traceanalyzer/tune-outcome/1"
    assert document["traces"]["attribution"] == "tile"
    kernels = [one for one in document["traces"]["kernels"] if one["tile"]]
    assert document["traces"]["tile"]["delta_us"] == pytest.approx(sum(one["delta_us"] for one in kernels))
    assert document["serving"]["comparable"] is True
    assert document["tpot"]["serving"][0]["change_percent"] == pytest.approx(-25.0)
    assert document["tpot"]["traces_change_percent"] < 0


def test_a_change_under_the_same_name_is_told_from_the_case(shared: Path) -> None:
    sides = [str(shared / "cases" / f"600_ab_{side}.json.gz") for side in ("before", "after")]
    result = verify("--before", sides[0], "--after", sides[1], "--no-cache", "--json")
    traces = json.loads(result.stdout)["traces"]
    assert traces["step"]["delta_us"] == pytest.approx(55.2)
    assert traces["attribution"] == "hidden"
    assert [(one["name_after"], one["role"]) for one in traces["hidden"]] == [("fused_moe_kernel", "moe_gate_up")]


def test_people_read_whose_the_change_is(save: Save) -> None:
    paths = [str(save(gptoss_20b_decode(tile=tile))) for tile in (WIDE, NARROW)]
    result = verify("--before", paths[0], "--after", paths[1], "--no-cache")
    assert result.exit_code == 0
    assert "the tile explains the step's change" in " ".join(result.stdout.split())
    assert "TPOT" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "two traces"),
        (("--before", "16x16x64", "--after", "32x16x64"), "give --kernel and --shape"),
        (("--before", "a.json"), "both --before and --after"),
        (("--before-results", "a.json"), "both --before-results and --after-results"),
        (("--kernel", "dense", "--before", "16x16x64", "--after", "32x16x64"), "Missing option '--shape'"),
        (("--kernel", "dense", "--shape", "n=64,k=64"), "Missing option '--before'"),
        (
            ("--kernel", "dense", "--shape", "n=64,k=64", "--before-results", "a", "--after-results", "b"),
            "do not go with --kernel",
        ),
    ],
)
def test_half_of_a_comparison_is_a_usage_error(arguments: tuple[str, ...], words: str) -> None:
    result = verify(*arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())


def test_a_missing_trace_is_told_in_one_line(tmp_path: Path) -> None:
    result = verify("--before", str(tmp_path / "no.json"), "--after", str(tmp_path / "nor.json"))
    assert result.exit_code == 1
    assert "no such file" in result.output
