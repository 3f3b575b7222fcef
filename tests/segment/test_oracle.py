"""Blocks by kernel names alone against those that `nn.Module` events tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.places import TRACES
from traceanalyzer.segment.segmentation import cut_up
from traceanalyzer.trace import open_trace

WITH_MODULES = "qwen3_24_vllm_eager_stack.json.gz"
CPU_ONLY = (
    "llama_24_vllm_eager_detailed.json.gz",
    "qwen3_24_vllm_compiled.json.gz",
    "llama_24_vllm_compiled_tp2_gloo/rank0.1795961794090163310.pt.trace.json.gz",
)
EAGER_ON_GPU = "traces/gpu/qwen1.5_0.5b_hf_h100.json.gz"


def test_names_alone_give_the_blocks_that_modules_give() -> None:
    names_and_modules_agree(TRACES / WITH_MODULES)


def test_names_alone_give_the_blocks_that_modules_give_on_a_gpu(shared: Path) -> None:
    names_and_modules_agree(shared / EAGER_ON_GPU)


def names_and_modules_agree(path: Path) -> None:
    trace = open_trace(path)
    by_modules, by_names = cut_up(trace), cut_up(trace, modules=False)
    assert "modules" in by_modules.steps["method"].to_list()
    assert "modules" not in by_names.steps["method"].to_list()
    assert by_names.events["block"].to_list() == by_modules.events["block"].to_list()
    assert by_names.events["section"].to_list() == by_modules.events["section"].to_list()


@pytest.mark.parametrize("path", CPU_ONLY)
def test_a_server_on_a_cpu_has_steps_and_all_of_its_layers(path: str) -> None:
    steps = cut_up(open_trace(TRACES / path)).steps
    working = steps.filter(steps["phase"] != "dummy")
    assert working["blocks"].to_list() == [24] * len(working)
    assert set(working["phase"].to_list()) <= {"decode", "prefill", "mixed"}


def test_an_eager_forward_pass_over_whole_prompts_is_a_prefill(shared: Path) -> None:
    steps = cut_up(open_trace(shared / EAGER_ON_GPU)).steps
    assert steps.select("phase", "requests", "tokens").row(1) == ("prefill", 16, 16 * 559)
    assert steps.select("phase", "complete").row(0) == ("unknown", False)
