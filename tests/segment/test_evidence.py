"""No transformer, no blocks: what merely repeats, convolves or multiplies claims none."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from synthetic import generate, negatives, write
from synthetic import negative_kernels as n
from synthetic.negative_kernels import Library
from traceanalyzer.segment import Segmentation, segment
from traceanalyzer.segment.blocks import find_blocks
from traceanalyzer.segment.cut import Cut
from traceanalyzer.segment.evidence import DOUBTFUL, weigh
from traceanalyzer.segment.tokens import MIXER, encode
from traceanalyzer.trace import open_traces

FEW = 3
LAYER_NORM, PRODUCT, GELU, ADD = n.LAYER_NORM, "nvjet_sm90_tst_128x64_64x8_2x1_v_bz_TNT", n.GELU, n.ADD
CONVOLUTION = n.CONVOLUTIONS["cudnn 7"][0]
SOFTMAX = n.SOFTMAX.format(log2=9)
FEED_FORWARD = [LAYER_NORM, PRODUCT, GELU, PRODUCT, ADD]
BLOCK = [LAYER_NORM, PRODUCT, n.FLASH, PRODUCT, ADD, *FEED_FORWARD]
UNFUSED = [LAYER_NORM, PRODUCT, n.COPY, PRODUCT, n.MUL, SOFTMAX, n.COPY, PRODUCT, n.COPY, PRODUCT, ADD, *FEED_FORWARD]


def confidence(names: Sequence[str], us: Sequence[float] | None = None) -> tuple[int, float]:
    """Return the number of blocks of a step and the confidence in them."""
    tokens, vocabulary = encode(pl.Series(names))
    times = np.array([1000 * each for each in us] if us else [1000] * len(names), dtype=np.int64)
    cut = weigh(find_blocks(tokens, vocabulary), tokens, times, vocabulary)
    return cut.count, cut.confidence


def segmented(seed: int, families: dict[str, Callable[[Library], list[n.KernelSpec]]], folder: Path) -> Segmentation:
    """Segment the negative of a seed."""
    chosen = negatives.random_negative(seed, families)
    path = write(generate(chosen.spec, seed), folder / f"{chosen.family}-{seed}.json")
    return segment(open_traces(path, cache=False).traces[0])


@pytest.mark.parametrize("family", [*negatives.FITTED, *negatives.UNSEEN])
def test_a_network_of_another_kind_has_no_blocks_worth_the_name(family: str, tmp_path: Path) -> None:
    families = {family: (negatives.FITTED | negatives.UNSEEN)[family]}
    for seed in range(FEW):
        highest = segmented(seed, families, tmp_path).steps["confidence"].max()
        assert highest is None or highest < 0.3  # type: ignore[operator]


def test_the_same_seed_gives_the_same_negative() -> None:
    one, two = (negatives.random_negative(7, negatives.FITTED) for _ in range(2))
    assert one == two
    assert generate(one.spec, 7).truth.steps[0].blocks == ()


@pytest.mark.parametrize("block", [BLOCK, UNFUSED], ids=["fused", "unfused"])
@pytest.mark.parametrize("layers", [1, 2, 12])
def test_a_transformer_without_step_or_head_keeps_its_blocks(block: list[str], layers: int) -> None:
    count, claim = confidence([*block * layers, LAYER_NORM])
    assert count == layers
    assert claim > 0.3


def test_convolutions_between_attentions_take_the_claim_away() -> None:
    residual = ["ampere_scudnn_128x64_relu_xregs_large_nn_v1", ADD] * 2
    names = (BLOCK + residual) * 6
    slow = [40.0 if "scudnn" in name else 2.0 for name in names]
    assert confidence(names, slow)[1] <= DOUBTFUL
    assert confidence([*residual, *BLOCK * 6, LAYER_NORM])[1] > 0.3  # a patch embedding before the blocks


def test_products_outside_of_blocks_take_the_claim_away() -> None:
    assert confidence([*BLOCK * 3, LAYER_NORM, *[PRODUCT, ADD] * 60])[1] <= DOUBTFUL


@pytest.mark.parametrize(
    "loop",
    [
        [PRODUCT, SOFTMAX],
        [PRODUCT, ADD, "ampere_sgemm_128x64_tn", GELU],
        [n.FLASH, n.COPY],
        [PRODUCT, n.MUL, SOFTMAX, PRODUCT],
        [n.GROUP_NORM[0], PRODUCT, n.FLASH, PRODUCT, ADD],
    ],
    ids=["softmax", "elementwise", "attention", "unfused attention", "attention of pixels"],
)
def test_a_loop_of_kernels_is_no_model(loop: list[str]) -> None:
    assert confidence(loop * 20)[1] < 0.3


def attends(names: list[str]) -> list[bool]:
    """Return for each softmax whether it is taken for attention's."""
    tokens, vocabulary = encode(pl.Series(names))
    classes = vocabulary.classes[tokens].tolist()
    return [kind == MIXER for kind, name in zip(classes, names, strict=True) if "oft" in name.lower()]


