"""One name or more of every scheme, with what must be read from it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engine_names import CONVOLUTIONS, ENGINES, GGML
from tests.support.places import ROOT
from traceanalyzer.names import parse, role_hint
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import FAMILIES, FAMILY_OF_KIND, KINDS, ROLE_OF_KIND
from traceanalyzer.names.registry import Scheme, first_reading, register, schemes

CUTE = "cute::tuple<cute::C<{}>, cute::C<{}>, cute::C<{}> >"
GROUPED = (
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::gemm::GroupProblemShape<"
    "cute::tuple<int, int, int> >, cutlass::gemm::collective::CollectiveMma<"
    "cutlass::gemm::MainloopSm90ArrayTmaGmmaWarpSpecialized<4, "
    + CUTE.format(2, 1, 1)
    + ", Schedule>, "
    + CUTE.format(128, 64, 128)
    + ", cutlass::float_e4m3_t, cute::tuple<long>, cutlass::float_e4m3_t, cute::tuple<long>, SmemLayout> > >(P)"
)
FA3 = (
    "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<"
    "flash::CollectiveMainloopFwdSm90<2, "
    + CUTE.format(1, 1, 1)
    + ", "
    + CUTE.format(128, 176, 128)
    + ", 128> > > >(P)"
)
CK_SCALED = (
    "void ck::kernel_moe_gemm<ck::GridwiseMoeGemmBlockScale<ck::tensor_layout::gemm::RowMajor, ck::f8_fnuz_t, float,"
    " (ck::tensor_operation::device::GemmSpecialization)0, 256, 1, 128, 128, 16, 128, 256, 16, 16>, true>(A)"
)
CK_MX = (
    "void ck::kernel_moe_mxgemm_2lds<ck::GridwiseMoeGemmMX_BPreshuffle<ck::tensor_layout::gemm::RowMajor,"
    " (ck::tensor_operation::device::GemmSpecialization)0, 32, 256, 64, 128, 128, 16, 16>, true>(A)"
)
CK_TILE = (
    "void ck_tile::kentry<2, ck_tile::MoeFlatmmKernel<ck_tile::Partitioner<ck_tile::TileGemmShape<"
    "ck_tile::sequence<16, 128, 256>, ck_tile::sequence<1, 4, 1> > > > >(K)"
)
CK_TILE_MANGLED = (
    "_ZN7ck_tile6kentryILi2ENS_10GemmKernelINS_11PartitionerINS_13TileGemmShapeINS_8sequenceIJLi64ELi128ELi32EEEE"
)
DEEP_HOPPER = (
    "void deep_gemm::sm90_fp8_gemm_1d2d_impl<(cute::UMMA::Major)0, 0u, 7168u, 2048u, 1u, 64u, 128u, 128u, 128u>(f)"
)
DEEP_BLACKWELL = (
    "void deep_gemm::sm100_fp8_gemm_1d1d_impl<(cute::UMMA::Major)0, (cute::UMMA::Major)0, (unsigned int)128,"
    " (unsigned int)128, (unsigned int)0, (unsigned int)4096, (unsigned int)7168, (unsigned int)128,"
    " (unsigned int)192, (unsigned int)128, (unsigned int)8, (unsigned int)128>(f)"
)
BMM = "bmm_{}_Fp32_Ab16_Bb16_t128x8x512u2_s{}_et128x8_m128x8x64_c1x1x1_rM_TN_transOut_schPd2x1x2x3_bN{}_dynB_sm100f"
MARLIN_MOE = (
    "void marlin_moe_wna16::Marlin<1125899906909960l, 562949953487106l, 1125899906909960l, 128, 4, 8, 4, false, 4>(i)"
)
ATEN = "void at::native::{}(int)"
COPY = (
    "elementwise_kernel<128, 4, at::native::gpu_kernel_impl<at::native::direct_copy_kernel_cuda(at::TensorIterator&)"
    "::{lambda()#3}::operator()() const::{lambda(long)#1}>(at::TensorIteratorBase&)::{lambda(int)#1}>"
)

CUTLASS_MANGLED = (
    "_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalIN4cute5tupleIJiiiiEEENS1_10collective13CollectiveMmaI"
    "NS1_34MainloopSm90TmaGmmaWarpSpecializedILi7ENS5_IJNS4_1CILi1EEENSA_ILi2EEESB_EEENS1_32KernelTmaWarpSpecialized"
    "PingpongEEENS5_IJNSA_ILi64EEENSA_ILi128EEESH_EEENS_12float_e4m3_tENS5_IJlSB_lEEESJ_SK_EEEEEEvNT_6ParamsE"
)
DEEP_MANGLED = (
    "_ZN9deep_gemm23sm90_fp8_gemm_1d2d_implILN4cute4UMMA5MajorE0ELj0ELj7168ELj2048ELj1ELj64ELj128ELj128EEEvPf"
)

CASES: list[tuple[str, dict[str, Any]]] = [
    (
        "_matmul_ogs_NNT_bf16xbf16xmxfp4_32x256x128x1_swiglu",
        {
            "scheme": "triton_kernels",
            "kind": "gemm",
            "family": "moe_gemm",
            "tile": (32, 256, 128),
            "split_k": 1,
            "epilogue": "swiglu",
            "role": "moe_gate_up",
            "retunable": True,
            "library": "triton_kernels",
        },
    ),
    ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1.kd", {"tile": (16, 128, 256), "role": None, "epilogue": None}),
    ("_p_matmul_TNT_fp8e4nvxfp8e4nvxmxfp4_128x256x128x2", {"scheme": "triton_kernels", "split_k": 2}),
    ("_finalize_matmul_scatter_bf16", {"kind": "gemm_helper", "role": "moe_combine", "tile": None}),
    ("_combined_routing_memset", {"kind": "moe_routing", "role": "moe_routing"}),
    ("_topk_forward", {"kind": "moe_routing"}),
    (
        "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT",
        {
            "scheme": "nvjet",
            "tile": (256, 128, 64),
            "stages": 4,
            "cluster": (1, 2),
            "epilogue": "bias",
            "retunable": False,
            "library": "cuBLAS",
            "split_k": None,
        },
    ),
    (
        "nvjet_sm100_tst_32x64_64x16_4x2_2cta_h_bz_splitK_bias_TNN",
        {"tile": (32, 64, 64), "stages": 16, "cluster": (4, 2)},
    ),
    ("nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NNT", {"tile": (256, 128, 64), "stages": 4}),
    (
        "nvjet_sm120_tst_mma_64x64x128_3_32x32x128_tmaAB_alignCD4_bz_TNNN",
        {"tile": (64, 64, 128), "stages": 3, "cluster": None},
    ),
    ("nvjet_sm200_of_another_form", {"scheme": "nvjet", "kind": "gemm", "tile": None}),
    (
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT16x16x256_MI16x16x1_SN_GSUAMBSK_GLS0_ISA942_SK0_WG16_4_4",
        {"scheme": "tensile", "tile": (16, 16, 256), "split_k": None, "library": "hipBLASLt", "retunable": True},
    ),
    ("Cijk_Ailk_Bljk_SB_MT64x64x16_SE_GSU4_WG16_16_1", {"tile": (64, 64, 16), "split_k": 4, "library": "Tensile"}),
    ("Cijk_S_PostGSU4_VW2", {"kind": "gemm_helper", "tile": None}),
    (
        "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x32x64_stage4_warpsize2x2x1_tensor16x8x16_kernel",
        {"scheme": "cublas_xmma", "tile": (128, 32, 64), "stages": 4, "cluster": None},
    ),
    ("ampere_bf16_s16816gemm_bf16_128x64_sliced1x2_ldg8_f2f_stages_64x5_tn", {"tile": (128, 64, 64), "stages": 5}),
    ("volta_fp16_s884gemm_fp16_128x256_ldg8_f2f_tn", {"scheme": "cublas", "tile": (128, 256, None), "stages": None}),
    ("turing_fp16_s1688gemm_fp16_256x64_ldg8_f2f_nn", {"tile": (256, 64, None)}),
    ("ampere_sgemm_32x32_sliced1x4_tn", {"tile": (32, 32, None)}),
    ("void gemv2T_kernel_val<int, int, float, 128, 16, 4, 4>(P)", {"scheme": "gemv", "kind": "gemm", "tile": None}),
    ("void cublasLt::splitKreduce_kernel<32, 16, int>(P)", {"kind": "gemm_helper", "role": None}),
    ("void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensor<float> > >(P)", {"kind": "reduction"}),
    (
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x128_32x6_tn_align8>(P)",
        {"scheme": "cutlass2", "tile": (64, 128, 32), "stages": 6, "epilogue": "relu"},
    ),
    (
        "cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_bf16_bf16_128x128x64_2x1x1_0_tnn_align8_epi_tma",
        {"scheme": "cutlass3", "tile": (128, 128, 64), "cluster": (2, 1, 1), "stages": None},
    ),
    (
        GROUPED,
        {"scheme": "cutlass3", "family": "moe_gemm", "tile": (128, 64, 128), "cluster": (2, 1, 1), "stages": 4},
    ),
    (CUTLASS_MANGLED, {"scheme": "cutlass3", "tile": (64, 128, 128), "cluster": (1, 2, 1), "stages": 7}),
    (FA3, {"scheme": "cutlass3", "kind": "attention", "tile": None, "cluster": None, "library": "FlashAttention"}),
    (
        "void cutlass::device_kernel<flash::FlashAttnFwdCombine<cute::tuple<cute::C<16> >, 6> >(P)",
        {"kind": "attention"},
    ),
    ("void cutlass::device_kernel<machete::MacheteKernelTemplate<half> >(P)", {"library": "machete", "kind": "gemm"}),
    (
        "_ZN7cutlass13device_kernelIN5flash19enable_sm90_or_laterINS1_16FlashAttnFwdSm90INS1_9MainloopXEEEEEEvT_",
        {"kind": "attention", "tile": None},
    ),
    (
        "kernel_cutlass_kernel_flashinfernormkernelsrmsnormRMSNormKernel_object_at__tensorptrbf16gmemalign128",
        {"scheme": "cute_dsl", "kind": "norm"},
    ),
    (
        "_gemm_a16_w16_kernel_BLOCK_SIZE_M_64_BLOCK_SIZE_N_128_BLOCK_SIZE_K_32_GROUP_SIZE_M_1_NUM_KSPLIT_4_EVEN_K_1",
        {"scheme": "aiter_triton", "tile": (64, 128, 32), "split_k": 4, "retunable": True},
    ),
    (
        "_gemm_a8w8_blockscale_reduce_kernel_BLOCK_SIZE_M_32_BLOCK_SIZE_N_32_ACTUAL_KSPLIT_8",
        {"scheme": "aiter_triton", "kind": "gemm_helper", "role": None},
    ),
    ("_attn_fwd_BLOCK_M_128_BLOCK_N_64_BLOCK_DMODEL_256", {"kind": "attention", "tile": (128, 64, None)}),
    (CK_SCALED, {"scheme": "ck", "family": "moe_gemm", "tile": (16, 128, 256)}),
    (CK_MX, {"scheme": "ck", "tile": (64, 128, 128)}),
    (CK_TILE, {"scheme": "ck_tile", "family": "moe_gemm", "tile": (16, 128, 256)}),
    (CK_TILE_MANGLED, {"scheme": "ck_tile", "kind": "gemm", "tile": (64, 128, 32)}),
    ("void ck_tile::kentry<2, ck_tile::MoeSortingKernel<int> >(K)", {"kind": "moe_routing", "tile": None}),
    (
        "moe_ck2stages_gemm2_256x32x64x128_1x4_MulABScaleExpertWeight_v3_Nswizzle0_Quant3",
        {"scheme": "aiter_two_stage", "tile": (32, 64, 128), "role": "moe_down", "family": "moe_gemm"},
    ),
    ("_ZN5aiter37bf16gemm_fp32bf16_tn_64x96_splitk_cleanE.kd", {"scheme": "aiter_asm", "tile": (64, 96, None)}),
    ("_ZN5aiter42f4gemm_bf16_per1x32Fp4_BpreShuffle_256x128E", {"tile": (256, 128, None)}),
    (
        "aiter::fmoe_stage1_bf16_pertokenFp8_blockscale_g1u1_64x128_2tg_pf3",
        {"scheme": "aiter_asm", "role": "moe_gate_up", "family": "moe_gemm"},
    ),
    (
        "void aiter::kn_entry_2c_sbhd_cached_indirect_inplace<aiter::OpCachedFwd, 0, false, true>(P)",
        {"kind": "rope", "role": "rope"},
    ),
    ("flydsl_gemm_bf16_t16x64x32_split_k9_x", {"scheme": "flydsl", "tile": (16, 64, 32), "split_k": 9}),
    ("flydsl_moe2_afp4_wfp4_bf16_t32x128x256_atomic", {"role": "moe_down", "tile": (32, 128, 256)}),
    ("hgemm_bf16_16x64x32x8_SPK3_W1x2x1_TN", {"scheme": "hgemm", "tile": (16, 64, 32), "split_k": 3}),
    (
        BMM.format("Bfloat16_E2m1E2m1", "5", ""),
        {
            "scheme": "trtllm_gen",
            "tile": (128, 8, 512),
            "stages": 5,
            "cluster": (1, 1, 1),
            "family": "moe_gemm",
            "role": None,
        },
    ),
    (
        BMM.format("E2m1_E2m1E2m1", "3x3x1", "_swiGlu"),
        {"stages": None, "epilogue": "swiglu", "role": "moe_gate_up"},
    ),
    (
        "fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausalP32VarSeqQ8Kv128StaticSwapsAbForGen",
        {"scheme": "trtllm_fmha", "kind": "attention", "tile": None},
    ),
    (DEEP_HOPPER, {"scheme": "deep_gemm", "tile": (64, 128, 128), "family": "gemm", "retunable": False}),
    (DEEP_MANGLED, {"scheme": "deep_gemm", "tile": (64, 128, 128)}),
    (DEEP_BLACKWELL, {"tile": (128, 192, 128), "family": "moe_gemm"}),
    ("void deep_gemm::sm90_fp8_gemm_1d2d_impl<1u, 2u, 3u>(f)", {"kind": "gemm", "tile": None}),
    ("_silu_mul_fp8_quant_deep_gemm", {"kind": "activation"}),
    (MARLIN_MOE, {"scheme": "marlin", "family": "moe_gemm", "tile": None, "stages": None}),
    ("void marlin::gptq_marlin_repack_kernel<256>(P)", {"kind": "quantize"}),
    (
        "void wvSplitK_hf_sml_<__hip_bfloat16, 64, 4, 16, 8, 1, 1>(int)",
        {"scheme": "gemv", "tile": None, "kind": "gemm"},
    ),
    (
        "triton_tem_fused_addmm_relu_3",
        {"scheme": "inductor_template", "tile": None, "epilogue": "relu", "retunable": True},
    ),
    ("triton_tem_fused__to_copy_mm_t_view_5", {"scheme": "inductor_template", "kind": "gemm", "epilogue": None}),
    ("triton_tem_fused_flex_attention_2", {"kind": "attention"}),
    ("triton_red_fused_add_mean_mul_pow_rsqrt_7", {"scheme": "inductor_fused", "kind": "norm", "role": "norm"}),
    ("triton_poi_fused_add_cat_mul_split_sub_view_5", {"kind": "rope", "role": "rope"}),
    ("triton_poi_fused_add_cat_mul_neg_slice_2", {"kind": "rope", "role": "rope"}),
    ("triton_poi_fused_add_mul_sub_where_2", {"kind": "elementwise", "role": None}),
    ("triton_poi_fused_add_cat_mul_2", {"kind": "elementwise", "role": None}),
    ("triton_per_fused_gather_sigmoid_topk_2", {"kind": "sort", "role": None}),
    ("void moe_q4_K<c10::BFloat16, true>(P)", {"kind": "gemm", "family": "moe_gemm"}),
    ("triton_poi_fused_silu_mul_4", {"kind": "activation", "role": "activation", "fused_ops": "silu_mul"}),
    ("triton_poi_fused__to_copy_add_cat_cos_mul_neg_sin_3", {"kind": "rope"}),
    ("triton_poi_fused__to_copy_1", {"kind": "memory"}),
    ("triton_poi_fused_0", {"kind": "elementwise", "fused_ops": None}),
    ("triton_per_fused_add_sum_5", {"kind": "reduction"}),
    (
        "fused_moe_kernel",
        {"scheme": "triton", "kind": "gemm", "family": "moe_gemm", "role": None, "tile": None, "retunable": True},
    ),
    ("_w8a8_triton_block_scaled_mm", {"scheme": "triton", "retunable": True, "tile": None}),
    ("scaled_mm_kernel", {"scheme": "triton", "kind": "gemm", "retunable": False}),
    ("kernel_unified_attention_3d", {"scheme": "triton", "kind": "attention", "retunable": False}),
    ("reduce_segments", {"kind": "attention"}),
    (
        "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4> >(P)",
        {"scheme": "attention", "tile": None},
    ),
    ("void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(P)", {"scheme": "flashinfer", "kind": "norm"}),
    ("void flashinfer::BatchDecodeWithPagedKVCacheKernel<0, 2u>(P)", {"kind": "attention", "library": "FlashInfer"}),
    ("void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u>(P)", {"role": "sampler"}),
    (
        "void paged_attention_ll4mi_QKV_mfma16_kernel<0, half, half, 1, 128, 256>(P)",
        {"kind": "attention", "tile": None},
    ),
    ("_selective_scan_update_kernel", {"scheme": "ssm", "kind": "ssm", "family": "ssm"}),
    ("chunk_gated_delta_rule_fwd_kernel_h_blockdim64", {"kind": "ssm"}),
    ("merge_16x16_to_64x64_inverse_kernel", {"kind": "ssm", "tile": None}),
    ("aten::addmm", {"scheme": "cpu_op", "kind": "gemm"}),
    ("aten::as_strided", {"scheme": "cpu_op", "kind": "view", "role": "other"}),
    ("_C::fused_add_rms_norm", {"scheme": "cpu_op", "kind": "norm", "library": "vLLM"}),
    ("mkldnn::_linear_pointwise", {"kind": "gemm", "library": "oneDNN"}),
    (ATEN.format(COPY), {"scheme": "aten", "kind": "memory", "role": "copy"}),
    (ATEN.format("vectorized_elementwise_kernel<4, at::native::FillFunctor<int> >"), {"kind": "memory"}),
    (
        ATEN.format("reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float> > >"),
        {"kind": "sampling"},
    ),
    (
        ATEN.format("reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float> > >"),
        {"kind": "reduction"},
    ),
    (ATEN.format("vectorized_gather_kernel<16, long>"), {"kind": "index", "family": "memory", "role": None}),
    ("_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_9ArgMaxOpsIfEEjfLi4EEEEEvT1_", {"kind": "sampling"}),
    ("void vllm::moe::topkGatingSoftmax<4, 128, 4, 16, 32, int>(P)", {"scheme": "vllm", "kind": "moe_routing"}),
    ("void vllm::moe::moe_sum_kernel<c10::BFloat16, 8>(P)", {"kind": "moe_combine", "role": "moe_combine"}),
    ("void vllm::rms_norm_static_fp8_quant_kernel<c10::BFloat16>(P)", {"kind": "norm"}),
    ("void vllm::act_and_mul_quant_kernel<c10::BFloat16, &vllm::silu_kernel<float> >(P)", {"kind": "activation"}),
    ("void vllm::concat_and_cache_mla_kernel<half>(P)", {"role": "kv_write"}),
    (
        "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb0ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_diiiiiiib",
        {"scheme": "aiter", "role": "norm"},
    ),
    (
        "_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_ES3_S5_EEEEvPS3_PS4_i",
        {"scheme": "sglang", "role": "activation"},
    ),
    (
        "void tensorrt_llm::kernels::cutlass_kernels::finalizeMoeRoutingKernel<X>(P)",
        {"scheme": "tensorrt_llm", "role": "moe_combine"},
    ),
    ("void deep_ep::internode_ll::dispatch<true, 10, 7168>(void*)", {"kind": "communication", "library": "DeepEP"}),
    ("ncclKernel_AllReduce_RING_LL_Sum_half(ncclWorkElem)", {"kind": "communication", "library": "NCCL"}),
    ("void mscclpp::allreduce7<half>(P)", {"kind": "communication"}),
    ("gloo:all_reduce", {"scheme": "communication"}),
    ("_C::shm_allreduce", {"kind": "communication", "role": "communication"}),
    ("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(P)", {"kind": "communication"}),
    (
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_rmsnorm<bf16>(P)",
        {"role": "communication", "epilogue": "norm"},
    ),
    ("Memcpy DtoH (Device -> Pinned)", {"scheme": "memory", "role": "copy"}),
    ("__amd_rocclr_copyBuffer.kd", {"kind": "memory"}),
    ("fused_qk_rope_cat_and_cache", {"scheme": "keyword", "role": "rope"}),
    (
        "void router_gemm_kernel_float_output<__nv_bfloat16, 128, 8, 1, 256, 7168>(P)",
        {"kind": "gemm", "role": "router"},
    ),
    ("create_flashinfer_kv_indices_triton", {"kind": "metadata", "role": "other"}),
    ("per_token_group_quant_8bit_kernel", {"kind": "quantize", "role": "quantize"}),
    ("chunked_prefill_unheard_of", {"scheme": None, "kind": "unknown", "family": "unknown", "role": None}),
    ("=SUM(A1:A9)", {"kind": "unknown"}),
]


@pytest.mark.parametrize(("name", "expected"), CASES, ids=[name[:48] for name, _ in CASES])
def test_reads(name: str, expected: dict[str, Any]) -> None:
    kernel = parse(name)
    assert {field: getattr(kernel, field) for field in expected} == expected
    assert role_hint(kernel) == kernel.role


def test_element_types_of_an_mxfp4_product_are_not_cut_at_the_x_of_mx() -> None:
    dtypes = parse("_matmul_ogs_NNT_bf16xfp16xmxfp4_32x256x128x1").dtypes
    assert (dtypes.output, dtypes.activation, dtypes.weight) == ("bf16", "fp16", "mxfp4")


def test_inputs_of_different_types_are_not_told_apart_where_the_operands_may_be_swapped() -> None:
    dtypes = parse("nvjet_sm90_qhtst_128x128_128x6_2x1_v_bz_TNT").dtypes
    assert (dtypes.output, dtypes.activation, dtypes.weight) == ("bf16", None, None)


def takes(scheme: Scheme, view: NameView) -> bool:
    filters = scheme.prefixes + scheme.contains
    if filters and not any(part in view.lower for part in filters):
        return False
    match = scheme.pattern.search(view.text)
    return match is not None and scheme.read(view, match) is not None


def test_every_registered_scheme_takes_one_of_the_names_above() -> None:
    views = [NameView(name) for name, _ in (*CASES, *CONVOLUTIONS, *ENGINES, *GGML)]
    assert [scheme.name for scheme in schemes() if not any(takes(scheme, view) for view in views)] == []


def test_the_search_by_outline_ends_at_the_first_scheme_that_takes_the_name() -> None:
    for name in [name for name, _ in (*CASES, *CONVOLUTIONS, *ENGINES, *GGML)]:
        view = NameView(name)
        for scheme in schemes():
            offered = view.lower.startswith(scheme.prefixes) or any(part in view.lower for part in scheme.contains)
            match = scheme.pattern.search(view.text)
            if (offered or not (scheme.prefixes or scheme.contains)) and match and scheme.read(view, match):
                assert first_reading(view) == scheme.read(view, match), name
                break
        else:
            assert first_reading(view) is None, name


def test_a_scheme_is_registered_once() -> None:
    with pytest.raises(ValueError, match="registered twice"):
        register("nvjet", order=1)(lambda view, match: None)


def test_the_document_describes_every_kind_and_every_scheme() -> None:
    text = (ROOT / "docs" / "kernel-names.md").read_text()
    emitted = {parse(name).scheme for name, _ in CASES} - {None}
    missing = [word for word in sorted(emitted | KINDS | FAMILIES) if f"`{word}`" not in text]
    assert missing == []


def test_every_kind_has_a_family_and_roles_belong_to_kinds() -> None:
    assert set(FAMILY_OF_KIND) == KINDS
    assert set(ROLE_OF_KIND) <= KINDS
    assert {parse(name).kind for name, _ in CASES} <= KINDS
    assert {parse(name).family for name, _ in CASES} <= FAMILIES
