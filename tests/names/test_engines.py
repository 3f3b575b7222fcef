"""Kernels of convolution libraries, training, expert-parallel exchange and llama.cpp are known by kind."""

from __future__ import annotations

import pytest

from tests.support.engine_names import CONVOLUTIONS, ENGINES, GGML, KINDS
from traceanalyzer.names import parse


@pytest.mark.parametrize(("name", "direction"), CONVOLUTIONS, ids=[name[:60] for name, _ in CONVOLUTIONS])
def test_a_convolution_is_told_from_a_product_and_never_called_retunable(name: str, direction: str | None) -> None:
    kernel = parse(name)
    assert (kernel.kind, kernel.family, kernel.role) == ("convolution", "convolution", "other")
    assert kernel.direction == direction
    assert (kernel.retunable, kernel.knob) == (False, None)


@pytest.mark.parametrize(("name", "kind", "family", "direction"), KINDS, ids=[row[0][:60] for row in KINDS])
def test_names_of_engines_have_kind_family_and_direction(
    name: str, kind: str, family: str, direction: str | None
) -> None:
    kernel = parse(name)
    assert (kernel.kind, kernel.family, kernel.direction) == (kind, family, direction)


@pytest.mark.parametrize(("name", "kind"), ENGINES, ids=[name[:60] for name, _ in ENGINES])
def test_names_of_many_engines_have_a_kind(name: str, kind: str) -> None:
    assert parse(name).kind == kind


def test_a_product_of_the_backward_pass_is_no_convolution() -> None:
    for name in ("_wgrad_gemm_kernel", "void deep_gemm::sm90_fp8_wgrad_gemm_impl<1>(P)"):
        assert (parse(name).kind, parse(name).direction) == ("gemm", "backward")


@pytest.mark.parametrize(("name", "kind"), GGML, ids=[name[:60] for name, _ in GGML])
def test_kernels_of_llama_cpp_have_a_kind(name: str, kind: str) -> None:
    kernel = parse(name)
    assert (kernel.kind, kernel.library) == (kind, "ggml")
    assert not kernel.retunable


@pytest.mark.parametrize(
    "name",
    [
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1",
        "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x32x64_stage4_warpsize2x2x1_tensor16x8x16_kernel",
        "volta_sgemm_64x64_nt",
        "volta_int8_i8816gemm_int8_256x128_ldg16_stages_64x1_nt",
        "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_tn_align1>(P)",
        "void deep_gemm::sm90_fp8_gemm_1d2d_impl<0, 2112, 7168, 1, 64, 112, 128>(P)",
    ],
)
def test_the_name_of_a_product_tells_no_direction(name: str) -> None:
    kernel = parse(name)
    assert (kernel.kind, kernel.direction) == ("gemm", None)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("_causal_conv1d_fwd_kernel", "ssm"),
        ("_causal_conv1d_update_kernel", "ssm"),
        ("fused_qkvzba_split_reshape_cat_kernel", "ssm"),
        ("void vllm::convert_fp8_kernel<float>(P)", "quantize"),
        ("_upgraded_gate_kernel_rmsnorm", "norm"),
        ("fused_conv_state_update_kernel", "ssm"),
    ],
)
def test_words_that_only_look_like_a_convolution_or_a_gradient_are_neither(name: str, kind: str) -> None:
    kernel = parse(name)
    assert kernel.kind == kind
    assert kernel.direction != "backward"