def test_a_softmax_between_two_products_is_attention() -> None:
    assert attends([PRODUCT, n.MUL, ADD, SOFTMAX, n.COPY, n.DROPOUT, PRODUCT]) == [True]
    assert attends([PRODUCT, n.GATHER, n.COPY, ADD, SOFTMAX, PRODUCT]) == [True]  # a bias that is looked up
    assert attends(["aten::bmm", "aten::mul", "aten::_softmax", "aten::view", "aten::bmm"]) == [True]


def test_the_softmax_of_a_router_a_loss_or_a_classifier_is_not() -> None:
    assert attends([PRODUCT, SOFTMAX, n.TOPK, n.GATHER, PRODUCT]) == [False]
    assert attends([PRODUCT, n.TOPK, n.SORT, SOFTMAX, n.COPY, n.GATHER, PRODUCT]) == [False]
    assert attends([PRODUCT, n.LOG_SOFTMAX, PRODUCT]) == [False]
    assert attends([PRODUCT, n.SOFTMAX.format(log2=9).replace("false, false", "true, false"), PRODUCT]) == [False]
    assert attends([PRODUCT, ADD, SOFTMAX]) == [False]


def test_one_kernel_is_attention_here_and_a_router_there() -> None:
    names = [PRODUCT, SOFTMAX, PRODUCT, LAYER_NORM, PRODUCT, SOFTMAX, n.TOPK, n.GATHER, PRODUCT]
    assert attends(names) == [True, False]


def test_layers_that_modules_name_need_a_mixer_too() -> None:
    names = [CONVOLUTION, n.RELU, CONVOLUTION, ADD] * 4
    tokens, vocabulary = encode(pl.Series(names))
    blocks = Cut(np.repeat(np.arange(4), 4), 4, 1.0, "modules")
    assert weigh(blocks, tokens, np.ones(16, dtype=np.int64), vocabulary).count == 0


def test_a_block_that_lost_its_attention_is_known_by_its_rope_though_it_has_experts() -> None:
    rope = "void vllm::rotary_embedding_kernel<float, true>(long const*, float*)"
    routed = ["void vllm::moe::topkGating<8, 256, 4>(float const*)", "fused_moe_kernel", "fused_moe_kernel"]
    lost = [LAYER_NORM, PRODUCT, rope, PRODUCT, LAYER_NORM, PRODUCT, *routed]
    tokens, vocabulary = encode(pl.Series(lost))
    whole = Cut(np.zeros(len(lost), dtype=np.int64), 1, 0.9)
    assert weigh(whole, tokens, np.ones(len(lost), dtype=np.int64), vocabulary).confidence > 0.3


def test_kernels_of_an_unknown_name_may_be_the_attention() -> None:
    wide = [LAYER_NORM, "ampere_sgemm_128x64_tn", GELU, "volta_sgemm_64x64_nn", ADD]
    known = [LAYER_NORM, PRODUCT, "an_unheard_of_mixer_v3", PRODUCT, ADD, *wide]
    assert 0.3 < confidence([*known * 12, LAYER_NORM])[1] < 0.7
    nothing = [LAYER_NORM, PRODUCT, n.COPY, PRODUCT, ADD, *wide]
    assert confidence([*nothing * 12, LAYER_NORM])[1] < 0.3


def activates(names: list[str]) -> list[bool]:
    """Return for each kernel that squashes whether it is a feed-forward's activation."""
    tokens, vocabulary = encode(pl.Series(names))
    active = vocabulary.activates[tokens].tolist()
    return [one for one, name in zip(active, names, strict=True) if name in (n.SIGMOID, n.TANH)]


def test_an_activation_of_elementwise_kernels_stands_between_two_products() -> None:
    assert activates([PRODUCT, n.MUL, n.SIGMOID, n.MUL, PRODUCT]) == [True]
    assert activates([PRODUCT, n.MUL, ADD, n.MUL, n.TANH, ADD, n.MUL, PRODUCT]) == [True]


def test_a_gate_is_no_activation() -> None:
    assert activates([PRODUCT, n.SIGMOID, n.MUL, PRODUCT]) == [False]
    assert activates([n.FLASH, n.MUL, n.SIGMOID, n.MUL, PRODUCT]) == [False]
    assert activates([PRODUCT, n.MUL, n.TANH, n.MUL, n.TOPK]) == [False]


def test_quick_gelu_parts_the_feed_forward_of_an_encoder() -> None:
    layer = [LAYER_NORM, PRODUCT, n.FLASH, PRODUCT, ADD, LAYER_NORM, PRODUCT, n.MUL, n.SIGMOID, n.MUL, PRODUCT, ADD]
    count, claim = confidence([*layer * 12, LAYER_NORM])
    assert count == 12
    assert claim > 0.9


def test_a_library_is_drawn_once_per_trace() -> None:
    lib = Library.draw(random.Random(1), "rocm")
    assert {lib.product().name for _ in range(50)} <= set(n.PRODUCTS["rocm"])
