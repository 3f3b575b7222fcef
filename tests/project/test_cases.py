"""Files that real users had trouble with, against values that hold by construction of the files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.places import CASES
from traceanalyzer.cli.main import cli

EXPECTED: dict[str, Any] = json.loads((CASES / "expected.json").read_text(encoding="utf-8"))["cases"]
TRACE_CASES = [name for name, case in EXPECTED.items() if name[0] in "0123" and isinstance(case["path"], str)]


def values_of(name: str) -> dict[str, Any]:
    values: dict[str, Any] = EXPECTED[name].get("values", {})
    return values


PLAIN_CASES = [name for name in TRACE_CASES if name[0] in "012" and "kernel_events" in values_of(name)]

# A deferred completion stamp is clipped; its expected.json gives the sums after that under names of their own.
CLIPPED = "117_overflow_dur"


@pytest.fixture(scope="module")
def run() -> Any:
    results: dict[str, Result] = {}

    def summarise(name: str) -> Result:
        if name not in results:
            path = CASES / EXPECTED[name]["path"]
            results[name] = CliRunner().invoke(cli, ["ingest", str(path), "--json", "--no-cache"])
        return results[name]

    return summarise


def document(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    parsed: dict[str, Any] = json.loads(result.stdout)
    return parsed


@pytest.mark.parametrize("name", TRACE_CASES)
def test_outcome_is_one_that_users_accept(run: Any, name: str) -> None:
    case, result = EXPECTED[name], run(name)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    if result.exit_code == 0:
        status = document(result)["status"]
        accepted = {"ok": "ok", "ok_with_warning": "warning"}
        assert status in {accepted[o] for o in case["outcome"] if o in accepted} or "ok" in case["outcome"]
        return
    assert "error" in case["outcome"]
    assert result.exit_code == 1
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1
    assert Path(case["path"]).name in lines[0]


@pytest.mark.parametrize("name", [n for n in TRACE_CASES if EXPECTED[n].get("messages")])
def test_message_says_what_is_wrong(run: Any, name: str) -> None:
    result = run(name)
    if result.exit_code == 0 and json.loads(result.stdout)["status"] == "ok":
        assert "ok" in EXPECTED[name]["outcome"]
        return
    for message in EXPECTED[name]["messages"]:
        assert any(hint.lower() in result.stderr.lower() for hint in message["mention_any"]), result.stderr


def assert_timeline(timeline: dict[str, Any], values: dict[str, Any]) -> None:
    assert timeline["kernels"] == values["kernel_events"]
    assert timeline["kernel_sum_us"] == pytest.approx(values["kernel_sum_us"], abs=0.01)
    busy = values["gpu_busy_us"].get(str(timeline["device"]))
    assert timeline["busy_us"] == pytest.approx(busy, abs=0.01)
    top = timeline["top_kernels"][0]
    expected = values["top_kernel"]
    assert (top["name"], top["count"]) == (expected["name"], expected["count"])
    assert top["total_us"] == pytest.approx(expected["total_us"], abs=0.01)
    steps = timeline["steps"]
    for want, step in zip(values.get("per_step", []), steps, strict=False):
        assert step["kernels"] == want["kernels"]
        assert step["kernel_sum_us"] == pytest.approx(want["kernel_sum_us"], abs=0.01)
    if "blocks_per_step" in values:
        wanted = values["blocks_per_step"]
        assert [step["blocks"] for step in steps][: len(wanted)] == wanted


@pytest.mark.parametrize("name", [n for n in PLAIN_CASES if n not in {CLIPPED, "113_two_gpus"}])
def test_counts_sums_steps_and_blocks_are_right(run: Any, name: str) -> None:
    values = values_of(name)
    if values["kernel_events"] == 0:
        pytest.skip("nothing to count in this case")
    (timeline,) = document(run(name))["timelines"]
    assert_timeline(timeline, values)


@pytest.mark.parametrize("name", PLAIN_CASES)
def test_phases_and_partial_steps_are_counted(run: Any, name: str) -> None:
    values = values_of(name)
    if run(name).exit_code or "steps" not in values:
        pytest.skip("refused, or the case names no steps")
    steps = document(run(name))["timelines"][0]["steps"]
    complete = [step for step in steps if step["complete"]]
    for phase in ("decode", "prefill", "mixed", "dummy"):
        if f"{phase}_steps" in values:
            assert sum(step["phase"] == phase for step in complete) == values[f"{phase}_steps"]
    partial = values.get("partial_steps", 0)
    assert len(steps) - len(complete) == partial
    assert len(complete) == values.get("complete_steps", values["steps"])


def test_a_deferred_completion_stamp_is_clipped_and_told(run: Any) -> None:
    values = values_of(CLIPPED)
    (timeline,) = document(run(CLIPPED))["timelines"]
    assert timeline["kernels"] == values["kernel_events"]
    assert timeline["kernel_sum_us"] <= values["clipped_sum_us_max"]
    top, expected = timeline["top_kernels"][0], values["top_kernel_after_clip"]
    assert (top["name"], top["count"], top["total_us"]) == (expected["name"], expected["count"], expected["total_us"])


def test_two_gpus_of_one_file_are_two_timelines(run: Any) -> None:
    values = values_of("113_two_gpus")["devices"]
    timelines = document(run("113_two_gpus"))["timelines"]
    assert [str(t["device"]) for t in timelines] == list(values)
    for timeline in timelines:
        assert_timeline(timeline, values[str(timeline["device"])])


def test_graph_launches_are_counted_with_their_kernels(run: Any) -> None:
    values = values_of("112_graph_shared_correlation")
    (timeline,) = document(run("112_graph_shared_correlation"))["timelines"]
    assert timeline["graph_launches"] == values["graph_launches"]


def test_exposed_communication_is_what_no_compute_covers(run: Any) -> None:
    values = values_of("115_overlapping_streams")
    (timeline,) = document(run("115_overlapping_streams"))["timelines"]
    assert timeline["comm_sum_us"] == pytest.approx(values["comm_sum_us"])
    assert timeline["comm_exposed_us"] == pytest.approx(values["comm_exposed_us"])


@pytest.mark.parametrize("name", [n for n in TRACE_CASES if "per_rank" in values_of(n)])
def test_every_rank_of_a_folder_or_archive_is_read(run: Any, name: str) -> None:
    values = values_of(name)
    found = document(run(name))
    assert [t["rank"] for t in found["timelines"]] == values["ranks"]
    assert found["missing_ranks"] == values.get("missing_ranks", [])
    for timeline in found["timelines"]:
        want = values["per_rank"][str(timeline["rank"])]
        want = {**want, "gpu_busy_us": {str(timeline["device"]): next(iter(want["gpu_busy_us"].values()))}}
        assert_timeline(timeline, want)


def test_names_come_back_byte_for_byte(run: Any) -> None:
    result = CliRunner().invoke(cli, ["hotspots", str(CASES / "017_nasty_names.json"), "--json", "--no-cache"])
    names = {row["name"] for row in json.loads(result.stdout)["rows"]}
    assert names == set(EXPECTED["017_nasty_names"]["names"])


@pytest.mark.parametrize("name", [n for n in EXPECTED if "block_types_in_order" in values_of(n)])
def test_block_kinds_are_named(name: str) -> None:
    result = CliRunner().invoke(cli, ["blocks", str(CASES / EXPECTED[name]["path"]), "--json", "--no-cache"])
    wanted = values_of(name)["block_types_in_order"]
    for step in json.loads(result.stdout)["timelines"][0]["steps"]:
        kinds = [block["kind"] for block in step["blocks"]]
        assert all(want in (kind or "") for want, kind in zip(wanted, kinds, strict=True)), kinds
        variants = [block["variant"] for block in step["blocks"]]
        assert len(set(variants)) == len(set(wanted))


def test_a_slower_kernel_is_found_and_a_renumbered_one_pairs_up() -> None:
    before, after = (str(CASES / path) for path in EXPECTED["600_ab_pair"]["path"])
    result = CliRunner().invoke(cli, ["diff", before, after, "--json", "--no-cache"])
    found = json.loads(result.stdout)
    values = values_of("600_ab_pair")
    assert found["after_step_us"] - found["before_step_us"] == pytest.approx(values["step_kernel_sum_delta_us"])
    assert sum(row["delta_us"] for row in found["rows"]) + found["unattributed_us"] == pytest.approx(
        found["after_step_us"] - found["before_step_us"]
    )
    assert all(row["name_before"] and row["name_after"] for row in found["rows"])
    moved = {row["name_after"]: row["delta_us"] for row in found["rows"] if abs(row["delta_us"]) > 1e-6}
    assert moved == {"fused_moe_kernel": pytest.approx(values["delta_by_kernel_per_step_us"]["fused_moe_kernel"])}
