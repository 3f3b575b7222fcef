"""Traces that users reported: a layer alone, experts alone, images after blocks, networks without a transformer."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from tests.support.architectures import FA3, dense, step
from tests.support.hand_written_recording import Recording
from tests.support.places import REPORTS, SHARED
from traceanalyzer.cli.main import cli
from traceanalyzer.segment import Segmentation, segment
from traceanalyzer.trace import open_traces

OTHERS = SHARED / "traces" / "others"
WITHOUT = ("kineto_resnet", "ddp_resnet18_mi300", "hta_alexnet", "hta_dlrm_neg", "gemm_01_mi300")
ENCODERS = {"vit_mi300": 12, "bertsmall_mi300": 4, "timesformer_mi300": 12, "owlv2_mi300": 180}


def of(path: Path) -> Segmentation:
    """Segment a trace anew."""
    return segment(open_traces(path, cache=False).traces[0])


def of_others(name: str) -> Segmentation:
    """Segment a recording of others; skipped where it is not beside the repository."""
    path = OTHERS / f"{name}.json.gz"
    if not path.exists():
        pytest.skip("the recordings of others are not here")
    return of(path)


def roles(found: Segmentation) -> dict[str, tuple[int, float]]:
    """Return of each role how many kernels play it and their time in µs."""
    summed = found.events.filter("is_kernel").group_by("role").agg(pl.len(), us=pl.col("dur_ns").sum() / 1000)
    return {role: (count, us) for role, count, us in summed.iter_rows()}


def highest(found: Segmentation) -> float:
    """Return the highest confidence in blocks, 0 without any."""
    confidence = found.steps["confidence"].max()
    return 0.0 if confidence is None else float(confidence)  # type: ignore[arg-type]


def check_layer(found: Segmentation) -> None:
    """A layer alone is one block with its feed-forward, and there is nothing else."""
    assert found.blocks["kernels"].to_list() == [12]
    own = roles(found)
    assert own["gate_up"] == (2, pytest.approx(3749, abs=1))
    assert own["down"] == (1, pytest.approx(2034, abs=1))
    assert not {"lm_head", "sampler"} & set(own)


def check_experts(found: Segmentation) -> None:
    """Experts in plain PyTorch are told by what sorts; nothing attends."""
    own = roles(found)
    counts = {role: own[role][0] for role in ("router", "moe_routing", "moe_gate_up", "moe_down")}
    assert counts == {"router": 3, "moe_routing": 9, "moe_gate_up": 3, "moe_down": 3}
    assert not {"attention", "qkv_proj", "o_proj", "gate_up", "down", "lm_head"} & set(own)
    assert set(found.blocks["kind"].to_list()) == {"moe"}
    assert highest(found) < 0.3


def test_a_layer_alone_is_one_block_with_its_feed_forward() -> None:
    check_layer(of(REPORTS / "traces" / "single_layer.json.gz"))


def test_a_compiled_layer_alone_is_one_block_with_its_feed_forward() -> None:
    check_layer(of_others("compile_triton_mi300"))


def test_a_mixture_of_experts_in_plain_pytorch_has_its_roles() -> None:
    check_experts(of(REPORTS / "traces" / "plain_moe_layer_only.json.gz"))


def test_a_recorded_mixture_of_experts_in_plain_pytorch_has_its_roles() -> None:
    check_experts(of_others("moe02_nv"))


def test_convolutions_after_blocks_are_neither_head_nor_sampler() -> None:
    found = of(REPORTS / "traces" / "diffusion_vae_after_blocks.json.gz")
    assert len(found.blocks) == 12
    assert not {"lm_head", "sampler"} & set(roles(found))


def test_a_network_of_convolutions_has_no_blocks() -> None:
    found = of(REPORTS / "traces" / "conv_net_no_transformer.json.gz")
    assert highest(found) <= 0.3
    assert not {"lm_head", "sampler", "gate_up", "down"} & set(roles(found))


@pytest.mark.parametrize("name", WITHOUT)
def test_a_recording_without_a_transformer_has_no_blocks(name: str) -> None:
    found = of_others(name)
    assert highest(found) <= 0.3
    assert not {"lm_head", "sampler", "gate_up", "attention"} & set(roles(found))


@pytest.mark.parametrize(("name", "blocks"), ENCODERS.items())
def test_a_recorded_encoder_has_its_layers(name: str, blocks: int) -> None:
    found = of_others(name)
    assert found.steps["blocks"].sum() == blocks
    assert highest(found) > 0.9
    # BERT's head of masked tokens is as wide as its vocabulary; a classifier and what copies its result are neither.
    assert ("lm_head" in roles(found)) == (name == "bertsmall_mi300")
    assert "sampler" not in roles(found)


def test_blocks_that_are_doubtful_are_said_to_be() -> None:
    path = str(REPORTS / "traces" / "plain_moe_layer_only.json.gz")
    parts = "3 parts per step that repeat, probably not transformer blocks (confidence 0.05)"
    assert parts in CliRunner().invoke(cli, ["ingest", path, "--no-cache"], env={"COLUMNS": "200"}).stdout
    doubt = "confidence 0.05, probably not a transformer's"
    assert doubt in CliRunner().invoke(cli, ["blocks", path, "--no-cache"], env={"COLUMNS": "200"}).stdout


def test_a_softmax_between_products_of_no_block_is_not_attention(tmp_path: Path) -> None:
    recording = Recording()
    product = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn"
    softmax = "void (anonymous namespace)::softmax_warp_forward<c10::Half, c10::Half, float, 10, false, false>()"
    for _ in range(24):
        for name in (product, softmax, product):
            recording.launch(name)
    cut = recording.segment(tmp_path)
    assert cut.blocks.is_empty()
    assert set(cut.events["role"].to_list()) == {"other"}


def test_a_draft_models_short_attention_is_no_kind_of_layer(tmp_path: Path) -> None:
    recording = Recording()
    verified = step([dense() for _ in range(16)]).names
    draft = step([dense()]).names
    for _ in range(3):
        begin = recording.now
        for name in verified:
            recording.launch(name, length=30.0 if name == FA3 else 3.0)
        for name in draft * 3:
            recording.launch(name, length=3.0)
        recording.host("execute_context_0(0)_generation_8(32)", begin, recording.now)
        recording.now += 10
    cut = recording.segment(tmp_path)
    assert cut.steps["blocks"].to_list() == [16, 16, 16]
    assert set(cut.blocks["kind"].to_list()) == {"dense"}
