"""Steps of many architectures and engines: kernel sequences built block by block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

EMBED = "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)"
ARGMAX = (
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int,"
    " long, 4, 4> >(at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4, 4>)"
)
RMS = "void vllm::rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, c10::BFloat16 const*, c10::BFloat16 const*, float)"
ADD_RMS = "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long, c10::BFloat16*, float)"
LAYER_NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float, false>(int, float)"
QKV = "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT"
OUT = "nvjet_sm90_tst_64x8_64x16_2x1_v_bz_splitK_TNT"
SPLIT_K = "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float, __nv_bfloat16, true, false>()"
UP = "nvjet_sm90_tst_192x8_64x8_2x1_v_bz_TNT"
DOWN = "nvjet_sm90_tst_128x8_64x12_2x1_v_bz_TNT"
HEAD = "nvjet_sm90_tst_256x8_64x4_2x1_v_bz_TNT"
ROPE = "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*, c10::BFloat16*)"
KV = "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>()"
FA3 = (
    "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::"
    "CollectiveMainloopFwdSm90<2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> > > > > >()"
)
FA3_COMBINE = (
    "void cutlass::device_kernel<flash::enable_sm80_or_later<flash::FlashAttnFwdCombine<cute::tuple<cute::C<8>,"
    " cute::C<128> >, 5, 256, 1, false, true, cutlass::bfloat16_t, float, cutlass::arch::Sm90> > >()"
)
FA2 = "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<96, 128, 64, 4, false, false, cutlass::bfloat16_t> >()"
SILU = "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16>, true>(c10::BFloat16*)"
GELU = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&)>()"
ADD = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>,"
    " std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)"
)
ALL_REDUCE = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals)"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
FUSED_REDUCE = (
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<"
    "(flashinfer::trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 8, true>()"
)
TOPK = "void vllm::moe::topkGatingSoftmax<4, 128, 4, 16, 32, int>(float const*, bool const*, float*, int)"
ALIGN = "void vllm::moe::moe_align_block_size_kernel<int>(int const*, int*, int*, int*, int, int, int)"
MOE = "fused_moe_kernel"
MOE_SUM = "void vllm::moe::moe_sum_kernel<c10::BFloat16, 8>(c10::BFloat16*, c10::BFloat16 const*, int)"
ROUTER = "nvjet_sm90_tss_64x8_64x16_4x1_v_bz_TNT"
QUANT = "void vllm::dynamic_per_token_scaled_fp8_quant_kernel<c10::BFloat16, c10::Float8_e4m3fn>()"
NORM_QUANT = "void vllm::rms_norm_dynamic_per_token_quant_kernel<c10::BFloat16, c10::Float8_e4m3fn, true>()"
FP8_GEMM = "void deep_gemm::sm90_fp8_gemm_1d2d_impl<(cute::UMMA::Major)0, 0u, 4096u, 7168u, 1u, 64u, 128u>()"
BMM = "nvjet_sm90_tst_128x8_64x11_1x2_h_bz_NNT"
MLA = "void flash_fwd_splitkv_mla_kernel<Flash_fwd_kernel_traits_mla<576, 64, 64, 8, cutlass::bfloat16_t, 512>>()"
MLA_COMBINE = "void flash_fwd_splitkv_mla_combine_kernel<float, long, 512, 32>()"
MLA_CACHE = "void vllm::concat_and_cache_mla_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>()"
CONV = "_causal_conv1d_update_kernel"
SCAN = "_selective_scan_update_kernel"
GDN = "fused_recurrent_gated_delta_rule_packed_decode_kernel"
KDA = "fused_recurrent_kda_fwd_kernel"
GATED_NORM = "layer_norm_gated_fwd_kernel"
INDUCTOR_NORM = "triton_red_fused_add_mean_mul_pow_rsqrt_{}"
INDUCTOR_QK = "triton_per_fused_cat_index_mean_mul_pow_rsqrt_view_{}"
COPY = "Memcpy HtoD (Pinned -> Device)"
METADATA = "_compute_slot_mapping_kernel"


@dataclass(frozen=True)
class Step:
    """A step: its kernels, and where its blocks start and end (exclusive)."""

    names: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]


def step(
    blocks: Sequence[Sequence[str]],
    prologue: Sequence[str] = (COPY, METADATA, EMBED),
    epilogue: Sequence[str] = (ADD_RMS, HEAD, ARGMAX),
    between: Sequence[str] = (),
    draft: Sequence[Sequence[str]] = (),
    after: Mapping[int, Sequence[str]] = MappingProxyType({}),
) -> Step:
    """Put a step together; draft passes follow the epilogue, each with `between` before and an epilogue after.

    `after` gives kernels that follow so many blocks and are part of none.
    """
    names: list[str] = list(prologue)
    starts, ends = [], []
    for block in blocks:
        starts.append(len(names))
        names += block
        ends.append(len(names))
        names += after.get(len(ends), ())
    names += epilogue
    for block in draft:
        names += between
        starts.append(len(names))
        names += block
        ends.append(len(names))
        names += epilogue
    return Step(tuple(names), tuple(starts), tuple(ends))


def dense(norm: str = ADD_RMS, second: str = ADD_RMS) -> list[str]:
    """A Llama block."""
    return [norm, QKV, ROPE, KV, FA3, FA3_COMBINE, OUT, second, UP, SILU, DOWN]


def moe(norm: str = ADD_RMS) -> list[str]:
    """A block with experts."""
    return [norm, QKV, ROPE, KV, FA3, OUT, ADD_RMS, ROUTER, TOPK, ALIGN, MOE, SILU, MOE, MOE_SUM]


def _first(blocks: list[list[str]], norm: str = RMS) -> list[list[str]]:
    return [[norm, *blocks[0][1:]], *blocks[1:]]


def _mla(ffn: list[str]) -> list[str]:
    head = [ADD_RMS, QKV, RMS, RMS, UP, ROPE, BMM, MLA_CACHE, MLA, MLA_COMBINE, BMM, OUT, ALL_REDUCE]
    return [*head, ADD_RMS, *ffn, ALL_REDUCE]


_DENSE = [UP, SILU, DOWN]
_EXPERTS = [ROUTER, TOPK, ALIGN, UP, SILU, DOWN, MOE, SILU, MOE, MOE_SUM]
_GDN = [ADD_RMS, QKV, ROUTER, CONV, GDN, GATED_NORM, OUT, ADD_RMS, *_EXPERTS]
_GATED = [ADD_RMS, QKV, RMS, RMS, ROPE, KV, FA3, "triton_poi_fused_mul_sigmoid_3", OUT, ADD_RMS, *_EXPERTS]
_PLAIN = [LAYER_NORM, UP, GELU, DOWN, ADD]
_MAMBA1 = [RMS, QKV, CONV, UP, RMS, RMS, RMS, DOWN, SCAN, OUT, ADD_RMS]
_ATTENTION = [RMS, QKV, KV, FA3, OUT, ADD_RMS]

ARCHITECTURES: dict[str, Step] = {
    "llama": step(_first([dense() for _ in range(32)])),
    "llama, one layer": step([dense(RMS)]),
    "llama, two layers": step(_first([dense() for _ in range(2)])),
    "llama, 126 layers": step(_first([dense() for _ in range(126)])),
    "tensor parallel": step(
        _first([[*dense()[:7], ALL_REDUCE, *dense()[7:], ALL_REDUCE] for _ in range(16)]),
        prologue=(EMBED, ALL_REDUCE),
        epilogue=(ADD_RMS, HEAD, NCCL.replace("AllReduce", "AllGather"), ARGMAX),
    ),
    "norm fused into the all-reduce": step(
        _first([[FUSED_REDUCE, *dense()[1:7], FUSED_REDUCE, *dense()[8:]] for _ in range(16)]),
        prologue=(EMBED, ALL_REDUCE),
        epilogue=(FUSED_REDUCE, HEAD, ARGMAX),
    ),
    "query and key norms": step(
        _first([[ADD_RMS, QKV, RMS, RMS, *dense()[2:]] for _ in range(36)]),
    ),
    "residual additions of their own": step(
        [[RMS, QKV, ROPE, KV, FA3, OUT, ADD, RMS, UP, SILU, DOWN, ADD] for _ in range(12)],
        epilogue=(RMS, HEAD, ARGMAX),
    ),
    "gemma 2: norms around both halves": step(
        _first([[ADD_RMS, QKV, ROPE, KV, FA3, OUT, RMS, ADD_RMS, UP, GELU, DOWN, RMS] for _ in range(26)]),
    ),
    "gemma 3: query and key norms as well": step(
        _first([[ADD_RMS, QKV, RMS, RMS, ROPE, KV, FA3, OUT, RMS, ADD_RMS, UP, GELU, DOWN, RMS] for _ in range(26)]),
    ),
    "olmo 2: norms behind both halves only": step(
        [[QKV, RMS, RMS, ROPE, KV, FA3, OUT, RMS, ADD, UP, SILU, DOWN, RMS, ADD] for _ in range(16)],
        epilogue=(RMS, HEAD, ARGMAX),
    ),
    "gpt-j, phi: attention and feed-forward in parallel": step(
        [[LAYER_NORM, QKV, ROPE, KV, FA3, OUT, UP, GELU, DOWN, ADD, ADD] for _ in range(28)],
        epilogue=(LAYER_NORM, HEAD, ARGMAX),
    ),
    "falcon 40b: two norms at the start": step(
        [[LAYER_NORM, LAYER_NORM, QKV, ROPE, KV, FA3, OUT, UP, GELU, DOWN, ADD, ADD] for _ in range(20)],
        epilogue=(LAYER_NORM, HEAD, ARGMAX),
    ),
    "gpt-2, opt: layer norms and plain feed-forward": step(
        [[LAYER_NORM, QKV, KV, FA3, OUT, ADD, LAYER_NORM, UP, GELU, DOWN, ADD] for _ in range(12)],
        prologue=(EMBED, EMBED, ADD),
        epilogue=(LAYER_NORM, HEAD, ARGMAX),
    ),
    "bloom: a norm behind the embedding": step(
        [[LAYER_NORM, QKV, KV, FA3, OUT, ADD, LAYER_NORM, UP, GELU, DOWN, ADD] for _ in range(12)],
        prologue=(EMBED, LAYER_NORM),
        epilogue=(LAYER_NORM, HEAD, ARGMAX),
    ),
    "experts": step(_first([moe() for _ in range(48)])),
    "dense first, then experts": step(_first([*(dense() for _ in range(3)), *(moe() for _ in range(40))])),
    "deepseek: latent attention, shared and routed experts": step(
        _first([*(_mla(_DENSE) for _ in range(3)), *(_mla(_EXPERTS) for _ in range(58))]),
        prologue=(EMBED, ALL_REDUCE),
    ),
    "an indexer every fourth layer": step(
        _first(
            [
                [ADD_RMS, QKV, *(("_indexer_logits", "_indexer_topk") if i % 4 == 0 else ()), *dense()[2:]]
                for i in range(24)
            ]
        )
    ),
    "qwen3-next: three linear layers to one of attention": step(
        _first([_GATED if i % 4 == 3 else _GDN for i in range(48)])
    ),
    "jamba: mamba and attention, every other layer with experts": step(
        [[*(_ATTENTION if i % 8 == 4 else _MAMBA1), *(_EXPERTS if i % 2 else _DENSE), ADD] for i in range(32)],
        epilogue=(RMS, HEAD, ARGMAX),
    ),
    "falcon h1: mamba and attention side by side": step(
        _first(
            [
                [ADD_RMS, QKV, CONV, SCAN, GATED_NORM, DOWN, QKV, ROPE, KV, FA3, OUT, ADD, ADD_RMS, *_DENSE]
                for _ in range(24)
            ]
        )
    ),
    "nemotron h: attention right behind mamba": step(
        _first(
            [
                [ADD_RMS, QKV, KV, FA3, OUT, ADD_RMS, *_DENSE]
                if i % 5 == 4
                else [ADD_RMS, QKV, CONV, SCAN, GATED_NORM, OUT, *([ADD_RMS, *_DENSE] if i % 5 < 3 else [])]
                for i in range(25)
            ]
        )
    ),
    "fp8 with quantising norms": step(
        _first(
            [
                [NORM_QUANT, FP8_GEMM, ROPE, KV, FA3, QUANT, FP8_GEMM, NORM_QUANT, FP8_GEMM, SILU, QUANT, FP8_GEMM]
                for _ in range(32)
            ],
            "void vllm::rms_norm_dynamic_per_token_quant_kernel<c10::BFloat16, c10::Float8_e4m3fn, false>()",
        ),
        epilogue=(ADD_RMS, HEAD, ARGMAX),
    ),
    "inductor: serials that change, first norm fused with the embedding": step(
        [
            [
                INDUCTOR_NORM.format(4 + i % 3) if i else "triton_red_fused_embedding_mean_mul_pow_rsqrt_0",
                *(QKV, INDUCTOR_QK.format(1 + i % 2), KV, FA3, FA3_COMBINE, OUT, SPLIT_K, INDUCTOR_NORM.format(2), UP),
                *("triton_poi_fused_mul_silu_3", DOWN),
            ]
            for i in range(28)
        ],
        prologue=(COPY, METADATA),
        epilogue=(INDUCTOR_NORM.format(9), HEAD, ARGMAX),
    ),
    "one kernel name for all projections": step(
        _first([[ADD_RMS, QKV, ROPE, KV, FA3, QKV, ADD_RMS, QKV, SILU, QKV] for _ in range(16)]),
        epilogue=(ADD_RMS, QKV, ARGMAX),
    ),
    "a pipeline stage without ends": step(
        [dense() for _ in range(20)],
        prologue=("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",),
        epilogue=("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",),
    ),
    "speculation: verify and three draft passes of one layer": step(
        _first([dense() for _ in range(32)]),
        between=(EMBED, RMS, RMS, BMM),
        draft=[dense(RMS) for _ in range(3)],
    ),
    "speculation with a draft model of four layers": step(
        _first([dense() for _ in range(24)]),
        between=(EMBED,),
        draft=[[RMS, *dense()[1:]]],
    ),
    "speculation: a draft layer that norms embedding and hidden state": step(
        _first([dense() for _ in range(24)]),
        between=(EMBED,),
        draft=[[RMS, RMS, "CatArrayBatchedCopy_contig", *dense()[1:]] for _ in range(2)],
    ),
    "a vision tower and its merger ahead of the model": step(
        [
            *([LAYER_NORM, QKV, FA2, OUT, ADD, LAYER_NORM, UP, GELU, DOWN, ADD] for _ in range(24)),
            *_first([dense() for _ in range(28)]),
        ],
        prologue=(COPY, "void cudnn::cnn::conv2d_grouped_direct_kernel<false>()", ADD),
        after={24: (LAYER_NORM, UP, GELU, DOWN, EMBED, "void at::native::masked_scatter_kernel<float>()")},
    ),
    "whisper: self and cross attention in every layer": step(
        [
            [LAYER_NORM, QKV, KV, FA3, OUT, ADD, LAYER_NORM, QKV, FA3, OUT, ADD, LAYER_NORM, UP, GELU, DOWN, ADD]
            for _ in range(4)
        ],
        epilogue=(LAYER_NORM, HEAD, ARGMAX),
    ),
    "whisper: the encoder's layers ahead of the decoder's": step(
        [
            *([LAYER_NORM, QKV, FA2, OUT, ADD, LAYER_NORM, UP, GELU, DOWN, ADD] for _ in range(4)),
            *([LAYER_NORM, QKV, KV, FA3, OUT, ADD, LAYER_NORM, QKV, QKV, KV, FA3, OUT, ADD, *_PLAIN] for _ in range(4)),
        ],
        prologue=(COPY,),
        after={4: (LAYER_NORM, EMBED, ADD)},
        epilogue=(LAYER_NORM, HEAD, ARGMAX),
    ),
    "kimi linear: convolutions, projections, then the recurrence": step(
        _first(
            [
                [ADD_RMS, QKV, KV, FA3, OUT, ADD_RMS, *_EXPERTS]
                if i % 4 == 3
                else [ADD_RMS, QKV, CONV, CONV, CONV, UP, DOWN, KDA, GATED_NORM, OUT, ADD_RMS, *_EXPERTS]
                for i in range(27)
            ]
        )
    ),
    "a vision tower whose projector has no norm": step(
        [
            *([LAYER_NORM, QKV, FA2, OUT, ADD, LAYER_NORM, UP, GELU, DOWN, ADD] for _ in range(23)),
            *_first([dense() for _ in range(32)]),
        ],
        prologue=(COPY, "void cudnn::cnn::conv2d_grouped_direct_kernel<false>()", ADD, LAYER_NORM),
        after={23: (UP, GELU, DOWN, EMBED, "void at::native::masked_scatter_kernel<float>()")},
    ),
    "attention in three products": step(
        [
            [
                RMS,
                QKV,
                QKV,
                QKV,
                ROPE,
                BMM,
                "void (anonymous namespace)::softmax_warp_forward<float, 9, true>()",
                BMM,
                OUT,
                ADD,
                RMS,
                UP,
                SILU,
                DOWN,
                ADD,
            ]
            for _ in range(12)
        ],
        epilogue=(RMS, HEAD, ARGMAX),
    ),
    "unknown names that repeat": step(
        [["kernel_a", "my_gemm_1", "kernel_b", "my_gemm_2", "kernel_c"] for _ in range(8)],
        prologue=("start_kernel",),
        epilogue=("end_kernel",),
    ),
}
