"""Every JSON document keeps its contract, on the project's samples and on real traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from traceanalyzer.cli.main import cli

SCHEMAS = Path(__file__).resolve().parent.parent.parent / "docs" / "schemas"
COMMANDS = {"ingest": "summary", "hotspots": "hotspots", "blocks": "blocks", "roofline": "roofline", "idle": "idle"}
CASES = Path(__file__).resolve().parent.parent / "data" / "cases"
TWO_INPUTS = {
    "diff": ("600_ab_before.json.gz", "600_ab_after.json.gz"),
    "serving compare": ("500_bench_before.json", "500_bench_after.json"),
}


def run(*arguments: str) -> Any:
    result = CliRunner().invoke(cli, [*arguments, "--json", "--no-cache"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def validate(document: Any, schema: str) -> None:
    jsonschema.validate(document, json.loads((SCHEMAS / f"{schema}.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("command", COMMANDS)
def test_documents_of_the_samples_keep_the_contract(samples: Path, command: str) -> None:
    traces = sorted(samples.glob("*.json.gz"))
    assert len(traces) >= 2
    for path in traces:
        validate(run(command, str(path)), COMMANDS[command])


@pytest.mark.parametrize("command", COMMANDS)
def test_documents_of_real_traces_keep_the_contract(shared: Path, command: str) -> None:
    for path in (shared / "traces").glob("*/*_decode_*.json.gz"):
        if "capture" not in path.name:
            validate(run(command, str(path)), COMMANDS[command])


@pytest.mark.parametrize("command", TWO_INPUTS)
def test_comparisons_keep_the_contract(command: str) -> None:
    first, second = (str(CASES / name) for name in TWO_INPUTS[command])
    result = CliRunner().invoke(cli, [*command.split(), first, second, "--json"])
    assert result.exit_code == 0, result.output
    validate(json.loads(result.stdout), command.partition(" ")[0])


@pytest.mark.parametrize("name", ["000_baseline.json", "001_truncated_midevent.json", "003_empty.json"])
def test_doctor_keeps_the_contract(name: str) -> None:
    result = CliRunner().invoke(cli, ["doctor", str(CASES / name), "--json"])
    document = json.loads(result.stdout)
    validate(document, "doctor")
    assert document["usable"] == (name != "003_empty.json")
    assert bool(document["problems"]) == (name != "000_baseline.json")


def test_every_schema_is_used_by_a_test() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in CASES.parent.parent.rglob("test_*.py"))
    for schema in SCHEMAS.glob("*.json"):
        assert schema.stem in tests, schema.name


def test_names_keep_the_contract() -> None:
    names = ["_matmul_ogs_NNT_bf16xbf16xmxfp4_32x256x128x1_swiglu", "fused_moe_kernel", "no such kernel"]
    result = CliRunner().invoke(cli, ["name", *names, "--json"])
    document = json.loads(result.stdout)
    validate(document, "names")
    assert [entry["name"] for entry in document["names"]] == names


def test_a_document_that_lacks_a_key_is_refused() -> None:
    with pytest.raises(jsonschema.ValidationError):
        validate({"schema": "traceanalyzer/names/1"}, "names")
