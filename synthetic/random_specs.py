"""Random traces for property tests: any mixture of what real traces do, always unambiguous by the conventions.

What keeps them unambiguous: a block starts with a norm that also stands between blocks and nowhere at a block's
end, its kernels are the same in every block of a kind, and a kind's kernels differ from another kind's by name
or, where asked for, only by duration.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from synthetic import catalogue as k
from synthetic.models import DEVICE_OF_VENDOR, GPU_OF_VENDOR
from synthetic.spec import (
    BlockSpec,
    DroppedKernel,
    Engine,
    ForeignKernel,
    KernelSpec,
    Launch,
    ModelSpec,
    TraceSpec,
    Vendor,
    decode_steps,
)

INPUT_NORM = "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_{serial}"
FIRST_NORM = "triton_red_fused__to_copy_mean_mul_pow_rsqrt_{serial}"
FILLERS = (
    ("triton_poi_fused_cat_index_{serial}", "rope"),
    ("triton_poi_fused_mul_silu_{serial}", "activation"),
    ("triton_poi_fused__to_copy_view_{serial}", "other"),
    (
        (
            "void vllm::dynamic_per_token_scaled_fp8_quant_kernel<c10::BFloat16, "
            "c10::Float8_e4m3fn>(c10::Float8_e4m3fn*, float*, c10::BFloat16 const*, float const*, int)"
        ),
        "quantize",
    ),
)


@dataclass(frozen=True)
class Limits:
    """Bounds of what `random_model` draws."""

    max_layers: int = 128
    max_steps: int = 4
    max_kinds: int = 3
    engines: tuple[Engine, ...] = (
        "vllm",
        "vllm_detailed",
        "vllm_old",
        "vllm_python",
        "sglang",
        "profiler_step",
        "none",
    )
    launches: tuple[Launch, ...] = ("graph", "piecewise", "eager")
    troubles: bool = True


def random_model(rng: random.Random, limits: Limits = Limits()) -> TraceSpec:
    """A random trace specification; the same state of `rng` gives the same one.

    `limits.troubles` False leaves out what the profiler or other streams add: dropped and foreign kernels,
    partial first and last steps, jitter, side streams, stream hopping, a renamed first block.
    """
    vendor: Vendor = rng.choice(("cuda", "rocm"))
    layers = rng.choice((1, 2, 3, rng.randint(4, 16), rng.randint(17, limits.max_layers)))
    layers = min(layers, limits.max_layers)
    model = _model(rng, vendor, layers, limits)
    batch = rng.choice((1, 4, 32))
    steps = decode_steps(rng.randint(1, limits.max_steps), batch=batch, kv_tokens=rng.randint(64, 4096))
    spec = TraceSpec(
        model=model,
        steps=steps,
        engine=rng.choice(limits.engines),
        launch=rng.choice(limits.launches),
        vendor=vendor,
        device=DEVICE_OF_VENDOR[vendor],
        device_id=rng.choice((0, 0, 3)),
        rank=rng.choice((0, 1)),
        world_size=2,
        thread_names=rng.random() < 0.8,
        shuffled=rng.random() < 0.8,
    )
    return _troubled(rng, spec) if limits.troubles else spec


def _model(rng: random.Random, vendor: Vendor, layers: int, limits: Limits) -> ModelSpec:
    side = limits.troubles and rng.random() < 0.4
    kinds = _kinds(rng, vendor, rng.randint(1, limits.max_kinds), side)
    pattern = _pattern(rng, layers, len(kinds))
    gpu = GPU_OF_VENDOR[vendor]
    names: tuple[tuple[str, str], ...] = ()
    if limits.troubles and rng.random() < 0.5:
        names = ((INPUT_NORM.format(serial=1), FIRST_NORM.format(serial=0)),)
    return ModelSpec(
        name=f"random-{layers}",
        layers=tuple(kinds[i] for i in pattern),
        prologue=_prologue(rng, gpu),
        epilogue=_epilogue(rng, gpu),
        first_block_names=names,
        class_name="Random",
    )


def _pattern(rng: random.Random, layers: int, kinds: int) -> list[int]:
    """Which kind each layer is of: a period, or a head of one kind before the rest."""
    if kinds == 1 or layers == 1:
        return [0] * layers
    if rng.random() < 0.3:
        head = rng.randint(1, min(3, layers - 1))
        return [0] * head + [1] * (layers - head)
    period = [*range(kinds), *(0 for _ in range(rng.randint(0, 2)))]
    return [period[i % len(period)] for i in range(layers)]


def _kinds(rng: random.Random, vendor: Vendor, count: int, side: bool) -> list[BlockSpec]:
    base = _random_block(rng, vendor, side)
    kinds = [BlockSpec("kind0", base)]
    for number in range(1, count):
        by_duration = rng.random() < 0.3
        kernels = _slower_attention(base, 1.8 + number) if by_duration else _with_extra(rng, base, number)
        kinds.append(BlockSpec(f"kind{number}", kernels))
    return kinds


def _slower_attention(kernels: tuple[KernelSpec, ...], factor: float) -> tuple[KernelSpec, ...]:
    """The same names; only the attention's duration tells the kinds apart."""
    return tuple(
        replace(kernel, dur_us=round(kernel.dur_us * factor, 3)) if kernel.role == "attention" else kernel
        for kernel in kernels
    )


