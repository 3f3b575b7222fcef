"""The command: its forms, its errors, and what real recordings must show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.places import CASES
from tests.support.sourced_recording import SourcedRecording, model
from traceanalyzer.cli.main import cli


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["source", *arguments, "--no-cache"])


def answer(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def by_role(document: dict[str, Any], role: str) -> list[tuple[Any, ...]]:
    fields = ("ordinal", "op", "module_class", "model_file", "model_line", "via")
    return [tuple(row[field] for field in fields) for row in document["rows"] if row["role"] == role]


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    recording = SourcedRecording()
    recording.eager(model())
    recording.replayed([line.kernel for line in model()])
    return str(recording.write(tmp_path))


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_the_table_fits_and_says_first_how_much_is_known(
    recorded: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    result = run(recorded)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= width
    assert " ".join(lines[:2]).startswith("the source of 100.0 % of the kernel time is known")
    assert "llama.py:30 forward" in result.stdout


def test_a_phase_without_steps_ends_with_the_steps_there_are(recorded: str) -> None:
    result = run(recorded, "--phase", "mixed")
    assert result.exit_code == 1
    assert "1 decode, 1 prefill" in result.stderr


def test_untrusted_frames_are_shown_as_text(tmp_path: Path) -> None:
    recording = SourcedRecording()
    recording.eager(model())
    for event in recording.events:
        if event["cat"] == "python_function" and "llama.py" in event["name"]:
            event["name"] = "/x/models/\x1b[31m=cmd.py(3): <script>\ud800"
    result = run(str(recording.write(tmp_path)))
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.stdout
    assert run(str(recording.write(tmp_path)), "--csv").exit_code == 0


@pytest.mark.parametrize("case", ["109_cpu_only.json", "213_no_repeats.json", "214_aborted_last_step.json.gz"])
def test_odd_traces_are_answered_or_refused_in_a_line(case: str) -> None:
    result = run(str(CASES / case))
    assert result.exit_code in (0, 1), result.output
    assert "internal error" not in result.output


def test_a_replayed_decode_step_is_explained_by_the_extend_step_of_the_same_model(shared: Path) -> None:
    folder = shared / "traces" / "gpu"
    document = answer(
        str(folder / "qwen3_8b_sglang_decode_mi300x.json.gz"),
        "--map",
        str(folder / "qwen3_8b_sglang_extend_mi300x.json.gz"),
    )
    assert document["resolved_share"] == pytest.approx(1)
    exact = sum(row["share"] for row in document["rows"] if row["level"] != "helper")
    assert exact >= 0.98
    assert by_role(document, "gate_up") == [
        (0, "aten::mm", "MergedColumnParallelLinear", "sglang/srt/models/qwen2.py", 94, "position")
    ]
    copies = [row for row in by_role(document, "copy") if row[3:5] == ("sglang/srt/models/utils.py", 394)]
    assert sorted(row[:2] for row in copies) == [(0, "aten::copy_"), (1, "aten::copy_")]
    norms = {row[0]: row[4] for row in by_role(document, "norm") if row[3] == "sglang/srt/models/utils.py"}
    assert norms == {1: 416, 2: 416}


def test_a_capture_explains_the_graph(shared: Path) -> None:
    folder, name = shared / "traces" / "gpu", "gptoss20b_vllm_decode_mi300x"
    document = answer(str(folder / f"{name}.json.gz"), "--capture", str(folder / f"{name}.capture.json.gz"))
    captured = [row for row in document["rows"] if row["via"] == "capture"]
    assert sum(row["count"] for row in captured) == 421
    lines = {(row["role"], row["file"], row["line"]) for row in captured}
    assert ("moe_gate_up", "triton_kernels/matmul_ogs.py", 352) in lines
    assert ("moe_routing", "triton_kernels/routing.py", 95) in lines


def test_a_capture_that_lacks_a_kernel_explains_the_rest(shared: Path) -> None:
    document = answer(
        str(shared / "reports" / "suites" / "sglang_one_kernel_missing_last.json.gz"),
        "--capture",
        str(shared / "traces" / "others" / "sglang_capture_mi300.json.gz"),
        "--phase",
        "decode",
    )
    assert document["by_via"]["capture"] > 0.98
    assert document["resolved_share"] == pytest.approx(1)


def test_a_mixed_step_of_graph_pieces_is_no_map(shared: Path) -> None:
    folder = shared / "traces" / "gpu"
    document = answer(
        str(folder / "gptoss20b_vllm_decode_mi300x.json.gz"),
        "--map",
        str(folder / "gptoss20b_vllm_mixed_mi300x.json.gz"),
    )
    assert document["by_via"]["position"] == 0
    assert "states its sources" in document["mapping"]["reason"]
