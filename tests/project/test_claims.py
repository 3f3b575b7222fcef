"""What is claimed of traces that are no marked decode steps, or no transformers: what other programs get as JSON.

The recordings are of others and read from beside the repository; the small files in tests/data/reports are made after
public reports.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.places import DATA, SHARED
from traceanalyzer.cli.main import cli

REPORTS = DATA / "reports"
OTHERS = SHARED / "traces" / "others"
DOUBTED = 0.3
"""Confidence up to which blocks count as doubted: what is asked of traces without a transformer."""


@dataclass(frozen=True, eq=False)
class Answers:
    """What the commands say of one trace."""

    path: Path

    def text(self, *command: str, status: int = 0) -> str:
        result = CliRunner().invoke(cli, [command[0], str(self.path), *command[1:]], catch_exceptions=False)
        assert result.exit_code == status, result.output
        return result.output

    def document(self, command: str, *options: str) -> dict[str, Any]:
        result = CliRunner().invoke(cli, [command, str(self.path), *options, "--json"], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        document: dict[str, Any] = json.loads(result.stdout)
        return document

    @cached_property
    def summary(self) -> dict[str, Any]:
        return self.document("ingest")

    @cached_property
    def warnings(self) -> dict[str, Any]:
        return {warning["code"]: warning for warning in self.summary["warnings"]}

    @cached_property
    def steps(self) -> list[dict[str, Any]]:
        """The steps as `blocks` has them."""
        return [step for timeline in self.document("blocks")["timelines"] for step in timeline["steps"]]

    @cached_property
    def blocks(self) -> list[dict[str, Any]]:
        return [block for step in self.steps for block in step["blocks"]]

    @property
    def kernels(self) -> int:
        return sum(timeline["kernels"] for timeline in self.summary["timelines"])

    @property
    def phases(self) -> set[str]:
        return {step["phase"] for timeline in self.summary["timelines"] for step in timeline["steps"]}

    @cached_property
    def shares(self) -> dict[str, float]:
        """Share of kernel time, in percent, by role."""
        rows = self.document("hotspots", "--by", "role")["rows"]
        total = sum(row["total_us"] for row in rows)
        return {row["name"]: 100 * row["total_us"] / total for row in rows}

    def no_sure_blocks(self) -> bool:
        return all(not step["blocks"] or step["confidence"] <= DOUBTED for step in self.steps)


@pytest.fixture
def answers(own_cache: Path) -> Callable[[str], Answers]:
    """Return a function from a trace's name to what the commands say of it."""
    del own_cache
    return lambda name: Answers(next(iter([*REPORTS.glob(f"{name}.json*"), *OTHERS.glob(f"{name}.json*")])))


Ask = Callable[[str], Answers]


def test_names_that_fit_their_times_are_left_alone(answers: Ask) -> None:
    right = answers("rocm_graph_names_right")
    assert [len(step["blocks"]) for step in right.steps] == [32]
    assert right.shares["gate_up"] == pytest.approx(33.2, abs=0.1)
    assert not {"names_paired_again", "names_do_not_fit"} & set(right.warnings)


def test_names_joined_with_the_times_of_others_are_paired_again(answers: Ask) -> None:
    shuffled = answers("rocm_graph_names_shuffled")
    assert [(len(step["blocks"]), {b["variant"] for b in step["blocks"]}) for step in shuffled.steps] == [(32, {"A"})]
    assert {role: round(shuffled.shares[role], 1) for role in ("gate_up", "attention", "down", "norm")} == {
        "gate_up": 33.2,
        "attention": 21.8,
        "down": 16.3,
        "norm": 4.0,
    }


@pytest.mark.parametrize("name", ["conv_net_no_transformer", "kernels_without_device"])
def test_no_transformer_no_blocks(answers: Ask, name: str) -> None:
    assert answers(name).no_sure_blocks()
    assert not {"lm_head", "sampler"} & set(answers(name).shares)


