"""The ops of a step: formulas, layouts, formats, and what stays unknown."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.model import (
    FORMATS,
    Execution,
    ExpertRouting,
    ModelError,
    Op,
    Parallel,
    architecture_of,
    counted_ops,
    decode_step,
    from_lengths,
    from_marker,
    gemm,
    known_names,
    named,
    ops,
    parameters,
    total,
    with_formats,
)
from traceanalyzer.model.model_step import Step, stage_starts
from traceanalyzer.model.op import ROLES
from traceanalyzer.model.ops import ops_by_layers

LLAMA = "Llama-3.1-8B"
V3 = "DeepSeek-V3"
MIXTRAL = "Mixtral-8x7B"


def one(found: list[Op], name: str, layer: int | None = None) -> Op:
    return next(op for op in found if op.name == name and (layer is None or op.layer == layer))


@pytest.mark.parametrize("name", known_names())
def test_every_built_in_model_has_ops_of_known_roles_in_every_layer(name: str) -> None:
    architecture = named(name)
    found = ops(architecture, decode_step(4, 4000))
    assert {op.role for op in found} <= ROLES
    assert {op.layer for op in found if op.layer is not None} == set(range(len(architecture.layers)))
    assert total(found).flops
    assert total(found).bytes
    assert not [op for op in found if op.collective]


@pytest.mark.parametrize("name", known_names())
def test_a_step_of_many_tokens_reads_every_weight_once(name: str) -> None:
    architecture = named(name)
    found = ops(architecture, from_lengths([(1, 1)] * 4096))
    stored = parameters(architecture)
    assert stored.weight_bytes is not None
    embedding = architecture.vocab * architecture.hidden * 2
    read = sum(op.weight_bytes for op in found if op.role != "embedding")
    expected = stored.weight_bytes - (0 if architecture.tied else embedding)
    # Norms and biases are left out of the ops; latent attention keeps two of its projections in bf16.
    assert read == pytest.approx(expected, rel=0.02)


def test_linear_layers_follow_the_formula() -> None:
    op = one(ops(named(LLAMA), decode_step(4, 4000)), "qkv_proj")
    assert (op.m, op.n, op.k) == (4, 6144, 4096)
    assert op.flops == 201_326_592
    assert op.bytes == 50_413_568


def test_explicit_shapes_give_the_numbers_of_the_case() -> None:
    op = gemm(8192, 6144, 4096)
    assert (op.flops, op.bytes) == (412_316_860_416, 218_103_808)
    assert op.intensity == pytest.approx(1890.462, abs=1e-3)


def test_lm_head_works_on_sampled_sequences_only() -> None:
    found = ops(named(LLAMA), from_lengths([(500, 0), (1, 10)]))
    assert one(found, "lm_head").m == 2
    assert one(found, "qkv_proj").m == 501


def test_attention_follows_the_formula() -> None:
    op = one(ops(named(LLAMA), from_lengths([(10, 5), (1, 99)])), "attention")
    pairs = 10 * 5 + 55 + 100
    assert op.flops == 4 * 32 * 128 * pairs
    assert op.kv_bytes == 2 * (15 + 100) * 8 * 128 * 2
    assert op.activation_bytes == 2 * 11 * 32 * 128 * 2


def test_an_unknown_context_leaves_attention_unknown_and_says_what_to_pass() -> None:
    found = ops(named("gpt-oss-20b"), decode_step(32))
    for op in found:
        if op.role == "attention":
            assert op.flops is None
            assert op.bytes is None
            assert op.floor_ns(1000, 1000) is None
            assert "pass it" in op.notes[0]
        else:
            assert op.bytes is not None
    assert total(found).bytes is None


def test_latent_attention_decodes_over_latents_and_expands_prompts() -> None:
    decode = ops(named(V3), decode_step(2, 2000))
    assert one(decode, "attention").flops == 2 * 128 * (576 + 512) * 2000
    assert one(decode, "attention").kv_bytes == 2000 * 576 * 2
    assert one(decode, "absorb").flops == 2 * 2 * 128 * 512 * (128 + 128)
    prompt = ops(named(V3), from_lengths([(100, 0)]))
    assert one(prompt, "attention").flops == 2 * 128 * (192 + 128) * 5050
    assert one(prompt, "kv_b_proj").m == 100
    assert not [op for op in prompt if op.name == "absorb"]


def test_the_first_layers_of_deepseek_are_dense_and_later_ones_have_a_shared_expert() -> None:
    found = ops(named(V3), decode_step(2, 2000))
    names = {layer: {op.name for op in found if op.layer == layer} for layer in (2, 3)}
    assert "gate_up" in names[2]
    assert "moe_gate_up" not in names[2]
    assert {"moe_gate_up", "moe_down", "shared_gate_up", "shared_down"} <= names[3]


def test_experts_follow_the_formula_and_say_what_they_assume() -> None:
    op = one(ops(named(MIXTRAL), decode_step(1, 100)), "moe_gate_up")
    assert op.flops == 2 * 2 * 4096 * 2 * 14336
    assert op.distinct_experts == pytest.approx(2)
    assert op.weight_bytes == pytest.approx(2 * 4096 * 2 * 14336 * 2)
    assert "uniform" in op.notes[0]


def test_observed_counts_replace_the_expectation() -> None:
    counts = (3, 5, 0, 0, 0, 0, 0, 0)
    found = ops(
        named(MIXTRAL), decode_step(4, 100), routing=ExpertRouting(counts=counts), execution=Execution(moe_block_m=4)
    )
    op = one(found, "moe_down")
    assert op.distinct_experts == 2
    assert op.executed_flops == 2 * (4 + 8) * 14336 * 4096
    assert "observed" in op.notes[0]


def test_counts_of_another_model_are_refused() -> None:
    with pytest.raises(ModelError, match="8 experts"):
        ops(named(MIXTRAL), decode_step(4, 100), routing=ExpertRouting(counts=(8,)))


def test_tiles_and_padding_count_separately_from_what_is_needed() -> None:
    padded = Execution(moe_block_m=16, moe_hidden_width=2944, moe_ffn_width=2944, moe_input_width=3072, gemm_block_m=64)
    plain = ops(named("gpt-oss-20b"), decode_step(1, 100))
    tiled = ops(named("gpt-oss-20b"), decode_step(1, 100), execution=padded)
    needed, executed = one(plain, "moe_down"), one(tiled, "moe_down")
    assert needed.flops == executed.flops == 2 * 4 * 2880 * 2880
    assert executed.executed_flops == pytest.approx(2 * 4 * 16 * 2944 * 2944)
    assert needed.executed_flops is None
    assert one(tiled, "qkv_proj").executed_flops == 64 * (one(plain, "qkv_proj").flops or 0)
    assert one(tiled, "moe_pad").activation_bytes == (2880 + 3072) * 2


def test_the_activation_is_a_kernel_of_its_own_unless_fused() -> None:
    names = {op.name for op in ops(named(MIXTRAL), decode_step(1, 100))}
    fused = {op.name for op in ops(named(MIXTRAL), decode_step(1, 100), execution=Execution(fused_moe_activation=True))}
    assert names - fused == {"moe_activation"}
    assert "moe_activation" not in {op.name for op in ops(named("gpt-oss-20b"), decode_step(1, 100))}


def test_narrow_formats_bring_their_peak_and_the_kernel_that_narrows() -> None:
    found = ops(with_formats(named(LLAMA), weights=FORMATS["fp8"]), decode_step(4, 4000))
    op = one(found, "qkv_proj")
    assert op.dtype == "fp8"
    assert op.weight_bytes == 4096 * 6144
    assert one(found, "qkv_proj_quantize").activation_bytes == 4 * 4096 * 3
    assert one(found, "lm_head").dtype == "bf16"
    packed = one(ops(with_formats(named(LLAMA), weights=FORMATS["int4"]), decode_step(4, 4000)), "qkv_proj")
    assert packed.dtype == "bf16"
    assert packed.weight_bytes == 4096 * 6144 * 4.125 / 8


def test_tensor_parallel_splits_work_and_adds_two_all_reduces_a_layer() -> None:
    alone, split = (ops(named(LLAMA), decode_step(4, 4000), Parallel(tp=tp)) for tp in (1, 4))
    for name in ("qkv_proj", "attention", "o_proj", "gate_up", "down", "lm_head"):
        assert (one(alone, name).flops or 0) == 4 * (one(split, name).flops or 0)
    reduces = [op for op in split if op.collective == "all_reduce" and op.layer is not None]
    assert len(reduces) == 2 * 32
    assert reduces[0].payload_bytes == 4 * 4096 * 2
    assert reduces[0].wire_bytes == 2 * 3 / 4 * 4 * 4096 * 2


def test_heads_are_repeated_where_there_are_fewer_than_gpus() -> None:
    op = one(ops(named(LLAMA), decode_step(1, 1000), Parallel(tp=16)), "attention")
    assert op.kv_bytes == 2 * 1000 * 1 * 128 * 2


def test_expert_parallel_keeps_experts_whole_and_exchanges_tokens() -> None:
    spread = ops(named("gpt-oss-120b"), decode_step(8, 8000), Parallel(dp=4, ep=4))
    op = one(spread, "moe_gate_up")
    assert (op.experts, op.m, op.n) == (32, 32, 5760)
    assert one(spread, "moe_all_gather").payload_bytes == 32 * 2880 * 2
    assert one(spread, "moe_reduce_scatter").wire_bytes == 3 / 4 * 32 * 2880 * 2
    order = [found.name for found in spread if found.layer == 0]
    assert order.index("moe_all_gather") < order.index("moe_gate_up") < order.index("moe_reduce_scatter")
    sent = ops(
        named("gpt-oss-120b"),
        decode_step(8, 8000),
        Parallel(dp=4, ep=4),
        execution=Execution(moe_exchange="all_to_all"),
    )
    assert one(sent, "moe_dispatch").payload_bytes == 8 * 4 * 2880 * 2


def test_expert_parallel_over_tensor_ranks_only_reduces() -> None:
    found = ops(named("gpt-oss-120b"), decode_step(8, 8000), Parallel(tp=4, ep=4))
    assert {op.collective for op in found if op.layer is not None} == {None, "all_reduce"}
    assert one(found, "moe_gate_up").n == 5760


def test_stages_together_are_the_whole_model_with_a_send_at_each_border() -> None:
    whole = ops(named(LLAMA), decode_step(4, 4000), Parallel(pp=3))
    stages = [ops(named(LLAMA), decode_step(4, 4000), Parallel(pp=3), stage=stage) for stage in range(3)]
    assert [op for stage in stages for op in stage] == whole
    sends = [op for op in whole if op.collective == "send"]
    assert [op.payload_bytes for op in sends] == [2 * 4 * 4096 * 2] * 2


@pytest.mark.parametrize(
    ("layers", "sizes"),
    [(32, (11, 11, 10)), (61, (31, 30)), (61, (15, 15, 16, 15)), (62, (15, 16, 16, 15)), (63, (16, 16, 16, 15))],
)
def test_layers_left_over_go_to_the_stages_ahead_of_the_last(layers: int, sizes: tuple[int, ...]) -> None:
    starts = [*stage_starts(layers, len(sizes)), layers]
    assert tuple(end - start for start, end in pairwise(starts)) == sizes


@pytest.mark.parametrize(
    ("name", "layout"), [(LLAMA, Parallel(tp=3)), (LLAMA, Parallel(pp=33)), (MIXTRAL, Parallel(dp=3, ep=3))]
)
def test_layouts_that_do_not_fit_the_model_are_refused(name: str, layout: Parallel) -> None:
    with pytest.raises(ModelError):
        ops(named(name), decode_step(4, 4000), layout)


def test_recurrent_layers_of_unknown_size_are_unknown_and_not_zero() -> None:
    architecture = replace(named("Qwen3-Next-80B-A3B"), mixer=None)
    assert one(ops(architecture, decode_step(1, 10)), "recurrent").flops is None


def test_gemma_has_four_norms_and_two_more_on_queries_and_keys() -> None:
    found = [op for op in ops(named("gemma-3-27b"), decode_step(1, 10)) if op.layer == 3 and op.role == "norm"]
    assert [op.name for op in found] == ["input_norm", "qk_norm", "post_attention_norm", "ffn_norm", "post_ffn_norm"]


def test_a_parallel_block_has_one_norm_and_one_all_reduce() -> None:
    config = {"model_type": "cohere", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
              "intermediate_size": 128, "vocab_size": 100}  # fmt: skip
    found = [op for op in ops(architecture_of(config), decode_step(1, 10), Parallel(tp=2)) if op.layer == 1]
    assert sum(op.role == "norm" for op in found) == 1
    assert sum(op.collective == "all_reduce" for op in found) == 1


@given(st.integers(1, 300), st.integers(0, 2000), st.sampled_from([LLAMA, "gpt-oss-20b", V3]))
def test_more_tokens_never_need_less(tokens: int, past: int, name: str) -> None:
    steps = [counted_ops(Step(named(name), from_lengths([(1, past + 1)] * n))) for n in (tokens, tokens + 1)]
    flops = [sum((op.flops or 0) * count for op, count in step) for step in steps]
    sizes = [sum((op.bytes or 0) * count for op, count in step) for step in steps]
    assert flops[1] > flops[0]
    assert sizes[1] > sizes[0]


def test_the_real_marker_gives_the_sliding_layers_their_window() -> None:
    workload = from_marker("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)")
    assert workload is not None
    found = ops(named("gpt-oss-20b"), workload)
    assert one(found, "attention", 1).flops == 4 * 64 * 64 * 55086
    assert one(found, "attention", 0).flops == 4 * 64 * 64 * 32 * 128
    assert "upper bound" in one(found, "attention", 0).notes[0]


@pytest.mark.parametrize(("name", "layout", "stage"), [
    ("gpt-oss-20b", Parallel(), None), (V3, Parallel(tp=4, pp=3), None),
    (V3, Parallel(pp=3), 1), (V3, Parallel(pp=3), 2),
])  # fmt: skip
def test_counted_ops_are_the_same_ops(name: str, layout: Parallel, stage: int | None) -> None:
    listed = ops(named(name), decode_step(8, 8000), layout, stage=stage)
    counted = counted_ops(Step(named(name), decode_step(8, 8000), layout, stage=stage))
    assert sum(count for _, count in counted) == len(listed)
    bytes_counted = sum((op.bytes or 0) * count for op, count in counted)
    assert bytes_counted == pytest.approx(total(listed).bytes)
    assert sum(op.wire_bytes or 0 for op in listed) == pytest.approx(sum((op.wire_bytes or 0) * n for op, n in counted))


def test_a_stage_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ModelError, match="stage"):
        ops(named(LLAMA), decode_step(1, 10), Parallel(pp=2), stage=2)


@pytest.mark.parametrize("name", ["gpt-oss-20b", "DeepSeek-V3", "Qwen3-Next-80B-A3B"])
@pytest.mark.parametrize("stage", [None, 0, 1])
def test_ops_by_layers_are_those_of_every_layer(name: str, stage: int | None) -> None:
    model, parallel = named(name), Parallel(pp=2)
    every = ops(model, decode_step(4, 4096), parallel, stage=stage)
    by_layers = ops_by_layers(Step(model, decode_step(4, 4096), parallel, stage=stage))
    spread = [replace(op, layer=layer) for op, layers in by_layers for layer in layers or (None,)]
    assert Counter(replace(op, kind=None) for op in every) == Counter(spread)
