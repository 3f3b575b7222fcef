"""Which models the segmentation benchmark runs: random mixtures and families of published architectures.

A family is a function from a source of chance, a number of layers and a vendor to a model, with what the trace needs
besides. The generator's `random_model` decides everything else: engine, launches, steps, troubles.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from synthetic import BlockSpec, DroppedKernel, KernelSpec, ModelSpec, TraceSpec, models, variety
from synthetic import catalogue as k
from synthetic.random_specs import Limits, random_model
from synthetic.spec import Role, Vendor

MIXTURE = "random mixture"
MIXTURE_SHARE = 0.4

LAYER_NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float, false>(int, float)"
GELU = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&)>()"
NORM_QUANT = "void vllm::rms_norm_dynamic_per_token_quant_kernel<c10::BFloat16, c10::Float8_e4m3fn, {residual}>()"
QUANT = "void vllm::dynamic_per_token_scaled_fp8_quant_kernel<c10::BFloat16, c10::Float8_e4m3fn>()"
FP8_GEMM = "void deep_gemm::sm90_fp8_gemm_1d2d_impl<(cute::UMMA::Major)0, 0u, {n}u, 4096u, 1u, 64u, 128u>()"
MLA = "void flash_fwd_splitkv_mla_kernel<Flash_fwd_kernel_traits_mla<576, 64, 64, 8, cutlass::bfloat16_t, 512>>()"
MLA_COMBINE = "void flash_fwd_splitkv_mla_combine_kernel<float, long, 512, 32>()"
MLA_CACHE = "void vllm::concat_and_cache_mla_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>()"
DELTA_RULE = "fused_recurrent_gated_delta_rule_packed_decode_kernel"


@dataclass(frozen=True)
class Family:
    """A model of some architecture, and what the trace must be for it."""

    model: ModelSpec
    vendor: Vendor
    microbatches: int = 1


@dataclass(frozen=True)
class Trial:
    """One trace to segment: its specification and what it is an example of."""

    seed: int
    family: str
    attention: str
    spec: TraceSpec


def trial(seed: int, max_layers: int = 128) -> Trial:
    """Return the trial of a seed; the same seed gives the same one."""
    spec = random_model(random.Random(seed), Limits(max_layers=max_layers))
    rng = random.Random(f"family {seed}")
    if rng.random() < MIXTURE_SHARE:
        return Trial(seed, MIXTURE, "GQA", spec)
    name = rng.choice(list(FAMILIES))
    attention, build = FAMILIES[name]
    family = build(rng, len(spec.model.layers), spec.vendor)
    return Trial(seed, name, attention, _with_family(rng, spec, family))


def _with_family(rng: random.Random, spec: TraceSpec, family: Family) -> TraceSpec:
    """The same trace of another model. Lost kernels are drawn anew: never a block's first two, as in `random_model`."""
    layers = family.model.layers
    shortest = min(len(layer.kernels) for layer in layers)
    dropped = (DroppedKernel(d.step, d.block % len(layers), rng.randrange(2, shortest)) for d in spec.dropped)
    return replace(
        spec,
        model=family.model,
        vendor=family.vendor,
        device=models.DEVICE_OF_VENDOR[family.vendor],
        dropped=tuple(dict.fromkeys(dropped)),
        foreign=tuple(replace(kernel, block=kernel.block % len(layers)) for kernel in spec.foreign),
        microbatches=family.microbatches,
        hop_streams=1 if family.microbatches > 1 else spec.hop_streams,
    )


def _llama(rng: random.Random, layers: int, vendor: Vendor) -> Family:
    return Family(models.llama_dense(layers, rng.choice((1, 8, 32)), vendor=vendor), vendor)


def _tensor_parallel(rng: random.Random, layers: int, vendor: Vendor) -> Family:
    return Family(models.llama_dense(layers, 8, vendor=vendor, tensor_parallel=rng.choice((2, 4, 8))), vendor)


def _gptoss(rng: random.Random, layers: int, vendor: Vendor) -> Family:
    whole = models.gptoss_20b(vendor, rng.choice((1, 4, 16)), tile=rng.choice(("32x256x128x1", "16x64x128x2")))
    return Family(replace(whole, layers=(whole.layers * layers)[:layers]), vendor)


def _qwen3(rng: random.Random, layers: int, vendor: Vendor) -> Family:
    return Family(variety.qwen3_dense(layers, rng.choice((1, 32))).model, "rocm")


def _deepseek_moe(rng: random.Random, layers: int, vendor: Vendor) -> Family:
    dense = min(rng.randint(1, 3), layers - 1)
    return Family(variety.dense_first_moe(dense, layers - dense).model, "cuda")


def _mamba(rng: random.Random, layers: int, vendor: Vendor) -> Family:
    return Family(variety.hybrid_mamba(layers, rng.choice((2, 4, 6, 8))).model, "cuda")


def _sliding(rng: random.Random, layers: int, vendor: Vendor) -> Family:
    return Family(variety.sliding_by_duration(layers).model, "cuda")


