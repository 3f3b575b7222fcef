"""Kernels that the ready models are made of: real names, plausible durations.

A duration is the time to stream the weights at four fifths of the memory bandwidth, or a few µs for kernels
that move next to nothing. None of it is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from synthetic.spec import KernelSpec, Role, Vendor

STREAMING_SHARE = 0.8
SMALL_US: dict[Vendor, float] = {"cuda": 2.4, "rocm": 5.2}

EMBEDDING = (
    "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)"
)
NORM = (
    "void vllm::rms_norm_kernel<c10::BFloat16, 8, 2>(c10::BFloat16*, c10::BFloat16 const*, long, "
    "c10::BFloat16 const*, float, int, int)"
)
ADD_NORM = (
    "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long, c10::BFloat16*, "
    "c10::BFloat16 const*, float, int, int)"
)
RESIDUAL_ADD = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)"
)
ROPE = (
    "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*, "
    "c10::BFloat16*, c10::BFloat16 const*, int, long, long, long, int, int, int)"
)
ACTIVATION = (
    "void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 "
    "vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), true>(c10::BFloat16*, c10::BFloat16 "
    "const*, int)"
)
ARGMAX = (
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, "
    "unsigned int, long, 4, 4> >(at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, "
    "long, 4, 4>)"
)
SLOT_MAPPING = "_compute_slot_mapping_kernel"
ALL_REDUCE: dict[Vendor, str] = {
    "cuda": (
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*, vllm::RankSignals, "
        "vllm::Signal*, __nv_bfloat16*, int, int)"
    ),
    "rocm": (
        "void vllm::cross_device_reduce_1stage<__hip_bfloat16, 2>(vllm::RankData*, vllm::RankSignals, "
        "vllm::Signal*, __hip_bfloat16*, int, int)"
    ),
}
KV_WRITE: dict[Vendor, str] = {
    "cuda": (
        "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, "
        "(vllm::Fp8KVCacheDataType)0>(__nv_bfloat16 const*, __nv_bfloat16 const*, __nv_bfloat16*, "
        "__nv_bfloat16*, long const*, long, long, long, long, long, int, int, int, float const*, float "
        "const*)"
    ),
    "rocm": (
        "void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16, "
        "(vllm::Fp8KVCacheDataType)0>(__hip_bfloat16 const*, __hip_bfloat16 const*, __hip_bfloat16*, "
        "__hip_bfloat16*, long const*, long, long, long, long, long, int, int, int, float const*, float "
        "const*)"
    ),
}
FLASH_ATTENTION = (
    "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMai"
    "nloopFwdSm90<2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >, cute::tuple<cute::C<64>, "
    "cute::C<128>, cute::C<128> >, 128, cutlass::bfloat16_t, float, cutlass::arch::Sm90> > > "
    ">(flash::Params)"
)
FLASH_COMBINE = (
    "void cutlass::device_kernel<flash::enable_sm80_to_sm89<flash::FlashAttnFwdCombine<cute::tuple<cute::"
    "C<8>, cute::C<128> >, 5, 256, 1, false, true, cutlass::bfloat16_t, float, cutlass::arch::Sm90> > "
    ">(flash::CombineParams)"
)
ROUTING = ("_topk_forward", "_sum_bitmatrix_rows", "_combined_routing_memset", "_combined_routing_compute")
HOST_TO_DEVICE: dict[Vendor, str] = {
    "cuda": "Memcpy HtoD (Pinned -> Device)",
    "rocm": "Memcpy HtoD (Host -> Device)",
}
DEVICE_TO_HOST: dict[Vendor, str] = {
    "cuda": "Memcpy DtoH (Device -> Pinned)",
    "rocm": "Memcpy DtoH (Device -> Host)",
}


@dataclass(frozen=True)
class Gpu:
    """What durations are derived from. Bandwidth in GB/s; `tensile_arch` is the ISA in Tensile names."""

    vendor: Vendor
    bandwidth_gbps: float
    tensile_arch: str = "1151"
    wavefront: int = 32

    @property
    def small_us(self) -> float:
        """Duration of a kernel that does next to nothing."""
        return SMALL_US[self.vendor]

    def stream_us(self, num_bytes: float) -> float:
        """Time to read `num_bytes`, and never under that of a small kernel."""
        return max(self.small_us, num_bytes / (self.bandwidth_gbps * STREAMING_SHARE * 1e3))


H100 = Gpu("cuda", 3350)
MI300X = Gpu("rocm", 5300, tensile_arch="942", wavefront=64)
STRIX_HALO = Gpu("rocm", 256)


def small(gpu: Gpu, name: str, role: Role, factor: float = 1.0, **more: object) -> KernelSpec:
    """A kernel bound by launch latency."""
    block = (256, 1, 1)
    return KernelSpec(name, role, round(gpu.small_us * factor, 3), grid=(8, 1, 1), block=block, **more)  # type: ignore[arg-type]


def gemm(
    gpu: Gpu, role: Role, n: int, k: int, rows: int, tile: tuple[int, int, int] = (64, 16, 64), stream: int = 0
) -> KernelSpec:
    """A bf16 matrix product of `rows` x `k` with a `k` x `n` weight, in the vendor's library."""
    grid = (ceil(n / tile[0]), ceil(rows / tile[1]), 1)
    name = _nvjet(tile) if gpu.vendor == "cuda" else _tensile(tile, gpu)
    threads = 384 if gpu.vendor == "cuda" else 128
    return KernelSpec(
        name=name,
        role=role,
        dur_us=round(gpu.stream_us(2 * n * k + 2 * rows * (n + k)), 3),
        stream=stream,
        grid=grid,
        block=(threads, 1, 1),
        dims=((rows, k), (n, k)),
    )


def _nvjet(tile: tuple[int, int, int]) -> str:
    return f"nvjet_sm90_tst_{tile[0]}x{tile[1]}_{tile[2]}x8_2x1_v_bz_TNT"


def _tensile(tile: tuple[int, int, int], gpu: Gpu) -> str:
    m, n, depth = tile
    return (
        f"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT{m}x{n}x{depth}_MI16x16x1_SN_LDSB1_AFC1_GSUAMB_GLS0"
        f"_ISA{gpu.tensile_arch}_IU1_K1_PGR2_PLR1_SK0_WS{gpu.wavefront}_WG32_4_1"
    )


def host_copy(gpu: Gpu, num_bytes: int) -> KernelSpec:
    """An input copied to the device, outside any graph."""
    return KernelSpec(
        HOST_TO_DEVICE[gpu.vendor],
        "copy",
        round(gpu.small_us * 0.6, 3),
        category="gpu_memcpy",
        in_graph=False,
        bytes=num_bytes,
    )


def token_copy(gpu: Gpu, num_bytes: int) -> KernelSpec:
    """The sampled tokens copied back to the host."""
    return KernelSpec(
        DEVICE_TO_HOST[gpu.vendor],
        "copy",
        round(gpu.small_us * 0.7, 3),
        category="gpu_memcpy",
        in_graph=False,
        bytes=num_bytes,
    )


def memset(gpu: Gpu, num_bytes: int, stream: int = 0) -> KernelSpec:
    """A buffer set to zero on the device."""
    return KernelSpec(
        "Memset (Device)",
        "copy",
        round(gpu.small_us * 0.3, 3),
        stream=stream,
        category="gpu_memset",
        bytes=num_bytes,
    )
