"""Names to group by, and names to show."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traceanalyzer.names import normalise, short_name

SAME = [
    ("triton_red_fused_add_mean_mul_pow_rsqrt_3", "triton_red_fused_add_mean_mul_pow_rsqrt_17"),
    ("triton_tem_fused_mm_0", "triton_tem_fused_mm_1"),
    ("triton_poi_fused_0", "triton_poi_fused_4"),
    ("_matmul_ogs_NNT_bf16xbf16xmxfp4_32x256x128x1.kd", "_matmul_ogs_NNT_bf16xbf16xmxfp4_32x256x128x1"),
    ("void f<&g[0x7f12ab34cd]>(int)", "void f<&g[0x55aa00bb11]>(int)"),
    (
        "void rocprim::ROCPRIM_400200_NS::detail::trampoline_kernel<long>(int)",
        "void rocprim::ROCPRIM_300101_NS::detail::trampoline_kernel<long>(int)",
    ),
    (
        "void cub::CUB_200802_750_800_860_900_NS::DeviceScanKernel<int>(int)",
        "void cub::CUB_300001_SM_900_NS::DeviceScanKernel<int>(int)",
    ),
    ("foo(int) [clone .constprop.0]", "foo(int)"),
    ("  padded ", "padded"),
    (
        "_ZN46_GLOBAL__N__4e8cd6b4_21_Distribution_cu_0c5b6e851fEv",
        "_ZN46_GLOBAL__N__aaaaaaaa_21_Distribution_cu_bbbbbbbb1fEv",
    ),
]
DIFFERENT = [
    ("_matmul_ogs_NNT_bf16xbf16xmxfp4_32x256x128x1", "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x256x128x1"),
    ("_fwd_grouped_kernel_stage1", "_fwd_grouped_kernel_stage2"),
    ("void f<1>(int)", "void f<2>(int)"),
    ("ncclDevKernel_Generic_1", "ncclDevKernel_Generic_4"),
    ("triton_poi_fused_add_1", "triton_poi_fused_mul_1"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_names_that_differ_from_build_to_build_group_together(first: str, second: str) -> None:
    assert normalise(first) == normalise(second)


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_names_of_different_kernels_stay_apart(first: str, second: str) -> None:
    assert normalise(first) != normalise(second)


@settings(max_examples=200, deadline=None)
@given(
    st.text(st.characters(exclude_characters="."), max_size=200)
    | st.from_regex(r"triton_poi_fused(_[0-9a-z]{1,3}){0,4}")
)
def test_normalising_twice_changes_nothing(name: str) -> None:
    once = normalise(name)
    assert normalise(once) == once


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("void vllm::rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, int)", "vllm::rms_norm_kernel"),
        ("void (anonymous namespace)::store_kvcache<2048l>(P)", "store_kvcache"),
        ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bLi64EEEvPT0_", "aiter::add_rmsnorm_quant_kernel"),
        ("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_3FooEEEEEvDpT1_", "ck_tile::kentry<Rmsnorm2dFwd>"),
        (
            "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<2> > >(P)",
            "cutlass::device_kernel<flash::FlashAttnFwdSm90>",
        ),
        (
            "void at::native::elementwise_kernel<4, at::native::FillFunctor<int> >(int)",
            "at::native::elementwise_kernel<FillFunctor>",
        ),
        ("std::enable_if<!(false), void>::type internal::gemvx::kernel<int>", "internal::gemvx::kernel"),
        ("Memcpy DtoD (Device -> Device)", "Memcpy DtoD (Device -> Device)"),
        ("reduce_segments.kd", "reduce_segments"),
        ("line1\nline2", "line1\\nline2"),
        ("a\x1b[31mred", "a\\x1b[31mred"),
        ("right\u202eleft", "right\\u202eleft"),
        ("ядро_グ_🚀", "ядро_グ_🚀"),
    ],
)
def test_short_name_shows_what_runs(name: str, shown: str) -> None:
    assert short_name(name, 60) == shown


def test_short_name_keeps_both_ends_of_a_long_name() -> None:
    shown = short_name("Cijk_Alik_Bljk_BBS_BH_" + "X1_" * 60 + "WG32_8_1", 30)
    assert len(shown) == 30
    assert shown.startswith("Cijk_Alik_Bl")
    assert shown.endswith("WG32_8_1")
    assert "…" in shown


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300), st.integers(min_value=0, max_value=80))
def test_short_name_fits_and_is_printable(name: str, width: int) -> None:
    shown = short_name(name, width)
    assert len(shown) <= width
    assert shown.isprintable()