def _residual(rng: random.Random, layers: int, vendor: Vendor) -> Family:
    return Family(variety.separate_residual(models.llama_dense(layers, vendor=vendor), _gpu(vendor)), vendor)


def _speculative(rng: random.Random, layers: int, vendor: Vendor) -> Family:
    return Family(variety.speculative(layers, rng.randint(1, 4)).model, "cuda")


def _two_batches(rng: random.Random, layers: int, vendor: Vendor) -> Family:
    return Family(variety.dual_batch_overlap(layers).model, "cuda", microbatches=2)


def _opt(rng: random.Random, layers: int, vendor: Vendor) -> Family:
    """Layer norms, a product with bias, a plain feed-forward, residual additions of their own; every head has keys."""
    norm, add = _norm(LAYER_NORM, vendor), _small(k.RESIDUAL_ADD, "other", vendor)
    block = (norm, *_attention(vendor, rope=False), add, norm, *_plain(vendor), add)
    return Family(_model("Opt", [block] * layers, vendor, norm), vendor)


def _parallel(rng: random.Random, layers: int, vendor: Vendor) -> Family:
    """One norm, attention and feed-forward from the same input (GPT-J, Phi)."""
    norm, add = _norm(LAYER_NORM, vendor), _small(k.RESIDUAL_ADD, "other", vendor)
    block = (norm, *_attention(vendor), *_plain(vendor), add, add)
    return Family(_model("PhiParallel", [block] * layers, vendor, norm), vendor)


def _gemma(rng: random.Random, layers: int, vendor: Vendor) -> Family:
    """Norms before and behind both halves; with norms of queries and keys by chance (Gemma 2, Gemma 3)."""
    norm, add = _norm(k.NORM, vendor), _norm(k.ADD_NORM, vendor)
    heads = (norm, norm) if rng.random() < 0.5 else ()
    qkv, *rest = _attention(vendor)
    block = (add, qkv, *heads, *rest, norm, add, *_plain(vendor), norm)
    return Family(_model("Gemma", [block] * layers, vendor, add, k.NORM), vendor)


def _mla(rng: random.Random, layers: int, vendor: Vendor) -> Family:
    """Latent attention with absorbed projections, dense blocks before those with experts, all-reduces by chance."""
    gpu, norm, add = k.H100, _norm(k.NORM, "cuda"), _norm(k.ADD_NORM, "cuda")
    reduce = (_small(k.ALL_REDUCE["cuda"], "communication", "cuda"),) if rng.random() < 0.5 else ()
    absorbed = k.gemm(gpu, "other", 512, 128, 8, (128, 8, 64))
    attention = (
        *(k.gemm(gpu, "qkv_proj", 2112, 7168, 8), norm, norm, k.gemm(gpu, "qkv_proj", 24576, 1536, 8, (192, 8, 64))),
        *(_small(k.ROPE, "rope", "cuda"), absorbed, _small(MLA_CACHE, "kv_write", "cuda")),
        *(_small(MLA, "attention", "cuda", 9.0), _small(MLA_COMBINE, "attention", "cuda"), absorbed),
        k.gemm(gpu, "o_proj", 7168, 16384, 8),
    )
    head = (add, *attention, *reduce, add)
    dense = (*head, *_gated("cuda"), *reduce)
    moe = (*head, *_experts("cuda", shared=rng.random() < 0.7), *reduce)
    first = min(rng.choice((0, 1, 3)), layers - 1)
    return Family(_model("DeepseekV3", [dense] * first + [moe] * (layers - first), "cuda", add, k.NORM), "cuda")


def _linear(rng: random.Random, layers: int, vendor: Vendor) -> Family:
    """Some layers of a gated delta rule to one of attention, experts everywhere (Qwen3-Next)."""
    gpu, norm, add = _gpu(vendor), _norm(k.NORM, vendor), _norm(k.ADD_NORM, vendor)
    mixers = ("_causal_conv1d_update_kernel", DELTA_RULE)
    linear = (
        *(k.gemm(gpu, "qkv_proj", 12288, 2048, 8), k.gemm(gpu, "qkv_proj", 64, 2048, 8, (16, 16, 256))),
        *(replace(_small(name, "other", vendor, 2.0), breaks_piece=True) for name in mixers),
        *(_norm("layer_norm_gated_fwd_kernel", vendor), k.gemm(gpu, "o_proj", 2048, 4096, 8)),
    )
    qkv, *rest = _attention(vendor)
    ffn = (add, *_experts(vendor, shared=True))
    kinds = {True: (add, qkv, norm, norm, *rest, *ffn), False: (add, *linear, *ffn)}
    every = rng.choice((2, 4))
    blocks = [kinds[i % every == every - 1] for i in range(layers)]
    return Family(_model("Qwen3Next", blocks, vendor, add, k.NORM), vendor)


