"""FLOP and bytes from Input Dims, and what they do not tell."""

from __future__ import annotations

import json
from typing import Any

import pytest

from traceanalyzer.roofline.shape_work import ShapeWork, shape_work

BF16 = "c10::BFloat16"


def work(
    op: str, dims: list[Any], types: list[str], concrete: list[str] | None = None, kernel: str = ""
) -> ShapeWork | None:
    return shape_work(op, json.dumps(dims), json.dumps(types), json.dumps(concrete or [""] * len(dims)), kernel)


@pytest.mark.parametrize(
    ("op", "dims", "types"),
    [
        ("aten::mm", [[32, 4096], [4096, 6144]], [BF16] * 2),
        ("aten::linear", [[4, 8, 4096], [6144, 4096], []], [BF16, BF16, ""]),
        ("aten::linear", [[32, 4096], [6144, 4096], [6144]], [BF16] * 3),
        ("aten::addmm", [[6144], [32, 4096], [4096, 6144], [], []], [BF16] * 3 + ["Scalar"] * 2),
        ("vllm::rocm_unquantized_gemm", [[32, 4096], [6144, 4096], []], [BF16, BF16, ""]),
        ("_C::cutlass_scaled_mm", [[32, 6144], [32, 4096], [4096, 6144]], [BF16] * 3),
    ],
)
def test_matrix_products(op: str, dims: list[Any], types: list[str]) -> None:
    found = work(op, dims, types)
    assert found is not None
    assert (found.m, found.n, found.k) == (32, 6144, 4096)
    assert found.flops == 2 * 32 * 6144 * 4096
    assert found.bytes == 2 * (32 * 4096 + 4096 * 6144 + 32 * 6144)
    assert found.dtype == "bf16"


def test_batched_products_count_every_batch() -> None:
    found = work("aten::bmm", [[16, 32, 128], [16, 128, 512]], [BF16] * 2)
    assert found is not None
    assert found.flops == 2 * 16 * 32 * 128 * 512
    assert found.bytes == 2 * 16 * (32 * 128 + 128 * 512 + 32 * 512)


def test_fp8_operands_give_a_16_bit_result() -> None:
    found = work("aten::_scaled_mm", [[32, 4096], [4096, 6144], [], []], ["c10::Float8_e4m3fn"] * 2 + [""] * 2)
    assert found is not None
    assert found.dtype == "fp8"
    assert found.bytes == 32 * 4096 + 4096 * 6144 + 2 * 32 * 6144


def test_tf32_is_told_by_the_kernel() -> None:
    kernel = "cutlass_80_tensorop_s1688gemm_tf32_256x128"
    found = work("aten::mm", [[8, 8], [8, 8]], ["float", "float"], kernel=kernel)
    assert found is not None
    assert found.dtype == "tf32"


@pytest.mark.parametrize(("causal", "pairs"), [("True", 512 * 513 / 2), ("False", 512 * 512)])
def test_attention_of_equal_lengths(causal: str, pairs: float) -> None:
    concrete = ["", "", "", "0.", causal, "False"]
    found = work(
        "aten::_scaled_dot_product_flash_attention",
        [[2, 32, 512, 128], [2, 8, 512, 128], [2, 8, 512, 128], [], [], []],
        [BF16] * 3 + ["Scalar"] * 3,
        concrete,
    )
    assert found is not None
    assert found.flops == 4 * 2 * 32 * 128 * pairs
    assert found.bytes == 2 * 2 * 512 * 128 * (2 * 32 + 2 * 8)


def test_elementwise_ops_write_their_common_shape() -> None:
    found = work("aten::mul", [[16, 1, 64], [1, 8, 64]], ["float", BF16])
    assert found is not None
    assert found.bytes == 4 * 16 * 64 + 2 * 8 * 64 + 4 * 16 * 8 * 64


def test_copies_read_one_and_write_the_other() -> None:
    found = work("aten::copy_", [[64, 8], [64, 8], []], [BF16, "float", "Scalar"])
    assert found is not None
    assert found.bytes == 64 * 8 * (2 + 4)


@pytest.mark.parametrize("op", ["aten::fill_", "aten::zero_"])
def test_what_is_filled_is_written_and_not_read(op: str) -> None:
    found = work(op, [[64, 8], []], [BF16, "Scalar"])
    assert found is not None
    assert found.bytes == 64 * 8 * 2


def test_lookups_touch_only_the_rows_asked_for() -> None:
    found = work("aten::index_select", [[151936, 1024], [], [32]], [BF16, "Scalar", "long int"])
    assert found is not None
    assert found.bytes == 2 * 32 * 1024 * 2 + 32 * 8


@pytest.mark.parametrize(("op", "tensors"), [("aiter::rms_norm", 2), ("_C::fused_add_rms_norm", 4)])
def test_norms_move_the_residual_where_they_add_it(op: str, tensors: int) -> None:
    found = work(op, [[32, 2880], [32, 2880], [2880]], [BF16] * 3)
    assert found is not None
    assert found.bytes == 2 * (tensors * 32 * 2880 + 2880)


def test_compiled_pointwise_kernels_move_each_tensor_once() -> None:
    found = work("triton_poi_fused_pad_0", [[32, 2880], [32, 3072], []], [BF16, BF16, "Scalar"], ["", "", "98304"])
    assert found is not None
    assert found.bytes == 2 * 32 * (2880 + 3072)


@pytest.mark.parametrize(
    ("op", "dims", "types", "concrete"),
    [
        ("vllm::moe_forward", [[32, 3072], [32, 32]], [BF16] * 2, None),
        ("aten::mm", [[32, 3072]], [BF16], None),
        ("aten::mm", [[32, 3072], [4096, 64]], [BF16] * 2, None),
        ("aten::mm", [[32, 64], [64, 8]], ["SomeNewType", BF16], None),
        ("aten::cat", [[[4, 8], [4, 8]], []], ["TensorList", "Scalar"], None),
        # A gather of embeddings fused into a pointwise kernel reads a few rows of a large table.
        ("triton_poi_fused_0", [[32], [201088, 2880], [32, 2880]], ["int", BF16, BF16], ["", "", "", "92160"]),
        ("triton_poi_fused_0", [[32], [32, 2880]], ["int", BF16], None),
        ("vllm::unified_attention_with_output", [[32, 64, 64]] * 3, [BF16] * 3, None),
        ("aten::_flash_attention_forward", [[16, 559, 16, 64]] * 3, [BF16] * 3, None),
    ],
)
def test_what_shapes_do_not_tell_is_unknown(op: str, dims: Any, types: Any, concrete: Any) -> None:
    assert work(op, dims, types, concrete) is None


@pytest.mark.parametrize(
    ("dims", "types"),
    [("[[1", "[]"), ("{}", "{}"), ("[[1, 2]]", "[]"), ("null", "null"), ("[[-1, 2], [2, 3]]", '["float", "float"]')],
)
def test_broken_dims_are_unknown(dims: str, types: str) -> None:
    assert shape_work("aten::mm", dims, types, None, "gemm") is None


def test_listed_tensors_have_the_width_in_the_kernels_name() -> None:
    kernel = "void CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 4, 64, 64>(...)"
    found = work("aten::cat", [[[4, 8], [4, 8]], []], ["TensorList", "Scalar"], kernel=kernel)
    assert found is not None
    assert found.bytes == 2 * 2 * (4 * 8 * 2)
