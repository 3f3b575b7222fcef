"""Capture join, enclosing ops, launch latency and roofs, on frames made by hand."""

from __future__ import annotations

import polars as pl
import pytest

from traceanalyzer.hardware import find_gpu
from traceanalyzer.roofline.ceilings import Reached, default_ceilings, proven
from traceanalyzer.roofline.graph_capture import join_captures
from traceanalyzer.roofline.latency import latency_floor
from traceanalyzer.roofline.op_shapes import enclosing

GRAPH = ["norm", "gemm", "gemm", "act"]


def kernels(names: list[str], tokens: int | None = 32) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "index": range(len(names)),
            "name": names,
            "device": pl.Series([0] * len(names), dtype=pl.Int32),
            "correlation": pl.Series([7] * len(names), dtype=pl.UInt64),
            "graph": True,
            "start_ns": range(len(names)),
            "tokens": pl.Series([tokens] * len(names), dtype=pl.Int64),
        }
    )


def launches(*captures: tuple[int | None, list[str]]) -> pl.DataFrame:
    rows = [
        {
            "capture": number,
            "size": size,
            "position": position,
            "launched_kernel": name,
            "op": f"{name}{position}",
            "dims": f"[[{size}, {position}]]",
            "types": None,
            "concrete": None,
            "call": 100 * number + position,
        }
        for number, (size, names) in enumerate(captures)
        for position, name in enumerate(names)
    ]
    schema = {"size": pl.Int64(), "types": pl.String(), "concrete": pl.String()}
    return pl.DataFrame(rows, schema_overrides=schema)


def joined(found: pl.DataFrame) -> dict[int, str]:
    return dict(found.select("index", "dims").rows())


def test_graph_kernels_take_the_shape_at_their_position() -> None:
    found, notes = join_captures(kernels(GRAPH), launches((32, GRAPH)))
    assert joined(found) == {i: f"[[32, {i}]]" for i in range(4)}
    assert notes == ["capture: 4 of 4 graph-launched kernels matched by position"]


def test_kernels_of_one_name_keep_their_order_where_streams_swap_others() -> None:
    found, _ = join_captures(kernels(["gemm", "norm", "act", "gemm"]), launches((32, GRAPH)))
    assert joined(found) == {0: "[[32, 1]]", 1: "[[32, 0]]", 2: "[[32, 3]]", 3: "[[32, 2]]"}


@pytest.mark.parametrize(("tokens", "size"), [(1, 8), (8, 8), (9, 16), (16, 16)])
def test_of_several_captures_the_smallest_that_holds_the_step_counts(tokens: int, size: int) -> None:
    found, _ = join_captures(kernels(GRAPH, tokens), launches((32, GRAPH), (8, GRAPH), (16, GRAPH)))
    assert joined(found)[0] == f"[[{size}, 0]]"


@pytest.mark.parametrize(("tokens", "sizes"), [(None, (8, 16)), (4, (None, None)), (4, (8, 8)), (64, (8, 16))])
def test_captures_that_cannot_be_told_apart_are_not_used(
    tokens: int | None, sizes: tuple[int | None, int | None]
) -> None:
    table = launches((sizes[0], GRAPH), (sizes[1], GRAPH))
    table = table.with_columns(dims=pl.format("[[{}, {}]]", "capture", "position"))
    found, notes = join_captures(kernels(GRAPH, tokens), table)
    assert found.is_empty()
    assert "several fit" in notes[0]


def test_a_capture_of_other_kernels_is_not_used() -> None:
    found, notes = join_captures(kernels(GRAPH), launches((32, [*GRAPH, "more"])))
    assert found.is_empty()
    assert "0 of 4" in notes[0]


def test_the_innermost_op_around_a_launch_is_found() -> None:
    ops = pl.DataFrame(
        {
            "index": [10, 11, 12, 13],
            "thread": ["1/1"] * 4,
            "start_ns": [0, 10, 30, 200],
            "end_ns": [100, 20, 60, 210],
        }
    )
    at = pl.DataFrame(
        {
            "thread": ["1/1", "1/1", "1/1", "2/2", "1/1"],
            "launched_ns": [15, 40, 70, 40, 150],
            "op_index": pl.Series([None] * 5, dtype=pl.Int64),
        }
    )
    assert enclosing(at, ops) == [11, 12, 10, None, None]


def durations(*values: int) -> pl.DataFrame:
    return pl.DataFrame({"dur_ns": values})


def test_launch_latency_is_a_low_quantile() -> None:
    found = latency_floor(durations(*[1_000], *[2_000] * 40, *[50_000] * 60))
    assert found.measured
    assert found.ns == 2_000


@pytest.mark.parametrize("values", [[2_000] * 10, [60_000] * 200])
def test_few_or_long_kernels_leave_the_latency_assumed(values: list[int]) -> None:
    found = latency_floor(durations(*values))
    assert not found.measured
    assert found.ns == 4_400
    assert "assumed" in found.basis


def test_a_big_transfer_proves_a_bandwidth() -> None:
    default = default_ceilings(find_gpu("H100 SXM5"))
    found = proven(default, [Reached("lm_head", "memory", "bf16", 1e9, 3_000.0)])
    assert found.gbps == 3_000
    assert "reached by lm_head here" in found.gbps_basis


@pytest.mark.parametrize(
    ("size", "rate"), [(1e6, 3_000.0), (1e9, 1_000.0), (1e9, 4_000.0)], ids=["fits a cache", "slow", "above the peak"]
)
def test_what_proves_nothing_leaves_the_default(size: float, rate: float) -> None:
    default = default_ceilings(find_gpu("H100 SXM5"))
    assert proven(default, [Reached("lm_head", "memory", "bf16", size, rate)]) == default


def test_types_that_a_gpu_lacks_have_the_achievable_roof_of_those_it_computes_in() -> None:
    shares = default_ceilings(find_gpu("A100 SXM4 80GB")).compute_share
    assert 0 < shares["fp8"] == shares["bf16"] < 1


def test_a_peak_that_stands_in_for_another_is_told() -> None:
    ceilings = default_ceilings(find_gpu("A100 SXM4 80GB"))
    assert "compared with that of bf16" in (ceilings.stand_in("fp8") or "")
    assert ceilings.stand_in("bf16") is None
    assert ceilings.stand_in("int64") is None


def test_a_fast_product_proves_an_arithmetic_roof_of_its_type_only() -> None:
    default = default_ceilings(find_gpu("H100 SXM5"))
    found = proven(default, [Reached("gate_up", "compute", "bf16", 1e9, 800.0)])
    assert found.achievable_tflops("bf16") == 800
    assert found.achievable_tflops("fp8") == default.achievable_tflops("fp8")
