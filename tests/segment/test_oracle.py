"""Blocks by kernel names alone against those that `nn.Module` events tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from traceanalyzer.segment.segmentation import cut_up
from traceanalyzer.trace import open_trace

WITH_MODULES = ("cpu/qwen3_24_vllm_eager_stack.json.gz", "gpu/qwen1.5_0.5b_hf_h100.json.gz")
CPU_ONLY = (
    "cpu/llama_24_vllm_eager_detailed.json.gz",
    "cpu/qwen3_24_vllm_compiled.json.gz",
    "cpu/llama_24_vllm_compiled_tp2_gloo/rank0.1795961794090163310.pt.trace.json.gz",
)


@pytest.mark.parametrize("path", WITH_MODULES)
def test_names_alone_give_the_blocks_that_modules_give(shared: Path, path: str) -> None:
    trace = open_trace(shared / "traces" / path)
    by_modules, by_names = cut_up(trace), cut_up(trace, modules=False)
    assert "modules" in by_modules.steps["method"].to_list()
    assert "modules" not in by_names.steps["method"].to_list()
    assert by_names.events["block"].to_list() == by_modules.events["block"].to_list()
    assert by_names.events["section"].to_list() == by_modules.events["section"].to_list()


@pytest.mark.parametrize("path", CPU_ONLY)
def test_a_server_on_a_cpu_has_steps_and_all_of_its_layers(shared: Path, path: str) -> None:
    steps = cut_up(open_trace(shared / "traces" / path)).steps
    working = steps.filter(steps["phase"] != "dummy")
    assert working["blocks"].to_list() == [24] * len(working)
    assert set(working["phase"].to_list()) <= {"decode", "prefill", "mixed"}


def test_an_eager_forward_pass_over_whole_prompts_is_a_prefill(shared: Path) -> None:
    steps = cut_up(open_trace(shared / "traces" / WITH_MODULES[1])).steps
    assert steps.select("phase", "requests", "tokens").row(1) == ("prefill", 16, 16 * 559)
    assert steps.select("phase", "complete").row(0) == ("unknown", False)
