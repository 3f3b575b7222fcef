"""Ready specifications of models on GPUs: their kernels by role, block by block.

Every block starts at its input norm, into which the residual add of the block before is fused; the final norm
carries the last block's. Block 0's norm has nothing to add and another name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from synthetic import catalogue as k
from synthetic import devices
from synthetic.spec import BlockSpec, DeviceSpec, KernelSpec, ModelSpec, StepSpec, TraceSpec, Vendor, decode_steps

FIRST_NORM = ((k.ADD_NORM, k.NORM),)


@dataclass(frozen=True)
class Shape:
    """Sizes of a decoder: rows are the query tokens of a step, `kv` the keys one request attends to."""

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    rows: int = 1
    kv: int = 1024

    @property
    def qkv(self) -> int:
        """Width of the fused projection of queries, keys and values."""
        return (self.heads + 2 * self.kv_heads) * self.head_dim

    @property
    def kv_bytes(self) -> int:
        """Bytes of one request's keys and values in one layer, bf16."""
        return 4 * self.kv * self.kv_heads * self.head_dim


GPT_OSS_20B = Shape(2880, 64, 8, 64, 2880, 201_088)
LLAMA_8B = Shape(4096, 32, 8, 128, 14336, 128_256)
QWEN3_8B = Shape(4096, 32, 8, 128, 12288, 151_936)
GPU_OF_VENDOR: dict[Vendor, k.Gpu] = {"cuda": k.H100, "rocm": k.STRIX_HALO}
DEVICE_OF_VENDOR: dict[Vendor, DeviceSpec] = {"cuda": devices.H100_SXM, "rocm": devices.STRIX_HALO}


def resized(shape: Shape, rows: int, kv: int) -> Shape:
    """The same model at another batch and context length."""
    return replace(shape, rows=rows, kv=kv)


def gptoss_20b(vendor: Vendor = "rocm", batch: int = 1, tile: str = "32x256x128x1", kv: int = 1024) -> ModelSpec:
    """gpt-oss-20b: 24 MoE blocks, sliding and full attention by turns, MXFP4 experts in triton_kernels.

    `tile` is block_m x block_n x block_k x split_k of both expert products.
    """
    gpu = GPU_OF_VENDOR[vendor]
    shape = resized(GPT_OSS_20B, batch, kv)
    window = resized(GPT_OSS_20B, batch, min(kv, 128))
    sliding = BlockSpec("sliding", _gptoss_block(gpu, window, tile, split=False))
    full = BlockSpec("full", _gptoss_block(gpu, shape, tile, split=True))
    return ModelSpec(
        name="gpt-oss-20b",
        layers=(sliding, full) * 12,
        prologue=prologue(gpu, shape),
        epilogue=epilogue(gpu, shape),
        first_block_names=FIRST_NORM,
        class_name="GptOss",
    )


def gptoss_20b_decode(
    vendor: Vendor = "rocm", batch: int = 1, steps: int = 8, tile: str = "32x256x128x1", kv: int = 1024
) -> TraceSpec:
    """gpt-oss-20b decoding under vLLM: on a Radeon 8060S (Strix Halo) for ROCm, on an H100 for CUDA."""
    return TraceSpec(
        model=gptoss_20b(vendor, batch, tile, kv),
        steps=decode_steps(steps, batch=batch, kv_tokens=kv),
        vendor=vendor,
        device=DEVICE_OF_VENDOR[vendor],
        jitter=0.03,
    )


def llama_dense(
    layers: int = 32, batch: int = 8, kv: int = 2048, vendor: Vendor = "cuda", tensor_parallel: int = 1
) -> ModelSpec:
    """A Llama of dense blocks. With `tensor_parallel` > 1 two all-reduces a block, and thinner weights."""
    gpu = GPU_OF_VENDOR[vendor]
    shape = resized(LLAMA_8B, batch, kv)
    block = BlockSpec("dense", dense_block(gpu, shape, tensor_parallel))
    return ModelSpec(
        name=f"llama-{layers}-layers",
        layers=(block,) * layers,
        prologue=prologue(gpu, shape),
        epilogue=epilogue(gpu, shape),
        first_block_names=FIRST_NORM,
    )


def llama_decode(layers: int = 32, batch: int = 8, steps: int = 4, kv: int = 2048) -> TraceSpec:
    """A dense Llama decoding on an H100 under vLLM."""
    return TraceSpec(
        model=llama_dense(layers, batch, kv),
        steps=decode_steps(steps, batch=batch, kv_tokens=kv),
        jitter=0.03,
    )


def prefill(model: ModelSpec, requests: int, tokens: int) -> StepSpec:
    """A step that prefills `requests` prompts of `tokens` tokens in all, eagerly, with `model`'s kernels."""
    return StepSpec(context_requests=requests, context_tokens=tokens, model=model, launch="eager")


def prologue(gpu: k.Gpu, shape: Shape) -> tuple[KernelSpec, ...]:
    """Input copies, slot mapping, embedding."""
    rows = shape.rows
    slots = k.small(gpu, k.SLOT_MAPPING, "other", in_graph=False, op="vllm::compute_slot_mapping")
    copies = tuple(k.host_copy(gpu, size) for size in (4 * rows, 8 * rows, 4 * rows + 4))
    return (*copies, slots, k.small(gpu, k.EMBEDDING, "embedding", dims=((rows,), (shape.vocab, shape.hidden))))


