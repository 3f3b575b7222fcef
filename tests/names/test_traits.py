"""What names prove about the step: phase of attention, backward pass, optimizer, sampler, softmax."""

from __future__ import annotations

from dataclasses import fields

import pytest

from tests.support.engine_names import ATEN, CONVOLUTIONS, DRAW, GGML, KINDS
from traceanalyzer.names import Traits, parse, read_traits

PROVEN: dict[str, list[str]] = {
    "split_kv_reduce": [
        "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4> >(P)",
        "void cutlass::device_kernel<flash::FlashAttnFwdCombine<X> >(P)",
        "_ZN7ck_tile6kentryILi1ENS_28FmhaFwdSplitKVCombineKernelINS_1XEEEJEEEvDpT1_",
        "reduce_segments",
        "_fwd_kernel_stage2",
        "_decode_softmax_reducev_fwd",
        "void kn_mla_reduce_v1<MlaReduceKernelV1Traits<512, 16> >(P)",
        "void flashinfer::PersistentVariableLengthMergeStatesKernel<8u>(P)",
        "void flash_attn_combine_results<128>(float const*)",
        "_splitK_reduce",
    ],
    "paged_decode": [
        "void vllm::paged_attention_v1_kernel<half>(P)",
        "void paged_attention_ll4mi_QKV_mfma16_kernel<0, half, half, 1, 128, 256>(P)",
        "kernel_paged_attention_2d",
        "kernel_unified_attention_3d",
        "void flashinfer::BatchDecodeWithPagedKVCacheKernel<0, 2u>(P)",
        "_fwd_grouped_kernel_stage1",
        "_fwd_kernel_stage1",
        "fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausalP64VarSeqQ8Kv128PersistentSwapsAbForGen",
        "void tensorrt_llm::kernels::mmha::masked_multihead_attention_kernel<__half, 128>(P)",
        "void sm90::flash_fwd_splitkv_mla_kernel<X>(P)",
        "triton_tem_fused_flex_decoding_2",
        "void deep_gemm::sm90_fp8_paged_mqa_logits<X>(P)",
        "void flash_attn_vec_ext_f16<128, 1, (ggml_type)1>(char const*)",
        "_selective_scan_update_kernel",
        "_causal_conv1d_update_kernel",
        "fused_recurrent_gated_delta_rule_packed_decode_kernel",
        "paged_attention_decode_sliding_window",
    ],
    "varlen_prefill": [
        "_fwd_kernel",
        "void flashinfer::BatchPrefillWithRaggedKVCacheKernel<X>(P)",
        "void flashinfer::SinglePrefillWithKVCacheKernel<X>(P)",
        "_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelINS_1XEEEJEEEvDpT1_",
        "fmhaSm100aKernel_QkvBfloat16OBfloat16H128PagedKvCausalVarSeqQ128Kv128PersistentContext",
        "chunk_gated_delta_rule_fwd_kernel_h_blockdim64",
        "_chunk_scan_fwd_kernel",
        "_causal_conv1d_fwd_kernel",
        "void deep_gemm::sm90_fp8_mqa_logits<X>(P)",
    ],
    "argmax": [
        ATEN.format("reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float> > >"),
        "aten::argmax",
    ],
    "topk": [
        ATEN.format("sbtopk::gatherTopK<float, unsigned int, 2, false>"),
        "void vllm::moe::topkGatingSoftmax<4, 128, 4, 16, 32, int>(P)",
        "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u>(P)",
    ],
    "sampling_random": [
        ATEN.format(DRAW.format("uniform_and_transform<float, exponential_kernel>")),
        ATEN.format(DRAW.format("uniform_and_transform")),
        ATEN.format(DRAW.format("normal_and_transform")),
        "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u>(P)",
        "_gumbel_sample_kernel",
        "aten::multinomial",
    ],
    "softmax": [
        ATEN.format("cunn_SoftMaxForward<4, float, float, float, SoftMaxForwardEpilogue>"),
        ATEN.format("softmax_warp_forward<float, float, float, 7, false, false>"),
        "void soft_max_f32<true, 0, 0, __half>(float const*)",
        "triton_per_fused__softmax_add_mul_4",
        "aten::_softmax",
    ],
}
AMBIGUOUS = [
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4> >(P)",
    "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4> >(P)",
    "kernel_unified_attention_2d",
    "kernel_unified_attention",
    "void flashinfer::BatchPrefillWithPagedKVCacheKernel<X>(P)",
    "void cutlass::device_kernel<flash::FlashAttnFwdSm90<X> >(P)",
    "_attn_fwd",
    "void vllm::merge_attn_states_kernel<float>(P)",
    "void flash::prepare_varlen_num_blocks_kernel<8, true>(P)",
    "fmha_cutlassF_f16_aligned_64x64_rf_sm80(P)",
]
"""Kernels that run in prefill and in decode."""


def proven(name: str) -> set[str]:
    traits = read_traits(parse(name))
    return {field.name for field in fields(Traits) if getattr(traits, field.name)}


@pytest.mark.parametrize(
    ("trait", "name"), [(trait, name) for trait, own in PROVEN.items() for name in own], ids=lambda text: text[:60]
)
def test_a_name_proves_its_trait(trait: str, name: str) -> None:
    assert trait in proven(name)


@pytest.mark.parametrize("name", AMBIGUOUS, ids=lambda name: name[:60])
def test_attention_that_runs_in_both_phases_proves_neither(name: str) -> None:
    assert proven(name).isdisjoint({"paged_decode", "varlen_prefill", "split_kv_reduce"})


@pytest.mark.parametrize("trait", ["paged_decode", "varlen_prefill"])
def test_no_name_proves_both_phases(trait: str) -> None:
    other = {"paged_decode": "varlen_prefill", "varlen_prefill": "paged_decode"}[trait]
    assert [name for name in PROVEN[trait] if other in proven(name)] == []


def test_backward_and_convolution_follow_direction_and_kind() -> None:
    for name, direction in CONVOLUTIONS:
        assert ("convolution" in proven(name), "backward" in proven(name)) == (True, direction == "backward"), name
    for name, kind, _, direction in KINDS:
        assert ("backward" in proven(name)) == (direction == "backward"), name
        assert ("optimizer" in proven(name)) == (kind == "optimizer"), name
    assert [name for name, _ in GGML if proven(name) & {"backward", "optimizer"}] == []


@pytest.mark.parametrize(
    "name",
    [
        ATEN.format("cunn_SoftMaxForward<4, float, float, float, at::native::LogSoftMaxForwardEpilogue>"),
        ATEN.format("softmax_warp_forward<float, float, float, 10, true, false>"),
        "void softmax_warp_forward<float, float, float, (int)10, (bool)1>(float*, float const*)",
        ATEN.format("cunn_SoftMaxBackward<4, float, float, float, Epilogue>"),
        "aten::_log_softmax",
        "void vllm::moe::topkGatingSoftmax<4, 128, 4, 16, 32, int>(P)",
        "void flashinfer::sampling::OnlineSoftmaxFusedKernel<1024u>(P)",
    ],
    ids=lambda name: name[:60],
)
def test_a_logarithm_a_gradient_or_a_router_is_no_softmax_of_its_own(name: str) -> None:
    assert "softmax" not in proven(name)