def test_kernels_without_device_are_a_gpu_trace(answers: Ask) -> None:
    trace = answers("kernels_without_device")
    assert [(timeline["device"], timeline["kernels"]) for timeline in trace.summary["timelines"]] == [(2, 20)]
    assert "cpu_only" not in trace.warnings


def test_a_lone_mixture_of_experts_has_no_attention(answers: Ask) -> None:
    trace = answers("plain_moe_layer_only")
    assert trace.no_sure_blocks()
    assert {"router", "moe_routing", "moe_gate_up", "moe_down"} <= set(trace.shares)
    assert not {"attention", "o_proj", "qkv_proj"} & set(trace.shares)
    assert {block["kind"] for block in trace.blocks} <= {"moe"}


def test_a_decoder_of_images_has_neither_lm_head_nor_sampler(answers: Ask) -> None:
    trace = answers("diffusion_vae_after_blocks")
    assert not {"lm_head", "sampler"} & set(trace.shares)
    assert trace.summary["workload"] == "diffusion"
    assert "AITER" not in trace.text("hotspots")


def test_a_side_stream_is_in_no_block(answers: Ask) -> None:
    trace = answers("side_stream_in_blocks")
    assert Counter(block["variant"] for block in trace.blocks) == {"A": 32}
    rows = trace.document("hotspots")["rows"]
    neg = [row for row in rows if "neg" in row["name"]]
    assert {row["role"] for row in neg} == {"other"}
    assert len({round(block["kernel_sum_us"], 1) for block in trace.blocks}) == 1


def test_kernels_of_no_duration_are_counted(answers: Ask) -> None:
    trace = answers("zero_duration_kernels")
    assert trace.warnings["zero_duration"]["count"] == 5
    assert trace.kernels == 5


@pytest.mark.parametrize("name", ["graph_capture_only", "sglang_capture_mi300"])
def test_a_capture_is_no_execution(answers: Ask, name: str, request: pytest.FixtureRequest) -> None:
    if name.startswith("sglang"):
        request.getfixturevalue("shared")
    trace = answers(name)
    assert trace.summary["workload"] == "graph_capture"
    for command in ("ingest", "hotspots"):
        text = trace.text(command)
        assert "--capture" in text
        assert "Attack" not in text


@pytest.mark.parametrize("command", ["hotspots", "ingest", "blocks", "idle"])
def test_an_idle_gpu_is_said_first(answers: Ask, command: str) -> None:
    first = answers("host_bound_idle_94").text(command).splitlines()[0]
    assert "idle" in first
    assert "94" in first


def test_training_is_said(answers: Ask) -> None:
    trace = answers("training_fwd_bwd_dpsk_ep")
    assert trace.summary["workload"] == "training"
    assert trace.phases == {"training"}
    assert trace.shares["communication"] > 0


def test_a_single_layer_is_one_block_with_its_feed_forward(answers: Ask) -> None:
    trace = answers("single_layer")
    (block,) = trace.blocks
    assert block["kernels"] == 12
    assert round(block["roles"]["gate_up"]) == 3749
    assert round(block["roles"]["down"]) == 2034
    assert not {"lm_head", "sampler"} & set(trace.shares)


# ---------------------------------------------------------------- recordings of others


