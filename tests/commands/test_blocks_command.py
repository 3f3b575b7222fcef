"""``traceanalyzer blocks``: what a person reads, the JSON and the CSV."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from synthetic import TraceSpec, generate, models, write
from tests.support.architectures import ARCHITECTURES
from tests.support.hand_written_recording import Recording
from tests.support.places import CASES
from traceanalyzer.cli.main import cli
from traceanalyzer.segment import segment
from traceanalyzer.segment.outliers import find_outliers
from traceanalyzer.trace import open_traces


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["blocks", *arguments, "--no-cache"], env={"COLUMNS": "80"})


def slow_block(number: int, times: float) -> TraceSpec:
    """A Llama whose `number`-th block has one slow kernel: the down projection."""
    spec = models.llama_decode(layers=16, steps=2)
    block = spec.model.layers[number]
    kernels = tuple(
        replace(kernel, dur_us=kernel.dur_us * times) if kernel.role == "down" else kernel for kernel in block.kernels
    )
    layers = list(spec.model.layers)
    layers[number] = replace(block, kernels=kernels)
    return replace(spec, model=replace(spec.model, layers=tuple(layers)))


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    return write(generate(slow_block(9, 3.0), 1), tmp_path / "slow.json")


def test_a_slow_block_is_named_with_the_kernel_that_makes_it_slow(slow: Path) -> None:
    (outlier,) = find_outliers(segment(open_traces(slow, cache=False).traces[0]))
    assert outlier.block == 9
    assert outlier.change > 0.1
    spec = slow_block(9, 3.0)
    down = next(kernel for kernel in spec.model.layers[9].kernels if kernel.role == "down")
    assert outlier.kernel == down.name
    assert outlier.kernel_ns == pytest.approx(outlier.time_ns - outlier.usual_ns, rel=0.05)
    text = run(str(slow)).output
    assert "block 9 is" in text
    assert "slower than its kind" in text
    assert "because of" in text


def test_blocks_of_equal_time_have_no_outliers(tmp_path: Path) -> None:
    path = write(generate(models.llama_decode(layers=16, steps=2), 1), tmp_path / "even.json")
    assert find_outliers(segment(open_traces(path, cache=False).traces[0])) == []


@pytest.mark.parametrize("case", ["209_sliding_full.json.gz", "210_dense_first3_moe.json.gz", "213_no_repeats.json"])
def test_the_text_fits_eighty_columns(case: str) -> None:
    result = run(str(CASES / case))
    assert result.exit_code == 0
    assert max(len(line) for line in result.stdout.splitlines()) <= 80


def test_the_strip_marks_the_variants() -> None:
    text = run(str(CASES / "210_dense_first3_moe.json.gz")).stdout
    assert "AAABBBB" in text
    assert "moe_gate_up" in text


def test_a_step_without_blocks_says_so() -> None:
    result = run(str(CASES / "213_no_repeats.json"))
    assert "no transformer blocks" in result.stdout
    assert "no_blocks" in result.stderr


def document(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0
    loaded: dict[str, Any] = json.loads(result.stdout)
    return loaded


def test_filters_choose_steps(tmp_path: Path) -> None:
    path = str(CASES / "201_vllm_native.json.gz")
    assert [step["index"] for step in document(path)["timelines"][0]["steps"]] == [0, 1, 2, 3, 4]
    assert [step["index"] for step in document(path, "--phase", "decode")["timelines"][0]["steps"]] == [1, 2, 4]
    assert [step["phase"] for step in document(path, "--step", "3")["timelines"][0]["steps"]] == ["mixed"]
    two = str(CASES / "113_two_gpus.json.gz")
    assert [timeline["device"] for timeline in document(two, "--device", "1")["timelines"]] == [1]


@pytest.mark.parametrize("choice", [("--step", "99"), ("--rank", "7"), ("--device", "5")])
def test_a_choice_that_nothing_fits_is_a_usage_error(choice: tuple[str, str]) -> None:
    result = run(str(CASES / "201_vllm_native.json.gz"), *choice)
    assert result.exit_code == 2


def test_json_sums_agree_with_each_other() -> None:
    for step in document(str(CASES / "000_baseline.json"))["timelines"][0]["steps"]:
        blocks = step["blocks"]
        total = sum(block["kernel_sum_us"] for block in blocks)
        total += step["prologue"]["kernel_sum_us"] + step["epilogue"]["kernel_sum_us"]
        assert total == pytest.approx(472.5)
        for block in blocks:
            assert sum(block["roles"].values()) == pytest.approx(block["kernel_sum_us"])


def test_csv_has_a_row_a_block_and_a_column_a_role() -> None:
    result = run(str(CASES / "210_dense_first3_moe.json.gz"), "--csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [row["kind"] for row in rows[:7]] == ["dense"] * 3 + ["moe"] * 4
    assert float(rows[3]["moe_down_us"]) == pytest.approx(33.9)
    assert rows[0]["moe_down_us"] == ""


def test_partial_steps_come_last_and_say_why_they_have_no_blocks(tmp_path: Path) -> None:
    recording = Recording()
    names = list(ARCHITECTURES["llama, two layers"].names)
    recording.step(names[12:], launched=False)
    recording.step(names, "execute_context_0(0)_generation_4(4)")
    text = run(str(recording.write(tmp_path))).stdout
    assert text.index("1 step, phase decode") < text.index("1 partial step, phase unknown")
    assert "no transformer blocks were found: cut off by the start or end of the recording" in text


def test_steps_of_different_depth_are_shown_apart(tmp_path: Path) -> None:
    recording = Recording()
    for name in ("llama, one layer", "llama, two layers", "llama, one layer"):
        recording.step(list(ARCHITECTURES[name].names), "execute_context_0(0)_generation_4(4)")
    lines = run(str(recording.write(tmp_path))).stdout.splitlines()
    assert [line for line in lines if "phase decode" in line] == [
        "device 0: 2 steps, phase decode",
        "device 0: 1 step, phase decode",
    ]
    assert [line.split(",")[0].strip() for line in lines if "pattern" in line] == [
        "1 block from the pattern of kernel names",
        "2 blocks from the pattern of kernel names",
    ]
