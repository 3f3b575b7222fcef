"""Documents of every sample and of real traces keep their schemas; test_schemas tries each command once."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from tests.support.places import CASES
from tests.support.printed_documents import printed, schema
from traceanalyzer.cli.main import cli

COMMANDS = {"ingest": "summary", "hotspots": "hotspots", "blocks": "blocks", "roofline": "roofline", "idle": "idle"}


@pytest.mark.parametrize("command", COMMANDS)
def test_documents_of_the_samples_keep_the_contract(samples: Path, command: str) -> None:
    traces = sorted(samples.glob("*.json.gz"))
    assert len(traces) >= 2
    for path in traces:
        jsonschema.validate(printed(command, str(path)), schema(COMMANDS[command]))


@pytest.mark.parametrize("command", COMMANDS)
def test_documents_of_real_traces_keep_the_contract(shared: Path, command: str) -> None:
    for path in (shared / "traces").glob("*/*_decode_*.json.gz"):
        if "capture" not in path.name:
            jsonschema.validate(printed(command, str(path)), schema(COMMANDS[command]))


@pytest.mark.parametrize("name", ["000_baseline.json", "001_truncated_midevent.json", "003_empty.json"])
def test_doctor_keeps_the_contract(name: str) -> None:
    document = json.loads(CliRunner().invoke(cli, ["doctor", str(CASES / name), "--json"]).stdout)
    jsonschema.validate(document, schema("doctor"))
    assert document["usable"] == (name != "003_empty.json")
    assert bool(document["problems"]) == (name != "000_baseline.json")


def test_names_stand_in_the_order_given() -> None:
    names = ["fused_moe_kernel", "_matmul_ogs_NNT_bf16xbf16xmxfp4_32x256x128x1_swiglu", "no such kernel"]
    assert [entry["name"] for entry in printed("name", *names)["names"]] == names


@pytest.mark.parametrize("damage", [{"names": None}, {"surplus": 1}])
def test_a_document_that_lacks_a_key_or_has_one_too_many_is_refused(damage: dict[str, object]) -> None:
    document = {**printed("name", "fused_moe_kernel"), **damage}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({key: value for key, value in document.items() if value is not None}, schema("names"))
