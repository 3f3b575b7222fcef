"""Kernels with Input Dims: exact figures a kernel, one of them impossible."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.places import CASES
from traceanalyzer.cli.main import cli

CASE: dict[str, Any] = json.loads((CASES / "expected.json").read_text(encoding="utf-8"))["cases"]["403_roofline_shapes"]
POINTS: list[dict[str, Any]] = CASE["values"]["roofline"]
BOUNDS = {"memory-bound": "memory", "compute-bound": "compute", "implausible": "memory"}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    result = CliRunner().invoke(cli, ["roofline", str(CASES / CASE["path"]), "--json", "--no-cache"])
    assert result.exit_code == 0, result.output
    parsed: dict[str, Any] = json.loads(result.stdout)
    return parsed


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point["kernel"])
def test_every_kernel_has_its_exact_figures(document: dict[str, Any], point: dict[str, Any]) -> None:
    row = next(row for row in document["rows"] if row["kernels"] == [point["kernel"]])
    assert row["flops"] == point["flops"]
    assert row["bytes"] == point["bytes_min"]
    assert row["intensity"] == pytest.approx(point["intensity_flop_per_byte"], abs=0.001)
    assert row["tflops"] == pytest.approx(point["achieved_TFLOPs"], abs=0.001)
    assert row["gbps"] / 1e3 == pytest.approx(point["achieved_TBps"], abs=0.001)
    verdict = point["verdict"].split(":")[0]
    assert row["bound"] == BOUNDS[verdict]
    assert row["plausible"] == (verdict != "implausible")


def test_the_impossible_kernel_is_flagged_with_causes(document: dict[str, Any]) -> None:
    row = next(row for row in document["rows"] if not row["plausible"])
    assert row["roof_share"] > 1
    assert row["headroom_us"] is None
    finding = next(finding for finding in document["findings"] if finding["code"] == "implausible")
    assert "gemm_impossible" in finding["message"]
    assert "cache" in finding["message"]
    assert document["floor_us"] <= document["measured_us"]


def test_no_shapes_no_verdict() -> None:
    result = CliRunner().invoke(cli, ["roofline", str(CASES / "000_baseline.json"), "--json", "--no-cache"])
    parsed = json.loads(result.stdout)
    assert {row["bound"] for row in parsed["rows"]} == {"unknown"}
    assert all(row["basis"] for row in parsed["rows"])
    assert parsed["explained_share"] == 0
    assert parsed["floor_us"] is None
    assert "--model" in parsed["findings"][-1]["message"]
