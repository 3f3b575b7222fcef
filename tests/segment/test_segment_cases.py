"""Every case of the folder of troubles that says something about steps and blocks."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from tests.support.places import CASES
from traceanalyzer.segment import Segmentation, segment
from traceanalyzer.trace import open_traces

EXPECTED: dict[str, Any] = json.loads((CASES / "expected.json").read_text())["cases"]
SINGLE = [
    case
    for case, what in EXPECTED.items()
    if isinstance(what["path"], str)
    and {"per_step", "blocks_per_step"} <= set(what.get("values", {}))
    and what["outcome"][0] != "error"
]


def of_file(path: str, device: int | None = None) -> Segmentation:
    """Segment the one trace of a case, or one device of it."""
    (trace,) = open_traces(CASES / path)
    found = segment(trace)
    if device is None:
        return found
    own = pl.col("device") == device
    return Segmentation(found.steps.filter(own), found.blocks.filter(own), found.events.filter(own), found.warnings)


def check(found: Segmentation, values: dict[str, Any]) -> None:
    """Compare steps and blocks with what a case says about them."""
    per_step = values["per_step"]
    assert found.steps["kernels"].to_list() == [step["kernels"] for step in per_step]
    sums = [step["kernel_sum_us"] for step in per_step]
    assert found.steps["kernel_sum_ns"].to_list() == pytest.approx([1000 * us for us in sums], abs=10)
    assert found.steps["blocks"].to_list() == values["blocks_per_step"]
    busy = values.get("gpu_busy_us")
    if busy and found.steps["device"][0] is not None:
        assert found.steps["busy_ns"].sum() == pytest.approx(1000 * sum(busy.values()), abs=10)
    complete = found.steps.filter("complete")
    phases = complete["phase"].to_list()
    for phase in ("decode", "prefill", "mixed", "dummy"):
        if f"{phase}_steps" in values and any(name != "unknown" for name in phases):
            assert phases.count(phase) == values[f"{phase}_steps"]
    if "partial_steps" in values:
        assert len(found.steps) - len(complete) == values["partial_steps"]
    types = values.get("block_types_in_order")
    if types:
        for step in range(len(found.steps)):
            assert found.blocks.filter(pl.col("step") == step)["kind"].to_list() == types


@pytest.mark.parametrize("case", SINGLE)
def test_steps_and_blocks_are_those_of_the_case(case: str) -> None:
    check(of_file(EXPECTED[case]["path"]), EXPECTED[case]["values"])


def test_two_devices_in_one_file_are_cut_up_each_on_its_own() -> None:
    case = EXPECTED["113_two_gpus"]
    for device, values in case["values"]["devices"].items():
        check(of_file(case["path"], int(device)), values)


@pytest.mark.parametrize("case", ["300_rank_gap", "303_allreduce_wait", "305_pp2"])
def test_each_rank_of_a_folder_has_its_steps_and_blocks(case: str) -> None:
    for trace in open_traces(CASES / EXPECTED[case]["path"]):
        values = EXPECTED[case]["values"]["per_rank"][str(trace.rank)]
        check(segment(trace), {key: value for key, value in values.items() if key != "gpu_busy_us"})


@pytest.mark.parametrize("number", [0, 1])
def test_an_upgrade_that_renumbers_kernels_keeps_blocks_and_variants(number: int) -> None:
    case = EXPECTED["600_ab_pair"]
    found = of_file(case["path"][number])
    check(found, case["values"][("before", "after")[number]])
    assert found.blocks["variant"].unique().to_list() == ["A"]
    assert found.blocks["kind"].unique().to_list() == ["moe"]


def test_an_implausible_duration_does_not_move_steps() -> None:
    found = of_file("117_overflow_dur.json")
    assert found.steps["kernels"].to_list() == [EXPECTED["117_overflow_dur"]["values"]["kernel_events"]]


def test_steps_of_a_trace_without_kernels_come_from_its_cpu_ops() -> None:
    found = of_file("109_cpu_only.json")
    assert len(found.steps) == EXPECTED["109_cpu_only"]["values"]["steps"]
    assert found.steps["device"].null_count() == len(found.steps)
    assert len(found.events) == EXPECTED["109_cpu_only"]["values"]["cpu_ops"]


def test_a_step_without_repetition_has_no_blocks_and_says_so() -> None:
    found = of_file("213_no_repeats.json")
    assert found.blocks.is_empty()
    assert "no_blocks" in [warning.code for warning in found.warnings]


def test_steps_without_markers_are_called_inferred() -> None:
    found = of_file("205_no_annotation_eager.json.gz")
    assert found.steps["source"].unique().to_list() == ["inferred"]
    assert any("inferred" in warning.message for warning in found.warnings)


def test_detailed_markers_tell_the_keys_attended_to() -> None:
    decode = of_file("203_vllm_detailed.json.gz").steps.filter(phase="decode")
    assert decode["kv_tokens"].unique().to_list() == [2048]


def test_a_graph_launch_owns_all_of_its_kernels() -> None:
    values = EXPECTED["112_graph_shared_correlation"]["values"]
    found = of_file("112_graph_shared_correlation.json.gz")
    assert found.events["graph"].sum() == values["kernels_in_graphs"]
    assert found.events["launch_ns"].null_count() == 0
