"""Work stands in the row of the kernels that do it: absorbed products of latent attention, gates of shared experts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from synthetic import BlockSpec, KernelSpec, ModelSpec, StepSpec, TraceSpec, Truth, catalogue, decode_steps
from traceanalyzer.model import decode_step, from_sums, named, ops
from traceanalyzer.roofline import Request, Roofline, Row, roofline
from traceanalyzer.trace import Trace

Open = Callable[..., tuple[Trace, Truth]]
BATCH, CONTEXT = 16, 1000

RMS = catalogue.NORM
TALL = "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT"
WIDE = "nvjet_sm90_tst_192x8_64x8_2x1_v_bz_TNT"
BATCHED = "nvjet_sm90_tst_128x8_64x11_1x2_h_bz_NNT"
MLA = "void flash_fwd_splitkv_mla_kernel<Flash_fwd_kernel_traits_mla<576, 64, 64, 8, cutlass::bfloat16_t, 512>>()"
MLA_CACHE = "void vllm::concat_and_cache_mla_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>()"
TOP_K = "void vllm::moe::topkGatingSoftmax<4, 128, 4, 16, 32, int>(float const*, bool const*, float*, int)"
ALIGN = "void vllm::moe::moe_align_block_size_kernel<int>(int const*, int*, int*, int*, int, int, int)"
MOE_SUM = "void vllm::moe::moe_sum_kernel<c10::BFloat16, 8>(c10::BFloat16*, c10::BFloat16 const*, int)"
LATENT_MIXED = [
    *(RMS, TALL, RMS, WIDE, catalogue.ROPE, MLA_CACHE),
    *(WIDE, catalogue.FLASH_ATTENTION),  # prompts: keys and values expanded
    *(BATCHED, MLA, BATCHED),  # decoding: W_UK, over the latents, W_UV
    *(TALL, RMS),
]
LATENT = [RMS, TALL, RMS, WIDE, catalogue.ROPE, BATCHED, MLA_CACHE, MLA, BATCHED, TALL, RMS]
GROUPED = [RMS, TALL, catalogue.ROPE, catalogue.KV_WRITE["cuda"], catalogue.FLASH_ATTENTION, TALL, RMS]
DENSE = [WIDE, catalogue.ACTIVATION, TALL]
EXPERTS = [TOP_K, ALIGN, "fused_moe_kernel", catalogue.ACTIVATION, "fused_moe_kernel", MOE_SUM]
SHARED_GATE = ["nvjet_sm90_tst_8x64_64x16_1x4_h_bz_TNT", "triton_poi_fused_mul_sigmoid_7"]
ROUTER = "nvjet_sm90_tss_64x8_64x16_4x1_v_bz_TNT"


def found(
    open_spec: Open, blocks: Sequence[Sequence[str]], model: str | None, steps: tuple[StepSpec, ...] = ()
) -> Roofline:
    layers = tuple(BlockSpec("block", tuple(KernelSpec(name, "other", 900.0) for name in block)) for block in blocks)
    ends = {
        "prologue": (KernelSpec(catalogue.EMBEDDING, "embedding", 9.0),),
        "epilogue": (KernelSpec(RMS, "norm", 9.0), KernelSpec(WIDE, "lm_head", 900.0)),
    }
    trace, _ = open_spec(
        TraceSpec(
            model=ModelSpec("made", layers, ends["prologue"], ends["epilogue"]),
            steps=steps or decode_steps(1, batch=BATCH, kv_tokens=CONTEXT),
            engine="vllm_detailed",
            record_shapes=False,
        )
    )
    return roofline(trace, Request(model=named(model) if model else None))


def row(result: Roofline, role: str, part: str = "") -> Row:
    return next(one for one in result.rows if (one.role, one.part) == (role, part))


def test_absorbed_products_are_in_the_rows_of_the_projections_around_the_attention(open_spec: Open) -> None:
    dense, sparse = [*LATENT, *DENSE], [*LATENT, ROUTER, *DENSE, *EXPERTS]
    result = found(open_spec, [dense] * 3 + [sparse] * 58, "DeepSeek-V3")
    planned = ops(named("DeepSeek-V3"), decode_step(BATCH, BATCH * CONTEXT))

    def flops(*wanted: str) -> float:
        return sum(op.flops or 0.0 for op in planned if op.name in wanted)

    # 128 heads: W_UK is [128, 512], W_UV [512, 128]; 2 FLOP a token and weight.
    one = 61 * 2 * BATCH * 128 * 512 * 128
    assert flops("absorb") == pytest.approx(2 * one)
    assert row(result, "qkv_proj").flops == pytest.approx(flops("qkv_a_proj", "q_b_proj") + one)
    assert row(result, "o_proj").flops == pytest.approx(flops("o_proj") + one)
    assert row(result, "attention").flops == pytest.approx(flops("attention"))
    moved = 61 * 2 * (128 * 512 * 128 + BATCH * 128 * (128 + 512))
    plain = sum(op.bytes or 0.0 for op in planned if op.name == "o_proj")
    assert row(result, "o_proj").bytes == pytest.approx(plain + moved)
    assert any("W_UV" in line for line in row(result, "o_proj").basis)


def test_a_mixed_step_of_latent_attention_has_the_prompts_ahead_and_every_product_in_its_row(open_spec: Open) -> None:
    dense, sparse = [*LATENT_MIXED, *DENSE], [*LATENT_MIXED, ROUTER, *DENSE, *EXPERTS]
    mixed = StepSpec(
        context_requests=1,
        context_tokens=512,
        context_kv_tokens=512,
        generation_requests=BATCH,
        generation_kv_tokens=BATCH * CONTEXT,
    )
    result = found(open_spec, [dense] * 3 + [sparse] * 58, "DeepSeek-V3", (mixed,))
    work = from_sums(context=(1, 512, 512), generation=(BATCH, BATCH, BATCH * CONTEXT))
    planned = {op.name: op.flops for op in ops(named("DeepSeek-V3"), work) if op.layer == 0}
    half = (planned["absorb"] or 0.0) / 2
    into = sum(planned[name] or 0.0 for name in ("qkv_a_proj", "q_b_proj", "kv_b_proj"))
    assert (row(result, "qkv_proj").count, row(result, "o_proj").count) == (61 * 4, 61 * 2)
    assert row(result, "qkv_proj").flops == pytest.approx(61 * (into + half))
    assert row(result, "o_proj").flops == pytest.approx(61 * ((planned["o_proj"] or 0.0) + half))


def test_the_gate_of_shared_experts_is_a_row_with_its_own_work(open_spec: Open) -> None:
    sparse = [*GROUPED, *DENSE, *SHARED_GATE, ROUTER, *EXPERTS]
    result = found(open_spec, [sparse] * 48, "Qwen3-Next-80B-A3B")
    gate = row(result, "other", "shared_gate")
    assert gate.count == 48
    assert gate.names == (SHARED_GATE[0],)
    assert gate.flops == pytest.approx(48 * 2 * BATCH * 2048)
    down = row(result, "down")
    assert down.count == 48
    assert down.flops == pytest.approx(48 * 2 * BATCH * 512 * 2048)


@pytest.mark.parametrize("model", ["Qwen3-30B-A3B", None])
def test_a_product_without_a_role_is_no_gate_of_shared_experts_where_none_is_known(
    open_spec: Open, model: str | None
) -> None:
    sparse = [*GROUPED, *DENSE, *SHARED_GATE, ROUTER, *EXPERTS]
    result = found(open_spec, [sparse] * 48, model)
    assert not [one for one in result.rows if one.part == "shared_gate"]
    assert row(result, "other", SHARED_GATE[0]).flops is None
