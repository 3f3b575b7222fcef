"""Real GPU traces against their ground truth: steps, every block's events and kernels, variants."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from traceanalyzer.segment import Segmentation, segment
from traceanalyzer.trace import open_trace

NAMES = ("gptoss20b_vllm_decode_mi300x", "qwen3_8b_sglang_decode_mi300x", "qwen1.5_0.5b_hf_h100")


@pytest.fixture(scope="module", params=NAMES)
def sample(request: pytest.FixtureRequest, shared: Path) -> tuple[Segmentation, dict[str, Any]]:
    """Return a trace's segmentation and its truth."""
    truth = json.loads((shared / "expected" / f"{request.param}.json").read_text())
    return segment(open_trace(shared / truth["path"])), truth


def test_steps_hold_the_events_of_the_truth(sample: tuple[Segmentation, dict[str, Any]]) -> None:
    found, truth = sample
    expected = truth["steps"]
    assert found.steps["events"].to_list() == [step["n_gpu_events"] for step in expected]
    assert found.steps["kernels"].to_list() == [step["n_kernels"] for step in expected]
    assert found.steps["kernel_sum_ns"].to_list() == pytest.approx([1e3 * s["kernel_sum_us"] for s in expected], abs=30)
    assert found.steps["blocks"].to_list() == [step["n_blocks"] for step in expected]
    assert found.steps["complete"].to_list() == ["orphan" not in step["phase"] for step in expected]


def test_blocks_are_the_events_of_the_truth(sample: tuple[Segmentation, dict[str, Any]]) -> None:
    found, truth = sample
    for number, step in enumerate(truth["steps"]):
        if not step["n_blocks"]:
            continue
        events = found.events.filter(pl.col("step") == number).with_row_index("at")
        by_block = events.group_by("block", maintain_order=True).agg(pl.col("at").first(), pl.len())
        own = by_block.filter(pl.col("block").is_not_null()).sort("block")
        assert own["at"].to_list() == [block["start"] for block in step["blocks"]]
        blocks = found.blocks.filter(pl.col("step") == number)
        for key, column in (("n_events", "events"), ("n_kernels", "kernels")):
            assert blocks[column].to_list() == [block[key] for block in step["blocks"]]
        sections = dict(events["section"].value_counts().iter_rows())
        assert sections["prologue"] == step["prologue_events"]
        assert sections["epilogue"] == step["epilogue_events"]


def test_variants_group_the_blocks_of_the_truth(sample: tuple[Segmentation, dict[str, Any]]) -> None:
    found, truth = sample
    for number, step in enumerate(truth["steps"]):
        groups: dict[str, set[int]] = defaultdict(set)
        for index, block in enumerate(step.get("blocks", [])):
            groups[block["variant"]].add(index)
        own: dict[str, set[int]] = defaultdict(set)
        for index, variant in found.blocks.filter(pl.col("step") == number).select("block", "variant").iter_rows():
            own[variant].add(index)
        assert sorted(map(sorted, own.values())) == sorted(map(sorted, groups.values()))


def test_sliding_and_full_attention_are_named(shared: Path) -> None:
    found = segment(open_trace(shared / "traces/gpu/gptoss20b_vllm_decode_mi300x.json.gz"))
    assert found.blocks["kind"].to_list() == ["sliding", "full"] * 12
    assert found.steps["period_blocks"].to_list() == [2]


def test_a_stray_early_kernel_does_not_start_the_step(shared: Path) -> None:
    step = segment(open_trace(shared / "traces/gpu/qwen3_8b_sglang_decode_mi300x.json.gz")).steps.row(0, named=True)
    assert step["span_ns"] < 20_000_000
    assert (step["source"], step["phase"], step["requests"]) == ("sglang", "decode", 32)


def test_roles_of_a_mixture_of_experts_block(shared: Path) -> None:
    found = segment(open_trace(shared / "traces/gpu/gptoss20b_vllm_decode_mi300x.json.gz"))
    roles = found.events.filter(pl.col("block") == 1)["role"].to_list()
    assert roles == [
        *("norm", "qkv_proj", "copy", "rope", "kv_write", "attention", "attention", "o_proj", "norm", "router", "copy"),
        *("moe_routing", "moe_routing", "moe_routing", "moe_routing", "moe_gate_up", "moe_down", "moe_combine"),
    ]
    epilogue = found.events.filter(pl.col("section") == "epilogue")["role"].to_list()
    assert epilogue == ["norm", "copy", "copy", "lm_head"]


def test_roles_of_a_dense_block_with_query_and_key_norms(shared: Path) -> None:
    found = segment(open_trace(shared / "traces/gpu/qwen3_8b_sglang_decode_mi300x.json.gz"))
    roles = found.events.filter(pl.col("block") == 0)["role"].to_list()
    assert roles == [
        *("norm", "qkv_proj", "copy", "norm", "copy", "norm", "rope", "kv_write", "attention", "attention"),
        *("o_proj", "norm", "gate_up", "activation", "down"),
    ]


def test_roles_of_an_eager_block_that_fuses_nothing(shared: Path) -> None:
    found = segment(open_trace(shared / "traces/gpu/qwen1.5_0.5b_hf_h100.json.gz"))
    block = found.events.filter((pl.col("block") == 3) & (pl.col("step") == 1))
    products = block.filter(pl.col("name").cast(pl.String).str.contains("gemm"))["role"].to_list()
    assert products == ["qkv_proj"] * 3 + ["o_proj", "gate_up", "gate_up", "down"]
