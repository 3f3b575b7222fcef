"""Ready specifications of what makes traces hard: other block kinds, side streams, several passes a step.

Roles have no word for state-space mixers: their projections count as `qkv_proj` and `o_proj`, what lies between
as `other`.
"""

from __future__ import annotations

from dataclasses import replace

from synthetic import catalogue as k
from synthetic import devices
from synthetic.models import (
    FIRST_NORM,
    LLAMA_8B,
    QWEN3_8B,
    attention_part,
    dense_block,
    epilogue,
    llama_dense,
    prologue,
    resized,
)
from synthetic.spec import BlockSpec, KernelSpec, ModelSpec, TraceSpec, decode_steps

AITER_NORM = (
    "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb{add}ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_diiiiiiib"
)
AITER_HEAD_NORM = (
    "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb0ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_diiiiiiib"
)
PAGED_ATTENTION = (
    "void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16, __hip_bfloat16, "
    "(vllm::Fp8KVCacheDataType)0, 1, 128, 256, false, 4, 1>(__hip_bfloat16 const*, __hip_bfloat16 "
    "const*, __hip_bfloat16 const*, int, float)"
)
PAGED_REDUCE = (
    "void paged_attention_ll4mi_reduce_kernel<__hip_bfloat16, __hip_bfloat16, 128, 128, 256, 3, "
    "false>(__hip_bfloat16*, float const*, float const*, __hip_bfloat16 const*, int const*, int const*, "
    "int, int, float const*)"
)
MOE_SUM = "void vllm::moe::moe_sum_kernel<c10::BFloat16, 4>(c10::BFloat16*, c10::BFloat16 const*, int)"
MOE_TOPK = (
    "void vllm::moe::topkGating<8, 256, 4, 16, 32, int, float, (vllm::moe::ScoringFunc)0>(float const*, "
    "bool const*, float*, int, int*, int*, int, int, int, bool, float const*)"
)
MOE_ALIGN = (
    "void vllm::moe::moe_align_block_size_kernel<int>(int const*, int*, int*, int*, int, int, int, int, "
    "unsigned long, int*, int, int)"
)
DISPATCH = (
    "void deep_ep::internode_ll::dispatch<true, false, 7168>(void*, void*, int*, long*, int*, int*, "
    "void*, int*, void*, void const*, long const*, int*, int*, int*, int, int, int, int, int, int, int, "
    "int, bool, int)"
)
COMBINE = (
    "void deep_ep::internode_ll::combine<false, 7168, 9, 10>(void*, void*, int*, void*, void const*, "
    "long const*, float const*, int const*, long const*, int*, int*, int, int, int, int, int, int, int, "
    "int, int, bool)"
)


def qwen3_dense(layers: int = 36, batch: int = 32, steps: int = 2, kv: int = 1024) -> TraceSpec:
    """A dense Qwen3 on an MI300X under SGLang: q and k norms within the block, norms of another library."""
    gpu, shape = k.MI300X, resized(QWEN3_8B, batch, kv)
    add, plain = AITER_NORM.format(add=1), AITER_NORM.format(add=0)
    head_norm = k.small(gpu, AITER_HEAD_NORM, "norm")
    attention_us = 2 * gpu.small_us + gpu.stream_us(shape.rows * shape.kv_bytes)
    block = (
        k.small(gpu, add, "norm"),
        k.gemm(gpu, "qkv_proj", shape.qkv, shape.hidden, shape.rows, (64, 32, 256)),
        head_norm,
        head_norm,
        k.small(gpu, k.ROPE, "rope"),
        k.small(gpu, "void store_kvcache<2048l, 4, false, long>(StoreKVCacheParams)", "kv_write"),
        KernelSpec(PAGED_ATTENTION, "attention", round(attention_us, 3), grid=(batch, 8, 4), block=(256, 1, 1)),
        k.small(gpu, PAGED_REDUCE, "attention"),
        k.gemm(gpu, "o_proj", shape.hidden, shape.heads * shape.head_dim, shape.rows, (16, 32, 512)),
        k.small(gpu, add, "norm"),
        k.gemm(gpu, "gate_up", 2 * shape.intermediate, shape.hidden, shape.rows, (256, 32, 64)),
        k.small(gpu, k.ACTIVATION, "activation"),
        k.gemm(gpu, "down", shape.hidden, shape.intermediate, shape.rows, (32, 32, 256)),
    )
    model = ModelSpec(
        name=f"qwen3-{layers}-layers",
        layers=(BlockSpec("dense", block),) * layers,
        prologue=prologue(gpu, shape),
        epilogue=(k.small(gpu, add, "norm"), *epilogue(gpu, shape)[1:]),
        first_block_names=((add, plain),),
        class_name="Qwen3",
    )
    return TraceSpec(
        model=model,
        steps=decode_steps(steps, batch=batch, kv_tokens=kv),
        engine="sglang",
        vendor="rocm",
        device=devices.MI300X,
        main_stream=3,
        jitter=0.03,
    )


