"""The op list of a real step against a reference roofline of it (gpt-oss-20b on MI300X, 32 sequences)."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from traceanalyzer.hardware import find_gpu
from traceanalyzer.model import (
    FORMATS,
    Execution,
    Op,
    Step,
    Workload,
    counted_ops,
    decode_step,
    from_lengths,
    from_marker,
    from_sums,
    named,
    ops,
    rope_table_cast,
    total,
    with_formats,
)

DECODE = "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)"
PADDED = Execution(moe_input_width=3072, moe_hidden_width=2944, moe_ffn_width=2944, moe_block_m=16)
ABOVE_SHARE = 1.0  # percent of the step
TABLE_DIGITS = {"GFLOP": 0.005, "MB": 0.05, "roof_us": 0.05}

OPS_OF_GROUP = {
    "moe_down": lambda op: op.role == "moe_down",
    "moe_up": lambda op: op.role == "moe_gate_up",
    "moe_routing": lambda op: op.role == "moe_routing",
    "moe_combine": lambda op: op.role == "moe_combine",
    "moe_pad": lambda op: op.name == "moe_pad",
    "attn_full": lambda op: op.name == "attention" and op.kind == "full",
    "attn_sliding": lambda op: op.name == "attention" and op.kind == "sliding",
    "qkv_proj": lambda op: op.role == "qkv_proj",
    "o_proj": lambda op: op.role == "o_proj",
    "norm": lambda op: op.role == "norm",
    "lm_head": lambda op: op.role == "lm_head",
    "router": lambda op: op.role == "router",
    "rope": lambda op: op.role == "rope",
    "kv_write": lambda op: op.role == "kv_write",
}


def reference(shared: Path, trace: str) -> list[dict[str, str]]:
    text = (shared / "data" / "trace_roofline_gptoss20b_mi300x.csv").read_text()
    return [row for row in csv.DictReader(text.splitlines()) if row["trace"] == trace]


def floor_us(found: list[Op]) -> float:
    gpu = find_gpu("MI300X")
    floors = [op.floor_ns(gpu.peak_tflops[op.dtype], gpu.bandwidth_gbps) for op in found]
    return sum(floor for floor in floors if floor is not None) / 1e3


def close(ours: float, row: dict[str, str], column: str) -> bool:
    """Within 5 %, or within what the table's rounding leaves open."""
    theirs = float(row[column])
    return abs(ours - theirs) <= max(0.05 * theirs, TABLE_DIGITS[column])


def test_decode_rows_above_one_percent_agree_in_flops_bytes_and_floor(shared: Path) -> None:
    workload = from_marker(DECODE)
    assert workload is not None
    step = ops(named("gpt-oss-20b"), workload, execution=PADDED)
    compared = set()
    for row in reference(shared, "vllm_decode_full"):
        if float(row["pct_step"]) < ABOVE_SHARE or row["group"].startswith("cossin"):
            continue
        found = [op for op in step if OPS_OF_GROUP[row["group"]](op)]
        summed = total(found)
        assert summed.flops is not None
        assert summed.bytes is not None
        assert close(summed.flops / 1e9, row, "GFLOP"), row["group"]
        assert close(summed.bytes / 1e6, row, "MB"), row["group"]
        assert close(floor_us(found), row, "roof_us"), row["group"]
        compared.add(row["group"])
    assert compared == set(OPS_OF_GROUP)


def test_the_repeated_cast_of_the_rotary_table_agrees(shared: Path) -> None:
    row = next(row for row in reference(shared, "vllm_decode_full") if row["group"].startswith("cossin"))
    cast = rope_table_cast(named("gpt-oss-20b"))
    assert cast is not None
    assert close(float(row["count"]) * (cast.bytes or 0) / 1e6, row, "MB")
    assert close(float(row["count"]) * floor_us([cast]), row, "roof_us")


def test_the_floor_of_the_step_agrees(shared: Path) -> None:
    rows = reference(shared, "vllm_decode_full")
    expected = sum(float(row["roof_us"]) for row in rows if not row["group"].startswith("cossin"))
    workload = from_marker(DECODE)
    assert workload is not None
    step = [op for op in ops(named("gpt-oss-20b"), workload, execution=PADDED) if op.role != "sampler"]
    assert floor_us(step) == pytest.approx(expected, rel=0.02)


def test_prefill_products_agree_and_are_bound_by_compute(shared: Path) -> None:
    # The reference's step: 8,192 tokens, of which 46 sequences draw a next one. Its context is not in the table.
    step = ops(named("gpt-oss-20b"), from_sums(context=(46, 8192, None)), execution=PADDED)
    for row in reference(shared, "vllm_prefilldecode_piecewise"):
        if row["group"] not in OPS_OF_GROUP or row["group"].startswith("attn"):
            continue
        found = [op for op in step if OPS_OF_GROUP[row["group"]](op)]
        summed = total(found)
        assert close((summed.bytes or 0) / 1e6, row, "MB"), row["group"]
        assert close(floor_us(found), row, "roof_us"), row["group"]
        if row["bound"] == "compute":
            assert close((summed.flops or 0) / 1e9, row, "GFLOP"), row["group"]


def compute_share(workload: Workload, kv: str) -> float:
    """Share of a step's floor, Llama-2-70B in fp8 on MI300X, that arithmetic binds; quantising and sampling fused."""
    gpu = find_gpu("MI300X")
    model = with_formats(named("Llama-2-70B"), weights=FORMATS["fp8"], kv=FORMATS[kv])
    bound, summed = 0.0, 0.0
    for op, count in counted_ops(Step(model, workload)):
        if op.role in ("quantize", "sampler"):
            continue
        peak = gpu.peak_tflops[op.dtype]
        compute, memory = op.compute_ns(peak), op.memory_ns(gpu.bandwidth_gbps)
        assert compute is not None
        assert memory is not None
        summed += max(compute, memory) * count
        bound += compute * count if compute > memory else 0
    return bound / summed


@pytest.mark.parametrize(
    ("context", "kv", "share"), [(441, "fp8", 0.73), (512, "fp8", 0.71), (1024, "fp8", 0.59), (441, "bf16", 0.61)]
)
def test_the_compute_bound_share_of_decode_agrees_with_an_independent_model(
    context: int, kv: str, share: float
) -> None:
    assert compute_share(decode_step(768, 768 * context), kv) == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("tokens", [294, 1024, 2048])
def test_the_compute_bound_share_of_prefill_agrees_with_an_independent_model(tokens: int) -> None:
    assert 0.885 <= compute_share(from_lengths([(tokens, 0)]), "fp8") <= 0.915
