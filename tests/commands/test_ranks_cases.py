"""The handed cases of several ranks, whose values hold by construction of the files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from tests.support.places import CASES, ROOT, TRACES
from traceanalyzer.cli.main import cli

SCHEMA = json.loads((ROOT / "docs" / "schemas" / "ranks.json").read_text(encoding="utf-8"))


def ranks(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(cli, ["ranks", *arguments, "--json", "--no-cache"])
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    jsonschema.validate(document, SCHEMA)
    return document


def test_an_early_rank_waits_and_the_late_one_is_named_with_its_kernel() -> None:
    found = ranks(str(CASES / "303_allreduce_wait"))
    assert found["layout"] == {"tp": 2, "pp": 1, "dp": 1, "ep": 1}
    (reduce,) = found["collectives"]
    assert (reduce["kind"], reduce["calls"], reduce["transfer_us"]) == ("all_reduce", 4, 32.0)
    assert reduce["wait_us"] == {"0": 120.0, "1": 30.0}
    assert reduce["late_rank"] == {"0": 1, "1": 3}
    assert [(c["late_rank"], c["role"], c["calls"], c["extra_us"]) for c in found["causes"]] == [
        (1, "o_proj", 3, 120.0),
        (0, "o_proj", 1, 30.0),
    ]
    compute = {row["rank"]: (row["compute_us"], row["exposed_comm_us"]) for row in found["per_rank"]}
    assert compute == {0: (506.0, 152.0), 1: (596.0, 62.0)}
    (told,) = (finding for finding in found["findings"] if finding["code"] == "communication")
    assert "rank 1" in told["message"]
    assert "o_proj" in told["message"]
    assert told["worth_us"] == pytest.approx(75.0)


def test_pipeline_stages_are_no_replicas_and_receiving_is_waiting() -> None:
    found = ranks(str(CASES / "305_pp2"))
    assert found["layout"]["pp"] == 2
    assert found["pipeline"]["layers_per_stage"] == [3, 2]
    assert found["pipeline"]["layers_total"] == 5
    assert [(row["rank"], row["stage"], row["layers"]) for row in found["per_rank"]] == [(0, 0, 3), (1, 1, 2)]
    (transfer,) = found["collectives"]
    assert (transfer["kind"], transfer["calls"], transfer["transfer_us"]) == ("send_recv", 2, 12.0)
    assert transfer["wait_us"] == {"0": 0.0, "1": 348.0}
    assert found["pipeline"]["bubble_share"] == pytest.approx(1 - (348.1 + 363.0) / (2 * 739.6))
    assert found["pipeline"]["stages"][1]["wait_us"] == pytest.approx(174.0)
    assert not found["warnings"]


def test_a_gap_in_the_ranks_is_said_before_any_verdict() -> None:
    found = ranks(str(CASES / "300_rank_gap"))
    assert (found["ranks"], found["missing"], found["layout"]["tp"]) == ([0, 1, 3], [2], 4)
    assert found["findings"][0]["code"] == "missing_ranks"
    assert [row["tp"] for row in found["table"]] == [0, 1, 3]
    assert found["collectives"][0]["late_rank"] == {}


def test_ranks_of_an_archive_are_compared() -> None:
    found = ranks(str(CASES / "012_ranks.tar.gz"))
    assert found["ranks"] == [0, 1]
    assert found["collectives"] == []
    assert found["layout"] == {"tp": None, "pp": None, "dp": None, "ep": None}


def test_one_rank_has_nothing_to_compare_with() -> None:
    found = ranks(str(CASES / "218_dp_dummy_step.json.gz"))
    assert found["dummy_steps"][0]["dummy_steps"] == 1
    assert any(finding["code"] == "single_rank" for finding in found["findings"])


def test_real_ranks_on_cpus_wait_for_each_other_in_gloo() -> None:
    found = ranks(str(TRACES / "llama_24_vllm_compiled_tp2_gloo"))
    assert found["layout"]["tp"] == 2
    assert found["layout_source"] == "worker names"
    by_kind = {row["kind"]: row for row in found["collectives"]}
    assert {kind: row["calls"] for kind, row in by_kind.items()} == {"all_reduce": 147, "all_gather": 3}
    assert sum(by_kind["all_reduce"]["late_rank"].values()) <= 147
    assert found["clocks"]["residual_us"] < 100
    assert {row["layers"] for row in found["per_rank"]} == {24}
    assert found["unpaired"] == []


def test_a_second_opinion_is_part_of_the_document_and_of_the_table() -> None:
    path = str(CASES / "305_pp2")
    assert {row["rank"] for row in ranks(path, "--hta")["hta"]["temporal"]} == {0, 1}
    assert ranks(path)["hta"] is None
    table = CliRunner().invoke(cli, ["ranks", path, "--hta", "--no-cache"])
    assert "HolisticTraceAnalysis" in table.stdout


def test_table_and_csv_are_printed() -> None:
    path = str(CASES / "303_allreduce_wait")
    table = CliRunner().invoke(cli, ["ranks", path, "--no-cache"])
    assert table.exit_code == 0
    assert "o_proj" in table.stdout
    rows = CliRunner().invoke(cli, ["ranks", path, "--csv", "--no-cache"]).stdout.splitlines()
    assert rows[0].startswith("rank,dp,pp,tp,stage,layers")
    assert len(rows) == 3


def test_traces_without_ranks_are_refused_in_one_line(tmp_path: Path) -> None:
    for name in "ab":
        document = {
            "traceEvents": [{"ph": "X", "cat": "kernel", "name": name, "ts": 1, "dur": 1, "args": {"device": 0}}]
        }
        (tmp_path / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    result = CliRunner().invoke(cli, ["ranks", str(tmp_path), "--no-cache"])
    assert result.exit_code == 1
    assert "rank" in result.stderr