def dense_first_moe(dense: int = 3, moe: int = 24, batch: int = 8, steps: int = 2, kv: int = 1024) -> TraceSpec:
    """Some dense blocks, then MoE blocks with a shared expert on a side stream; one name for both products."""
    gpu, shape = k.H100, resized(LLAMA_8B, batch, kv)
    head = BlockSpec("dense", dense_block(gpu, shape))
    tail = BlockSpec("moe", (*attention_part(gpu, shape, split=False), *_experts(gpu, batch)))
    model = ModelSpec(
        name=f"{dense}-dense-{moe}-moe",
        layers=(head,) * dense + (tail,) * moe,
        prologue=prologue(gpu, shape),
        epilogue=epilogue(gpu, shape),
        first_block_names=FIRST_NORM,
        class_name="DeepseekV2",
    )
    return TraceSpec(model=model, steps=decode_steps(steps, batch=batch, kv_tokens=kv), jitter=0.03)


def _experts(gpu: k.Gpu, batch: int) -> tuple[KernelSpec, ...]:
    return (
        k.small(gpu, k.ADD_NORM, "norm"),
        k.gemm(gpu, "router", 256, 4096, batch, (64, 8, 64)),
        k.gemm(gpu, "gate_up", 4096, 4096, batch, (96, 16, 64), stream=1),
        replace(k.small(gpu, k.ACTIVATION, "activation"), stream=1),
        k.gemm(gpu, "down", 4096, 2048, batch, (96, 16, 64), stream=1),
        k.small(gpu, MOE_TOPK, "moe_routing"),
        k.memset(gpu, 1024),
        k.small(gpu, MOE_ALIGN, "moe_routing"),
        KernelSpec("fused_moe_kernel", "moe_gate_up", 62.0, grid=(2048, 1, 1), block=(256, 1, 1)),
        k.small(gpu, k.ACTIVATION, "activation"),
        KernelSpec("fused_moe_kernel", "moe_down", 34.0, grid=(1024, 1, 1), block=(256, 1, 1)),
        k.small(gpu, MOE_SUM, "moe_combine"),
    )


def hybrid_mamba(
    layers: int = 24, attention_every: int = 6, batch: int = 8, steps: int = 2, kv: int = 1024
) -> TraceSpec:
    """Mamba blocks with an attention block after every few of them; all end in the same dense feed-forward."""
    gpu, shape = k.H100, resized(LLAMA_8B, batch, kv)
    attention = BlockSpec("attention", dense_block(gpu, shape))
    feed_forward = dense_block(gpu, shape)[-4:]
    mixer = (
        k.small(gpu, k.ADD_NORM, "norm"),
        k.gemm(gpu, "qkv_proj", 8 * 1024 + 512, shape.hidden, batch),
        replace(k.small(gpu, "_causal_conv1d_update_kernel", "other"), breaks_piece=True),
        replace(k.small(gpu, "_selective_scan_update_kernel", "other", 3.0), breaks_piece=True),
        k.small(gpu, "layer_norm_fwd_kernel", "norm"),
        k.gemm(gpu, "o_proj", shape.hidden, 4096, batch),
    )
    mamba = BlockSpec("mamba", (*mixer, *feed_forward))
    pattern = [attention if i % attention_every == attention_every - 1 else mamba for i in range(layers)]
    model = ModelSpec(
        name=f"hybrid-{layers}-layers",
        layers=tuple(pattern),
        prologue=prologue(gpu, shape),
        epilogue=epilogue(gpu, shape),
        first_block_names=FIRST_NORM,
        class_name="GraniteMoeHybrid",
    )
    return TraceSpec(model=model, steps=decode_steps(steps, batch=batch, kv_tokens=kv), jitter=0.03)


