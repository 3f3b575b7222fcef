"""The decode step of gpt-oss-20b on MI300X against its reference roofline, with and without shapes."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from traceanalyzer.model import named
from traceanalyzer.roofline import Request, Roofline, Row, roofline
from traceanalyzer.roofline.workloads import Stated
from traceanalyzer.trace import Trace, open_traces
from traceanalyzer.wording import duration_us

TRACE = "gptoss20b_vllm_decode_mi300x"
ABOVE_SHARE = 1.0  # percent of the step
PARTS = {
    "moe_up": ("moe_gate_up", None, ""),
    "attn_full": ("attention", "full", ""),
    "attn_sliding": ("attention", "sliding", ""),
    "cossin_cast(redundant)": ("copy", None, "rope_table_cast"),
    "moe_pad": ("copy", None, "moe_pad"),
}
"""Group of the reference -> role, kind and part, where the group is not simply a role."""


def opened(shared: Path, name: str) -> Trace:
    return open_traces(shared / "traces" / "gpu" / f"{name}.json.gz", cache=False).traces[0]


@pytest.fixture(scope="module")
def inferred(shared: Path) -> Roofline:
    return roofline(opened(shared, TRACE))


@pytest.fixture(scope="module")
def with_shapes(shared: Path) -> Roofline:
    return roofline(opened(shared, TRACE), Request(captures=(opened(shared, f"{TRACE}.capture"),)))


def row_of(found: Roofline, group: str) -> Row:
    role, kind, part = PARTS.get(group, (group, None, ""))
    rows = [row for row in found.rows if (row.role, row.kind, row.part) == (role, kind, part)]
    assert len(rows) == 1, group
    return rows[0]


@pytest.mark.parametrize("how", ["inferred", "with_shapes"])
def test_rows_above_one_percent_agree_with_the_reference(
    how: str, shared: Path, request: pytest.FixtureRequest
) -> None:
    found: Roofline = request.getfixturevalue(how)
    text = (shared / "data" / "trace_roofline_gptoss20b_mi300x.csv").read_text()
    wanted = [row for row in csv.DictReader(text.splitlines()) if row["trace"] == "vllm_decode_full"]
    compared = 0
    for reference in wanted:
        if float(reference["pct_step"]) < ABOVE_SHARE:
            continue
        row = row_of(found, reference["group"])
        assert row.count == int(reference["count"])
        assert row.measured_ns / 1e3 == pytest.approx(float(reference["meas_us"]), abs=0.1)
        assert row.bound == reference["bound"]
        assert row.bytes is not None
        assert row.floor_ns is not None
        assert row.bytes / 1e6 == pytest.approx(float(reference["MB"]), rel=0.05, abs=0.06)
        assert row.floor_ns / 1e3 == pytest.approx(float(reference["roof_us"]), rel=0.05, abs=0.06)
        if float(reference["GFLOP"]) > 0.1:
            assert row.flops is not None
            assert row.flops / 1e9 == pytest.approx(float(reference["GFLOP"]), rel=0.05)
        if row.bound == "memory":
            assert row.roof_share is not None
            assert row.roof_share * 100 == pytest.approx(float(reference["pct_roof"]), rel=0.05)
        compared += 1
    assert compared == 15


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("how", ["inferred", "with_shapes"])
def test_the_step_comes_to_the_reference_floor(how: str, request: pytest.FixtureRequest) -> None:
    found: Roofline = request.getfixturevalue(how)
    assert found.floor_ns is not None
    assert found.floor_ns / 1e6 == pytest.approx(2.66, rel=0.01)
    assert found.measured_ns == sum(row.measured_ns for row in found.rows) == 10_674_517
    assert found.explained_share > 0.95
    assert all(row.plausible for row in found.rows)


def test_model_and_gpu_are_recognised_and_said_to_be_inferred(inferred: Roofline) -> None:
    assert inferred.model is not None
    assert inferred.model.name == "openai/gpt-oss-20b"
    assert inferred.model_source == "inferred"
    assert "inferred from 24 layers" in inferred.basis[0]
    assert (inferred.device.name, inferred.device.source) == ("MI300X", "fingerprint")


def test_the_achievable_bandwidth_is_proven_by_lm_head(inferred: Roofline) -> None:
    assert inferred.ceilings is not None
    assert "reached by lm_head here" in inferred.ceilings.gbps_basis
    assert inferred.ceilings.memory_share == pytest.approx(0.799, abs=0.002)


def test_the_launch_latency_is_measured(inferred: Roofline) -> None:
    assert inferred.latency.measured
    assert inferred.latency.ns == pytest.approx(4_400, rel=0.05)


def test_findings_are_sorted_by_worth_and_the_last_one_says_what_to_attack(inferred: Roofline) -> None:
    worth = [finding.worth_us for finding in inferred.findings]
    known = [value for value in worth if value is not None]
    assert worth == sorted(known, reverse=True) + [None] * (len(worth) - len(known))
    assert inferred.findings[-1].code == "target"
    assert inferred.findings[-1].message.startswith("Attack moe_down first: it moves its bytes at 16.9 % of peak")
    repeated = next(finding for finding in inferred.findings if finding.code == "repeated_work")
    assert repeated.worth_us == pytest.approx(292.376)


def test_what_a_finding_is_worth_is_told_in_the_unit_and_rounding_that_reports_have(inferred: Roofline) -> None:
    told = [finding for finding in inferred.findings if finding.worth_us is not None]
    assert len(told) > 3
    assert all(duration_us(finding.worth_us) in finding.message for finding in told)


def test_the_capture_names_every_kernel_of_the_graph(with_shapes: Roofline) -> None:
    assert "capture: 421 of 421 graph-launched kernels matched by position" in with_shapes.basis
    assert row_of(with_shapes, "qkv_proj").source == "shapes"
    assert row_of(with_shapes, "moe_down").source == "model"
    assert not [finding for finding in with_shapes.findings if finding.code == "shape_mismatch"]


def test_a_wrong_layer_count_is_not_joined(shared: Path) -> None:
    found = roofline(opened(shared, TRACE), Request(model=named("gpt-oss-120b")))
    assert any(finding.code == "model_mismatch" for finding in found.findings)
    assert row_of(found, "moe_down").bound == "unknown"
    assert found.findings[-1].message.startswith("No recommendation: the roofline is unknown for")


def test_a_wrong_workload_shows_as_implausible(shared: Path) -> None:
    found = roofline(opened(shared, TRACE), Request(model=named("gpt-oss-20b"), stated=Stated(kv_tokens=10_000_000)))
    attention = row_of(found, "attn_full")
    assert not attention.plausible
    assert attention.headroom_ns is None
    assert any(finding.code == "implausible" and "attention full" in finding.message for finding in found.findings)


def test_a_dense_model_that_several_fit_is_left_unknown_with_what_to_pass(shared: Path) -> None:
    found = roofline(opened(shared, "qwen3_8b_sglang_decode_mi300x"))
    assert found.model is None
    assert "pass --model NAME" in found.basis[0]
    assert "Qwen/Qwen3-8B" in found.basis[0]
    assert "--model" in found.findings[-1].message


def test_a_stated_dense_model_is_explained(shared: Path) -> None:
    found = roofline(opened(shared, "qwen3_8b_sglang_decode_mi300x"), Request(model=named("Qwen3-8B")))
    assert found.explained_share > 0.95
    assert all(row.plausible for row in found.rows)
    assert row_of(found, "gate_up").bound == "memory"
    # 36 layers x 4,096 x 24,576 bf16 weights are 7.25 GB; activations come on top.
    assert (row_of(found, "gate_up").bytes or 0) / 1e9 == pytest.approx(7.31, rel=0.01)


def test_an_eager_prefill_is_explained_by_its_shapes_alone(shared: Path) -> None:
    found = roofline(opened(shared, "qwen1.5_0.5b_hf_h100"))
    assert found.explained_share > 0.95
    assert all(row.plausible for row in found.rows)
    gate_up = row_of(found, "gate_up")
    assert gate_up.source == "shapes"
    assert gate_up.flops == 48 * 2 * 8944 * 1024 * 2816
    assert gate_up.bound == "compute"
    attention = row_of(found, "attention")
    assert attention.flops == 24 * 16 * 16 * (559 * 560 / 2) * 4 * 64