def _fp8(rng: random.Random, layers: int, vendor: Vendor) -> Family:
    """Norms that quantise their output, FP8 products, quantisation ahead of the others."""
    plain, added = (NORM_QUANT.format(residual=value) for value in ("false", "true"))
    norm, quant = _norm(added, "cuda"), _small(QUANT, "quantize", "cuda")
    qkv, out, up, down = (
        KernelSpec(FP8_GEMM.format(n=n), role, us, grid=(n // 64, 1, 1), block=(384, 1, 1))
        for n, role, us in _FP8_PRODUCTS
    )
    _, *attention, _ = _attention("cuda")
    block = (norm, qkv, *attention, quant, out, norm, up, _small(k.ACTIVATION, "activation", "cuda"), quant, down)
    return Family(_model("Llama", [block] * layers, "cuda", _norm(k.ADD_NORM, "cuda"), plain), "cuda")


_FP8_PRODUCTS: tuple[tuple[int, Role, float], ...] = (
    (6144, "qkv_proj", 11.0),
    (4096, "o_proj", 8.0),
    (28672, "gate_up", 44.0),
    (4097, "down", 23.0),
)

FAMILIES: dict[str, tuple[str, Callable[[random.Random, int, Vendor], Family]]] = {
    "dense": ("GQA", _llama),
    "dense, tensor parallel": ("GQA", _tensor_parallel),
    "dense, query and key norms": ("GQA", _qwen3),
    "dense, residual adds apart": ("GQA", _residual),
    "dense, FP8": ("GQA", _fp8),
    "dense, norms around both halves": ("GQA", _gemma),
    "dense, attention beside feed-forward": ("MHA", _parallel),
    "dense, layer norms, plain feed-forward": ("MHA", _opt),
    "dense, sliding told by duration": ("GQA", _sliding),
    "MoE, sliding and full": ("GQA", _gptoss),
    "dense first, MoE, shared expert aside": ("GQA", _deepseek_moe),
    "MLA, dense first, MoE": ("MLA", _mla),
    "hybrid, Mamba": ("GQA + Mamba", _mamba),
    "hybrid, linear attention, MoE": ("GQA + linear", _linear),
    "speculative decoding": ("GQA", _speculative),
    "two batches at once, MoE": ("GQA", _two_batches),
}
"""Name -> (kind of attention, how to build the model)."""


def _gpu(vendor: Vendor) -> k.Gpu:
    return models.GPU_OF_VENDOR[vendor]


def _small(name: str, role: Role, vendor: Vendor, factor: float = 1.0) -> KernelSpec:
    return k.small(_gpu(vendor), name, role, factor)


def _norm(name: str, vendor: Vendor) -> KernelSpec:
    return _small(name, "norm", vendor)


def _attention(vendor: Vendor, rope: bool = True) -> tuple[KernelSpec, ...]:
    """Projection of queries, keys and values up to the output projection."""
    _, qkv, *rest = models.attention_part(_gpu(vendor), models.resized(models.LLAMA_8B, 8, 1024), split=False)
    return (qkv, *(kernel for kernel in rest if rope or kernel.role != "rope"))


def _gated(vendor: Vendor) -> tuple[KernelSpec, ...]:
    return models.dense_block(_gpu(vendor), models.LLAMA_8B)[-3:]


def _plain(vendor: Vendor) -> tuple[KernelSpec, ...]:
    up, _, down = _gated(vendor)
    return (up, _small(GELU, "activation", vendor), down)


def _experts(vendor: Vendor, shared: bool) -> tuple[KernelSpec, ...]:
    """Router to the sum over experts; with a shared expert's products on the main stream behind the routing."""
    activation = _small(k.ACTIVATION, "activation", vendor)
    return (
        k.gemm(_gpu(vendor), "router", 256, 4096, 8, (16, 16, 256)),
        _small(variety.MOE_TOPK, "moe_routing", vendor),
        _small(variety.MOE_ALIGN, "moe_routing", vendor),
        *(_gated(vendor) if shared else ()),
        KernelSpec("fused_moe_kernel", "moe_gate_up", 62.0, grid=(2048, 1, 1), block=(256, 1, 1)),
        activation,
        KernelSpec("fused_moe_kernel", "moe_down", 34.0, grid=(1024, 1, 1), block=(256, 1, 1)),
        _small(variety.MOE_SUM, "moe_combine", vendor),
    )


def _model(
    name: str,
    blocks: Sequence[tuple[KernelSpec, ...]],
    vendor: Vendor,
    final_norm: KernelSpec,
    first_norm: str | None = None,
) -> ModelSpec:
    """Put a model together; the first norm of all, which adds no residual, may have another name."""
    if first_norm is not None:
        first, *rest = blocks[0]
        blocks = [(replace(first, name=first_norm), *rest), *blocks[1:]]
    gpu, shape = _gpu(vendor), models.resized(models.LLAMA_8B, 8, 1024)
    return ModelSpec(
        name=name.lower(),
        layers=tuple(BlockSpec("block", block) for block in blocks),
        prologue=models.prologue(gpu, shape),
        epilogue=(final_norm, *models.epilogue(gpu, shape)[1:]),
        class_name=name,
    )