@pytest.mark.usefixtures("shared")
class TestRecordingsOfOthers:
    """What expected.json beside the recordings says of each."""

    def test_a_graph_whose_names_went_astray(self, answers: Ask) -> None:
        trace = answers("dsr1_sglang_decode_mi300")
        assert [len(step["blocks"]) for step in trace.steps] == [32]
        shares = {role: round(trace.shares[role]) for role in ("gate_up", "attention", "down", "o_proj", "qkv_proj")}
        assert shares == {"gate_up": 33, "attention": 19, "down": 14, "o_proj": 8, "qkv_proj": 8}
        assert trace.shares["norm"] == pytest.approx(3.4, abs=0.2)

    def test_the_next_batch_is_in_no_block(self, answers: Ask) -> None:
        trace = answers("qwen3_30b_sglang_decode_mi300")
        assert len(trace.blocks) == 48
        assert {block["kernels"] for block in trace.blocks} == {16}
        assert len({block["variant"] for block in trace.blocks}) <= 2

    def test_two_towers_of_full_attention(self, answers: Ask) -> None:
        trace = answers("owlv2_mi300")
        assert trace.kernels == 4255
        assert len(trace.blocks) == 180
        assert trace.phases == {"forward"}
        assert trace.summary["workload"] == "encoder"
        assert not {"lm_head", "sampler"} & set(trace.shares)
        for command in ("ingest", "blocks", "hotspots"):
            assert "sliding" not in trace.text(command)

    @pytest.mark.parametrize(("name", "layers"), [("timesformer_mi300", 12), ("vit_mi300", 12), ("bertsmall_mi300", 4)])
    def test_an_encoder_is_no_language_model(self, answers: Ask, name: str, layers: int) -> None:
        trace = answers(name)
        assert len(trace.blocks) == layers
        assert trace.phases == {"forward"}
        assert trace.summary["workload"] == "encoder"
        assert "sampler" not in trace.shares

    @pytest.mark.parametrize(("name", "idle"), [("vit_mi300", "75.0"), ("bertsmall_mi300", "88.8")])
    @pytest.mark.parametrize("command", ["ingest", "hotspots", "blocks", "idle"])
    def test_idle_comes_first(self, answers: Ask, name: str, idle: str, command: str) -> None:
        first = answers(name).text(command).splitlines()[0]
        assert "idle" in first
        assert idle in first

    def test_unfused_attention_is_said(self, answers: Ask) -> None:
        trace = answers("timesformer_mi300")
        assert trace.shares["attention"] == pytest.approx(73.5, abs=4)
        assert "Attention is not fused" in trace.text("hotspots")

    def test_one_compiled_layer(self, answers: Ask) -> None:
        trace = answers("compile_triton_mi300")
        (block,) = trace.blocks
        assert block["kernels"] == 12
        assert {"gate_up", "down"} <= set(block["roles"])
        assert not {"lm_head", "sampler"} & set(trace.shares)

    def test_experts_alone(self, answers: Ask) -> None:
        trace = answers("moe02_nv")
        assert "attention" not in trace.shares
        assert {"router", "moe_routing", "moe_gate_up", "moe_down"} <= set(trace.shares)
        assert trace.no_sure_blocks()

    def test_one_product_again_and_again(self, answers: Ask) -> None:
        trace = answers("gemm_01_mi300")
        assert trace.kernels == 20
        assert "cpu_only" not in trace.warnings
        assert trace.no_sure_blocks()

    @pytest.mark.parametrize("name", ["kineto_resnet", "ddp_resnet18_mi300", "hta_alexnet", "hta_dlrm_neg"])
    def test_no_transformer_no_blocks(self, answers: Ask, name: str) -> None:
        trace = answers(name)
        assert trace.no_sure_blocks()
        assert not {"lm_head", "sampler", "gate_up"} & set(trace.shares)
        if name != "hta_alexnet":
            assert trace.summary["workload"] == "training"

    def test_resnet_counts_what_took_no_time(self, answers: Ask) -> None:
        trace = answers("kineto_resnet")
        missing = trace.warnings["zero_duration"]["count"] if "zero_duration" in trace.warnings else 0
        assert trace.kernels + missing == 8772
        assert missing in (0, 636)

    def test_an_accelerator_that_is_not_read_is_named(self, answers: Ask) -> None:
        trace = answers("hta_mtia_inf")
        text = trace.text("ingest") + trace.text("hotspots")
        assert "mtia" in text.lower()
        assert "ProfilerActivity" not in text

    def test_initialisation_on_the_host_is_no_sampler(self, answers: Ask) -> None:
        trace = answers("hta_cupti")
        assert "sampler" not in trace.shares
        assert "Attack" not in trace.text("hotspots")
