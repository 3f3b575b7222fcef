"""parse and parse_many on any text, warps from the event, and the frame."""

from __future__ import annotations

import json

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traceanalyzer.declare import plain
from traceanalyzer.names import KernelName, normalise, parse, parse_many, role_hint, short_name
from traceanalyzer.names.kernel_name import FAMILIES, KINDS

ROLES = {
    "norm", "qkv_proj", "rope", "kv_write", "attention", "o_proj", "router", "moe_routing", "moe_gate_up", "moe_down",
    "moe_combine", "gate_up", "down", "activation", "quantize", "communication", "copy", "embedding", "lm_head",
    "sampler", "other",
}  # fmt: skip
FRAGMENTS = [
    "nvjet_sm90_tst_",
    "192x8_64x8_2x1",
    "_v_bz_splitK_TNT",
    "Cijk_Alik_Bljk_",
    "_MT0x0x0",
    "_MT99999x1x1",
    "void ",
    "<",
    ">",
    "(",
    ")",
    "{lambda()#1}",
    "cutlass::device_kernel<",
    "CollectiveMma<",
    "cute::tuple<",
    "cute::C<64>",
    ", ",
    "_ZN",
    "7ck_tile",
    "6kentry",
    "999999",
    "ILi1E",
    "LNS_",
    "E1E",
    ".kd",
    "[clone ",
    "0x7f00",
    "\x00",
    "\n",
    "\u202e",
    "\ud800",
    "_BLOCK_SIZE_M_",
    "128",
    "triton_poi_fused_",
    "silu",
    "aten::",
    "bmm_",
    "_t128x8x512_s5",
    "deep_gemm::",
    "sm90_fp8_gemm<",
    "(unsigned int)",
    "std::enable_if<",
    ">::type ",
    "allreduce",
    "gemm",
    "_matmul_ogs_NNT_",
]
ANY_NAME = st.text(max_size=300) | st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join)


def assert_sane(kernel: KernelName) -> None:
    assert kernel.kind in KINDS
    assert kernel.family in FAMILIES
    assert kernel.role is None or kernel.role in ROLES
    numbers = (kernel.block_m, kernel.block_n, kernel.block_k, kernel.split_k, kernel.stages, kernel.num_warps)
    assert all(number is None or number > 0 for number in numbers)
    assert kernel.cluster is None or all(extent > 0 for extent in kernel.cluster)
    texts = (kernel.scheme, kernel.epilogue, kernel.knob, kernel.ambiguous, kernel.library, kernel.fused_ops)
    assert "" not in texts
    assert "" not in (kernel.dtypes.output, kernel.dtypes.activation, kernel.dtypes.weight)


@settings(max_examples=400, deadline=None)
@given(ANY_NAME)
def test_any_text_is_read_without_an_error(name: str) -> None:
    kernel = parse(name)
    assert kernel.name == name
    assert_sane(kernel)
    json.dumps(plain(kernel))
    assert role_hint(kernel) == kernel.role


@pytest.mark.parametrize("name", ["", " ", "\t\n", "\x00", "_Z", "_ZN", "_ZN999999x", "<", "void ", "::", "kentry<"])
def test_degenerate_names_are_unknown(name: str) -> None:
    assert parse(name).kind == "unknown"


@pytest.mark.parametrize(
    "unit",
    [
        "triton_tem_",
        "cutlass_gemm",
        "std::enable_if<",
        "_ZN5aiter",
        "[clone ",
        "CollectiveMma<",
        "nvjet_",
        "L1",
        "((<<",
    ],
)
def test_a_name_of_a_megabyte_takes_bounded_work(unit: str) -> None:
    name = unit * (1_000_000 // len(unit)) + "]"
    # A pattern that backtracks takes hours on these, a sound one milliseconds.
    assert parse(name).name == name
    assert normalise(name)
    assert len(short_name(name, 40)) <= 40


def test_warps_come_from_the_event_only() -> None:
    name = "_matmul_ogs_NNT_bf16xbf16xmxfp4_32x256x128x1_swiglu"
    assert parse(name).num_warps is None
    assert parse(name, block=(512, 1, 1)).num_warps is None
    assert parse(name, warp_size=64).num_warps is None
    assert parse(name, block=(512, 1, 1), warp_size=64).num_warps == 8
    assert parse(name, block=(32, 4, 2), warp_size=32).num_warps == 8
    assert parse(name, block=(33, 1, 1), warp_size=32).num_warps == 2
    assert parse(name, block=(0, 1, 1), warp_size=32).num_warps is None
    assert parse(name).num_warps is None


def test_a_field_of_zero_is_missing() -> None:
    assert parse("Cijk_Alik_Bljk_BBS_BH_MT0x32x256_MI16x16x1").block_m is None


def test_a_reading_has_the_keys_of_the_document() -> None:
    record = plain(parse("nvjet_sm90_tst_192x8_64x8_2x1_v_bz_splitK_TNT"))
    assert {
        "name", "scheme", "family", "kind", "block_m", "block_n", "block_k", "split_k", "stages", "num_warps",
        "cluster", "dtypes", "epilogue", "retunable", "knob", "ambiguous",
    } <= set(record)  # fmt: skip
    assert record["cluster"] == (2, 1)
    assert set(record["dtypes"]) == {"output", "activation", "weight"}


def test_parse_many_gives_one_row_per_distinct_name_in_order() -> None:
    names = ["fused_moe_kernel", "Memset (Device)", "fused_moe_kernel", "triton_poi_fused_silu_mul_4"]
    frame = parse_many(names)
    assert frame["name"].to_list() == ["fused_moe_kernel", "Memset (Device)", "triton_poi_fused_silu_mul_4"]
    assert frame["role"].to_list() == [None, "copy", "activation"]
    assert frame["normalised"].to_list()[2] == "triton_poi_fused_silu_mul"
    assert frame.schema["block_m"] == pl.Int64
    assert frame.schema["cluster"] == pl.List(pl.Int64)


def test_parse_many_of_nothing_keeps_its_columns() -> None:
    assert parse_many([]).schema == parse_many(["x"]).schema
    assert parse_many([]).height == 0