def _with_extra(rng: random.Random, kernels: tuple[KernelSpec, ...], number: int) -> tuple[KernelSpec, ...]:
    """One kernel more, inside the block."""
    at = rng.randint(1, len(kernels) - 1)
    name, role = f"indexer_{'abc'[number % 3]}_kernel", "other"
    extra = KernelSpec(name, role, round(rng.uniform(3, 30), 3), grid=(16, 1, 1), block=(128, 1, 1))  # type: ignore[arg-type]
    return (*kernels[:at], extra, *kernels[at:])


def _random_block(rng: random.Random, vendor: Vendor, side: bool) -> tuple[KernelSpec, ...]:
    gpu = GPU_OF_VENDOR[vendor]
    hidden = rng.choice((1024, 2048, 4096))
    ffn = hidden * rng.choice((3, 4))
    norm = k.small(gpu, INPUT_NORM.format(serial=1), "norm")
    middle = norm if rng.random() < 0.5 else replace(norm, name=INPUT_NORM.format(serial=3))
    attention = KernelSpec(
        "kernel_unified_attention_2d", "attention", round(rng.uniform(8, 60), 3), grid=(8, 8, 1), block=(128, 1, 1)
    )
    moe = rng.random() < 0.5
    add = (k.small(gpu, k.RESIDUAL_ADD, "other"),) if rng.random() < 0.25 else ()
    return (
        norm,
        k.gemm(gpu, "qkv_proj", hidden * 3 // 2, hidden, 1),
        *_fillers(rng, gpu, 1),
        k.small(gpu, k.KV_WRITE[vendor], "kv_write"),
        attention,
        k.gemm(gpu, "o_proj", hidden, hidden, 1),
        *add,
        middle,
        *(_moe(rng, gpu, hidden, side) if moe else _dense(rng, gpu, hidden, ffn)),
        *add,
    )


def _fillers(rng: random.Random, gpu: k.Gpu, least: int) -> tuple[KernelSpec, ...]:
    chosen = rng.sample(FILLERS, rng.randint(least, len(FILLERS)))
    return tuple(k.small(gpu, name.format(serial=2 + i), role) for i, (name, role) in enumerate(chosen))  # type: ignore[arg-type]


def _dense(rng: random.Random, gpu: k.Gpu, hidden: int, ffn: int) -> tuple[KernelSpec, ...]:
    tile = rng.choice(((64, 16, 64), (128, 16, 64)))
    return (
        k.gemm(gpu, "gate_up", 2 * ffn, hidden, 1, tile),
        k.small(gpu, k.ACTIVATION, "activation"),
        k.gemm(gpu, "down", hidden, ffn, 1, tile),
    )


def _moe(rng: random.Random, gpu: k.Gpu, hidden: int, side: bool) -> tuple[KernelSpec, ...]:
    shared = (
        (
            k.gemm(gpu, "gate_up", hidden, hidden, 1, (32, 16, 64), stream=1),
            k.gemm(gpu, "down", hidden, hidden // 2, 1, (32, 16, 64), stream=1),
        )
        if side
        else ()
    )
    experts = [round(rng.uniform(20, 200), 3) for _ in range(2)]
    return (
        k.gemm(gpu, "router", 64, hidden, 1, (16, 16, 256)),
        *shared,
        k.small(gpu, "_topk_forward", "moe_routing"),
        KernelSpec("fused_moe_kernel", "moe_gate_up", experts[0], grid=(96, 1, 1), block=(256, 1, 1)),
        k.small(gpu, k.ACTIVATION, "activation"),
        KernelSpec("fused_moe_kernel", "moe_down", experts[1], grid=(48, 1, 1), block=(256, 1, 1)),
        k.small(
            gpu,
            "void vllm::moe::moe_sum_kernel<c10::BFloat16, 4>(c10::BFloat16*, c10::BFloat16 const*, int)",
            "moe_combine",
        ),
    )


def _prologue(rng: random.Random, gpu: k.Gpu) -> tuple[KernelSpec, ...]:
    copies = tuple(k.host_copy(gpu, 64 << i) for i in range(rng.randint(0, 4)))
    slots = k.small(gpu, k.SLOT_MAPPING, "other", in_graph=False)
    return (*copies, slots, k.small(gpu, k.EMBEDDING, "embedding"))


def _epilogue(rng: random.Random, gpu: k.Gpu) -> tuple[KernelSpec, ...]:
    lm_head = k.gemm(gpu, "lm_head", rng.choice((32_000, 151_936)), 1024, 1, (256, 16, 64))
    return (
        k.small(gpu, INPUT_NORM.format(serial=1), "norm"),
        replace(lm_head, in_graph=False),
        k.small(gpu, k.ARGMAX, "sampler", 2.0, in_graph=False),
        k.token_copy(gpu, 8),
    )


def _troubled(rng: random.Random, spec: TraceSpec) -> TraceSpec:
    blocks = len(spec.model.layers)
    steps = len(spec.steps)
    kernels = min(len(layer.kernels) for layer in spec.model.layers)
    dropped = tuple(
        DroppedKernel(rng.randrange(steps), rng.randrange(blocks), rng.randrange(2, kernels))
        for _ in range(rng.choice((0, 0, 1, 3)))
    )
    foreign = tuple(
        ForeignKernel(rng.randrange(steps), rng.randrange(blocks), FOREIGN) for _ in range(rng.choice((0, 0, 1, 4)))
    )
    return replace(
        spec,
        jitter=rng.choice((0.0, 0.02, 0.1)),
        hop_streams=rng.choice((1, 1, 1, 2, 4)),
        overlap_us=rng.choice((0.0, 0.0, 1.5)),
        gpu_lag_us=rng.choice((0.0, 0.0, 800.0, 20_000.0)),
        leading_kernels=rng.choice((0, 0, 5, 40)),
        cut_last_step=rng.choice((None, None, None, rng.randint(0, 30))) if steps > 1 else None,
        dropped=tuple(dict.fromkeys(dropped)),
        foreign=foreign,
    )


FOREIGN = KernelSpec(
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, std::array<char*, "
        "1ul> >(int, at::native::FillFunctor<int>, std::array<char*, 1ul>)"
    ),
    "other",
    1.7,
    grid=(1, 1, 1),
    block=(128, 1, 1),
)
