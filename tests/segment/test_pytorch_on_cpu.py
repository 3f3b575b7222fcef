"""Plain PyTorch on a CPU (tests/support/record_pytorch.py): its compute ops give steps, blocks and roles."""

from __future__ import annotations

import pytest

import traceanalyzer as ta
from tests.support.places import TRACES
from traceanalyzer.segment import Segmentation, segment

LAYERS, STEPS = 6, 4


def of(name: str) -> Segmentation:
    return segment(ta.open_trace(TRACES / f"pytorch_{name}.json.gz"))


@pytest.mark.parametrize("kind", ["sdpa", "unfused"])
def test_a_decoder_has_its_steps_and_layers(kind: str) -> None:
    steps = of(f"decoder_{kind}").steps
    assert steps["blocks"].to_list() == [LAYERS] * STEPS
    assert min(steps["confidence"]) > 0.5


@pytest.mark.parametrize(("kind", "attention"), [("sdpa", 1), ("unfused", 3)])
def test_a_block_of_a_decoder_has_the_products_and_attention_of_a_layer(kind: str, attention: int) -> None:
    blocks = of(f"decoder_{kind}").events.drop_nulls("block")
    counts = dict(blocks.group_by("role").len().iter_rows())
    each = {"qkv_proj": 3, "o_proj": 1, "gate_up": 2, "down": 1, "attention": attention}
    assert {role: counts.get(role, 0) / LAYERS / STEPS for role in each} == each


def test_an_encoder_has_its_layers() -> None:
    steps = of("encoder").steps
    assert steps["blocks"].to_list() == [LAYERS]
