"""Roles by position, where names do not tell."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tests.support.architectures import (
    ADD,
    ALIGN,
    ARCHITECTURES,
    ARGMAX,
    DOWN,
    EMBED,
    FA3,
    HEAD,
    KV,
    LAYER_NORM,
    MOE,
    MOE_SUM,
    OUT,
    QKV,
    RMS,
    ROPE,
    ROUTER,
    SILU,
    SPLIT_K,
    TOPK,
    UP,
    dense,
    step,
)
from traceanalyzer.segment.blocks import find_blocks
from traceanalyzer.segment.outer_roles import StepEvidence, outer_roles
from traceanalyzer.segment.roles import block_roles
from traceanalyzer.segment.tokens import encode

SERVING = StepEvidence(serves=True, trains=False, typical_ns=0.0)
EXPERTS = "router moe_routing moe_routing gate_up activation down moe_gate_up activation moe_down moe_combine"
ROLES = {
    ("llama", 3): "norm qkv_proj rope kv_write attention attention o_proj norm gate_up activation down",
    ("one kernel name for all projections", 2): (
        "norm qkv_proj rope kv_write attention o_proj norm gate_up activation down"
    ),
    ("gpt-j, phi: attention and feed-forward in parallel", 1): (
        "norm qkv_proj rope kv_write attention o_proj gate_up activation down other other"
    ),
    ("deepseek: latent attention, shared and routed experts", 9): (
        "norm qkv_proj norm norm qkv_proj rope qkv_proj kv_write attention attention o_proj o_proj communication norm "
        f"{EXPERTS} communication"
    ),
    ("qwen3-next: three linear layers to one of attention", 1): (
        f"norm qkv_proj qkv_proj other other norm o_proj norm {EXPERTS}"
    ),
    ("qwen3-next: three linear layers to one of attention", 3): (
        f"norm qkv_proj norm norm rope kv_write attention other o_proj norm {EXPERTS}"
    ),
    ("olmo 2: norms behind both halves only", 4): (
        "qkv_proj norm norm rope kv_write attention o_proj norm other gate_up activation down norm other"
    ),
    ("whisper: self and cross attention in every layer", 2): (
        "norm qkv_proj kv_write attention o_proj other norm qkv_proj attention o_proj other norm gate_up activation "
        "down other"
    ),
    ("attention in three products", 0): (
        "norm qkv_proj qkv_proj qkv_proj rope attention attention attention o_proj other norm gate_up activation down "
        "other"
    ),
    ("norm fused into the all-reduce", 2): (
        "communication qkv_proj rope kv_write attention attention o_proj communication gate_up activation down"
    ),
}


@pytest.mark.parametrize(("name", "block"), ROLES)
def test_each_kernel_of_a_block_has_its_role(name: str, block: int) -> None:
    step = ARCHITECTURES[name]
    tokens, vocabulary = encode(pl.Series(step.names))
    own = tokens[step.starts[block] : step.ends[block]]
    assert block_roles(own, vocabulary) == ROLES[name, block].split()


CLAMP = "void at::native::vectorized_elementwise_kernel<4, at::native::launch_clamp_scalar(at::TensorIteratorBase&)>()"
TOP1 = "void at::native::sbtopk::gatherTopK<c10::BFloat16, unsigned int, 2, false>()"
DRAFT_HEAD = "nvjet_sm90_tst_320x8_64x4_2x1_v_bz_TNT"
SHARED_GATE = "nvjet_sm90_tst_8x64_64x16_1x4_h_bz_TNT"
SIGMOID = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::sigmoid_kernel_cuda(at::TensorIteratorBase&)>()"
)
SIGMOID_MUL = "triton_poi_fused_mul_sigmoid_7"
MUL = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16,"
    " c10::BFloat16, at::native::binary_internal::MulFunctor<float> > >()"
)
ROUTED = [ALIGN, MOE, SILU, MOE, MOE_SUM]
ROUTED_ROLES = "moe_routing moe_gate_up activation moe_down moe_combine"


@pytest.mark.parametrize(
    ("feed_forward", "roles"),
    [
        ([ROUTER, UP, SILU, DOWN, TOPK, *ROUTED], f"router gate_up activation down moe_routing {ROUTED_ROLES}"),
        ([UP, SILU, DOWN, ROUTER, TOPK, *ROUTED], f"gate_up activation down router moe_routing {ROUTED_ROLES}"),
        (
            [UP, UP, SILU, DOWN, ROUTER, TOPK, *ROUTED],
            f"gate_up gate_up activation down router moe_routing {ROUTED_ROLES}",
        ),
        (
            [UP, SILU, DOWN, SHARED_GATE, ROUTER, TOPK, *ROUTED],
            f"gate_up activation down other router moe_routing {ROUTED_ROLES}",
        ),
        (
            [UP, SILU, UP, MUL, DOWN, SHARED_GATE, SIGMOID_MUL, ROUTER, TOPK, *ROUTED],
            f"gate_up activation gate_up activation down other other router moe_routing {ROUTED_ROLES}",
        ),
        (
            [ROUTER, TOPK, *ROUTED, UP, SILU, DOWN, SHARED_GATE, SPLIT_K, SIGMOID, MUL, ADD],
            f"router moe_routing {ROUTED_ROLES} gate_up activation down other other other other other",
        ),
        (
            [ROUTER, TOPK, *ROUTED, SHARED_GATE, SIGMOID, UP, UP, SILU, DOWN, MUL, ADD],
            f"router moe_routing {ROUTED_ROLES} other other gate_up gate_up activation down other other",
        ),
        (
            [ROUTER, SIGMOID, ADD, TOPK, *ROUTED, UP, SILU, DOWN, ADD],
            f"router other other moe_routing {ROUTED_ROLES} gate_up activation down other",
        ),
        (
            [ROUTER, TOPK, *ROUTED, UP, SIGMOID_MUL, UP, MUL, DOWN, ADD],
            f"router moe_routing {ROUTED_ROLES} gate_up other gate_up activation down other",
        ),
        (
            ["dsv3_router_gemm_kernel", UP, SILU, DOWN, TOPK, *ROUTED],
            f"router gate_up activation down moe_routing {ROUTED_ROLES}",
        ),
        ([ROUTER, TOP1, *ROUTED], f"router moe_routing {ROUTED_ROLES}"),
        ([UP, CLAMP, DOWN, ADD], "gate_up activation down other"),
    ],
)
def test_the_feed_forward_is_told_apart_whatever_the_order_of_shared_experts(
    feed_forward: list[str], roles: str
) -> None:
    tokens, vocabulary = encode(pl.Series([RMS, QKV, ROPE, KV, FA3, OUT, RMS, *feed_forward]))
    assert block_roles(tokens, vocabulary)[7:] == roles.split()


def _outer(step: str) -> list[str]:
    names = ARCHITECTURES[step].names
    tokens, vocabulary = encode(pl.Series(names))
    cut = find_blocks(tokens, vocabulary)
    found = outer_roles(tokens, np.full(len(tokens), 1000), cut.block_of, vocabulary, SERVING)
    assert sorted(found) == np.flatnonzero(cut.block_of < 0).tolist()
    return [f"{found[position]} {names[position]}" for position in sorted(found)]


def test_every_pass_of_a_speculative_step_has_its_embedding_and_its_head() -> None:
    outer = _outer("speculation: a draft layer that norms embedding and hidden state")
    assert outer.count(f"embedding {EMBED}") == 3
    assert outer.count(f"lm_head {HEAD}") == 3
    assert outer.count(f"sampler {ARGMAX}") == 3


def test_a_vision_tower_has_no_head_of_its_own() -> None:
    outer = _outer("a vision tower and its merger ahead of the model")
    assert [line for line in outer if line.startswith(("lm_head", "embedding"))] == [
        f"embedding {EMBED}",
        f"lm_head {HEAD}",
    ]


def test_several_embedding_tables_are_all_embedding() -> None:
    outer = _outer("gpt-2, opt: layer norms and plain feed-forward")
    assert outer.count(f"embedding {EMBED}") == 2
    assert f"norm {LAYER_NORM}" in outer


def test_draft_heads_of_its_size_behind_it_do_not_take_the_place_of_lm_head() -> None:
    body = step([dense() for _ in range(4)]).names
    names = pl.Series([*body, UP, SILU, DRAFT_HEAD, ARGMAX])
    tokens, vocabulary = encode(names)
    durations = np.where(names == HEAD, 1000, np.where(names == DRAFT_HEAD, 1010, 100))
    found = outer_roles(tokens, durations, find_blocks(tokens, vocabulary).block_of, vocabulary, SERVING)
    assert [names[position] for position, role in found.items() if role == "lm_head"] == [HEAD]


BLOCK = [RMS, QKV, FA3, OUT, RMS, UP, SILU, DOWN]
TOPK_SORT = "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(int)"
ROUTER_SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 3, false, false>(float*, int)"
GATHER = "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)"
INDEX_ADD = "void at::native::indexFuncLargeIndex<float, long, unsigned int, 2, 2, -2, true>(float*, float*, long)"


def _after_blocks(behind: list[str], us: dict[str, float], *, serves: bool) -> list[str]:
    """Return the roles of what follows four blocks."""
    names = [*BLOCK * 4, RMS, *behind]
    tokens, vocabulary = encode(pl.Series(names))
    durations = np.array([int(1000 * us.get(name, 10.0)) for name in names], dtype=np.int64)
    evidence = StepEvidence(serves=serves, trains=False, typical_ns=10_000.0)
    block_of = find_blocks(tokens, vocabulary).block_of
    roles = outer_roles(tokens, durations, block_of, vocabulary, evidence)
    return [roles[position] for position in range(len(names) - len(behind), len(names))]


def test_a_product_much_wider_than_the_model_is_its_head() -> None:
    assert _after_blocks([HEAD, ARGMAX], {HEAD: 200.0}, serves=False) == ["lm_head", "sampler"]


def test_a_classifier_is_no_head_and_its_copy_no_sampler() -> None:
    assert _after_blocks([HEAD, ADD], {HEAD: 4.0}, serves=False) == ["other", "other"]
    assert _after_blocks([HEAD, ARGMAX], {HEAD: 4.0}, serves=False) == ["other", "other"]


def test_the_head_on_the_last_tokens_of_a_prompt_is_one_though_it_is_short() -> None:
    assert _after_blocks([HEAD, ARGMAX], {HEAD: 4.0}, serves=True) == ["lm_head", "sampler"]


def test_a_recording_that_ends_before_the_sampler_keeps_its_head() -> None:
    assert _after_blocks([EMBED, HEAD], {HEAD: 4.0}, serves=True) == ["copy", "lm_head"]
    assert _after_blocks([EMBED, HEAD], {HEAD: 4.0}, serves=False) == ["copy", "other"]


def test_what_follows_a_head_samples_only_where_something_picks_a_token() -> None:
    assert _after_blocks([HEAD, ADD], {HEAD: 200.0}, serves=True) == ["lm_head", "other"]
    assert _after_blocks([HEAD, ADD, ARGMAX], {HEAD: 200.0}, serves=True) == ["lm_head", "sampler", "sampler"]


def test_no_product_after_convolutions_is_a_head() -> None:
    convolution = "ampere_scudnn_128x64_relu_xregs_large_nn_v1"
    assert _after_blocks([convolution, HEAD], {HEAD: 200.0}, serves=False) == ["other", "other"]


@pytest.mark.parametrize("routing", [[ROUTER_SOFTMAX, TOPK_SORT], [TOPK_SORT, ROUTER_SOFTMAX]])
def test_experts_in_a_loop_after_attention_are_told_apart_from_it(routing: list[str]) -> None:
    expert = [GATHER, UP, SILU, UP, MUL, DOWN, INDEX_ADD]
    names = [RMS, QKV, FA3, OUT, RMS, ROUTER, *routing, *expert, *expert]
    tokens, vocabulary = encode(pl.Series(names))
    roles = block_roles(tokens, vocabulary)
    assert roles[:8] == ["norm", "qkv_proj", "attention", "o_proj", "norm", "router", "moe_routing", "moe_routing"]
    products = [role for name, role in zip(names[8:], roles[8:], strict=True) if name in (UP, DOWN)]
    assert products == ["moe_gate_up", "moe_gate_up", "moe_down"] * 2