def sliding_by_duration(layers: int = 24, batch: int = 8, steps: int = 2, kv: int = 8192) -> TraceSpec:
    """Sliding and full attention by turns through one kernel: only durations tell the blocks apart."""
    gpu = k.H100
    full = BlockSpec("full", dense_block(gpu, resized(LLAMA_8B, batch, kv)))
    sliding = BlockSpec("sliding", dense_block(gpu, resized(LLAMA_8B, batch, min(kv, 128))))
    model = replace(llama_dense(2, batch, kv), name="sliding-by-duration", layers=((sliding, full) * layers)[:layers])
    return TraceSpec(model=model, steps=decode_steps(steps, batch=batch, kv_tokens=kv), jitter=0.02)


def speculative(layers: int = 24, drafts: int = 3, batch: int = 4, steps: int = 2, kv: int = 1024) -> TraceSpec:
    """Speculative decoding: in every step a pass of all layers over the drafted tokens, then one-layer drafts."""
    rows = batch * (drafts + 1)
    model, small = llama_dense(layers, rows, kv), llama_dense(1, batch, kv)
    fuse = k.gemm(k.H100, "other", 4096, 8192, batch, (128, 8, 64))
    embedding = next(kernel for kernel in small.prologue if kernel.role == "embedding")
    draft = replace(
        small,
        name="draft",
        prologue=(embedding, fuse),
        epilogue=tuple(kernel for kernel in small.epilogue if kernel.category == "kernel"),
    )
    passes = replace(model, name="speculative", draft=draft, draft_passes=drafts)
    decode = tuple(replace(step, generation_tokens=rows) for step in decode_steps(steps, batch=batch, kv_tokens=kv))
    return TraceSpec(model=passes, steps=decode, jitter=0.03)


def dual_batch_overlap(layers: int = 12, batch: int = 64, steps: int = 2, kv: int = 1024) -> TraceSpec:
    """Every layer twice, for half the batch each, on two streams: one half computes while the other communicates."""
    gpu, shape = k.H100, resized(LLAMA_8B, batch // 2, kv)
    norm, router, *rest = (kernel for kernel in _experts(gpu, batch // 2) if kernel.stream == 0)
    routing, products = rest[:3], rest[3:]
    block = (
        *attention_part(gpu, shape, split=False),
        norm,
        router,
        *routing,
        KernelSpec(DISPATCH, "communication", 70.0, grid=(24, 1, 1), block=(1024, 1, 1)),
        *products,
        KernelSpec(COMBINE, "communication", 90.0, grid=(24, 1, 1), block=(1024, 1, 1)),
    )
    model = ModelSpec(
        name="dual-batch",
        layers=(BlockSpec("moe", block),) * layers,
        prologue=prologue(gpu, shape),
        epilogue=epilogue(gpu, shape),
        first_block_names=FIRST_NORM,
        class_name="DeepseekV2",
    )
    return TraceSpec(model=model, steps=decode_steps(steps, batch=batch, kv_tokens=kv), microbatches=2, jitter=0.03)


def separate_residual(model: ModelSpec, gpu: k.Gpu) -> ModelSpec:
    """The same model with residual adds of their own: norms have one name everywhere, blocks end in an add."""
    add = k.small(gpu, k.RESIDUAL_ADD, "other", op="aten::add")

    def unfused(kernels: tuple[KernelSpec, ...]) -> list[KernelSpec]:
        unfolded: list[KernelSpec] = []
        for kernel in kernels:
            fused = kernel.name == k.ADD_NORM
            unfolded += [add, replace(kernel, name=k.NORM)] if fused else [kernel]
        return unfolded

    layers = tuple(BlockSpec(layer.kind, (*unfused(layer.kernels)[1:], add)) for layer in model.layers)
    epilogue = tuple(unfused(model.epilogue)[1:])
    return replace(model, layers=layers, epilogue=epilogue, first_block_names=())