def epilogue(gpu: k.Gpu, shape: Shape) -> tuple[KernelSpec, ...]:
    """Final norm, gather of the last rows, lm_head, argmax, copy of the tokens to the host."""
    lm_head = k.gemm(gpu, "lm_head", shape.vocab, shape.hidden, shape.rows, (128, 16, 64))
    return (
        k.small(gpu, k.ADD_NORM, "norm"),
        k.small(gpu, k.EMBEDDING, "copy", in_graph=False, op="aten::index"),
        replace(lm_head, in_graph=False),
        k.small(gpu, k.ARGMAX, "sampler", 2.0, in_graph=False, op="aten::argmax"),
        k.token_copy(gpu, 8 * shape.rows),
    )


def attention_part(gpu: k.Gpu, shape: Shape, split: bool, tensor_parallel: int = 1) -> tuple[KernelSpec, ...]:
    """Input norm to output projection."""
    part = tensor_parallel
    return (
        k.small(gpu, k.ADD_NORM, "norm"),
        k.gemm(gpu, "qkv_proj", shape.qkv // part, shape.hidden, shape.rows),
        k.small(gpu, k.ROPE, "rope"),
        k.small(gpu, k.KV_WRITE[gpu.vendor], "kv_write"),
        *_attention(gpu, shape, split, part),
        k.gemm(gpu, "o_proj", shape.hidden, shape.heads * shape.head_dim // part, shape.rows),
    )


def _attention(gpu: k.Gpu, shape: Shape, split: bool, part: int) -> tuple[KernelSpec, ...]:
    duration = round(2 * gpu.small_us + gpu.stream_us(shape.rows * shape.kv_bytes / part), 3)
    grid = (shape.rows, shape.kv_heads, 16 if split else 1)
    if gpu.vendor == "cuda":
        names = (k.FLASH_ATTENTION, k.FLASH_COMBINE)
    else:
        names = ("kernel_unified_attention_3d" if split else "kernel_unified_attention_2d", "reduce_segments")
    main = KernelSpec(names[0], "attention", duration, grid=grid, block=(128, 1, 1))
    if not split:
        return (main,)
    return (main, k.small(gpu, names[1], "attention"))


def dense_block(gpu: k.Gpu, shape: Shape, tensor_parallel: int = 1) -> tuple[KernelSpec, ...]:
    """A block with a gated feed-forward; `tensor_parallel` > 1 adds an all-reduce after each half."""
    part = tensor_parallel
    reduce = (k.small(gpu, k.ALL_REDUCE[gpu.vendor], "communication", 4.0),) if part > 1 else ()
    return (
        *attention_part(gpu, shape, split=False, tensor_parallel=part),
        *reduce,
        k.small(gpu, k.ADD_NORM, "norm"),
        k.gemm(gpu, "gate_up", 2 * shape.intermediate // part, shape.hidden, shape.rows, (192, 16, 64)),
        k.small(gpu, k.ACTIVATION, "activation"),
        k.gemm(gpu, "down", shape.hidden, shape.intermediate // part, shape.rows, (192, 16, 64)),
        *reduce,
    )


def _gptoss_block(gpu: k.Gpu, shape: Shape, tile: str, split: bool) -> tuple[KernelSpec, ...]:
    gate_up_us, down_us = _expert_times(gpu, shape.rows, tile)
    block_n = int(tile.split("x")[1])
    stem = f"_matmul_ogs_NNT_bf16xbf16xmxfp4_{tile}"
    experts = min(32, 4 * shape.rows)

    def product(name: str, role: str, width: int, duration: float) -> KernelSpec:
        grid = (experts * -(-width // block_n), 1, 1)
        return KernelSpec(name, role, duration, grid=grid, block=(128, 1, 1))  # type: ignore[arg-type]

    return (
        *attention_part(gpu, shape, split),
        k.small(gpu, k.ADD_NORM, "norm"),
        k.gemm(gpu, "router", 32, shape.hidden, shape.rows, (16, 16, 256)),
        *(k.small(gpu, name, "moe_routing") for name in k.ROUTING),
        product(f"{stem}_swiglu", "moe_gate_up", 2 * shape.intermediate, gate_up_us),
        product(stem, "moe_down", shape.hidden, down_us),
        k.small(gpu, "_finalize_matmul_scatter_bf16", "moe_combine"),
    )


def _expert_times(gpu: k.Gpu, rows: int, tile: str) -> tuple[float, float]:
    """Both expert products in µs. Wide tiles spill registers, and cost several times the weights' streaming.

    The experts that a batch of `rows` tokens hits follow from an even router: 32 (1 - (1 - 4/32)^rows).
    """
    block_m, block_n, *_ = (int(size) for size in tile.split("x"))
    hit = 32 * (1 - (1 - 4 / 32) ** rows)
    slowdown = max(1.0, (block_n / 32) ** (0.75 if block_m >= 32 else 0.35))
    gate_up_bytes = hit * 5760 * 2880 * 17 / 32
    base = 1.9 if gpu.vendor == "rocm" else 1.2
    return (
        round(gpu.stream_us(gate_up_bytes) * base * slowdown, 3),
        round(gpu.stream_us(gate_up_bytes / 2) * base * 1.15 * slowdown, 3),
    )
