"""Every document has a strict schema that describes it field by field, and real output keeps it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from docs.generate.documents import resolved
from synthetic import generate, write
from synthetic.models import gptoss_20b_decode, llama_decode
from tests.support.fake_server import Behaviour, FakeServer
from tests.support.places import ROOT
from tests.support.printed_documents import RUNS, SAMPLE, members, printed, schema, with_json
from traceanalyzer.show.schema import documents

NAMES = sorted(documents())
TITLE = re.compile(r"traceanalyzer (?P<words>[a-z -]+?)(?P<all> \.\.\.)?(?: --[a-z]+(?: \.\.\.)?)*$")
UNITS = {"_us": "µs", "_ms": "ms", "_percent": "%", "_gbps": "GB/s", "tflops": "10^12 operations/s", "bytes": "bytes"}
CONTRACT = {
    "summary": "status sources warnings engine world_size missing_ranks timelines",
    "summary sources[]": "path bytes format compression events recovered_events skipped",
    "summary timelines[]": "rank device device_name device_name_source parallel kernels kernel_sum_us busy_us span_us "
    "memcpy_us memset_us comm_sum_us comm_exposed_us graph_launches kernels_without_step top_kernels step_source steps",
    "summary timelines[].parallel": "dp pp tp ep",
    "summary timelines[].kernels_without_step": "count sum_us",
    "summary timelines[].top_kernels[]": "name count total_us share",
    "summary timelines[].steps[]": "index label phase complete requests tokens kernels kernel_sum_us busy_us span_us "
    "idle_before_us blocks",
    "blocks": "timelines",
    "blocks timelines[]": "rank device steps",
    "blocks timelines[].steps[]": "index phase method confidence prologue epilogue period_blocks blocks",
    "blocks timelines[].steps[].prologue": "events kernels kernel_sum_us",
    "blocks timelines[].steps[].blocks[]": "index variant kind events kernels kernel_sum_us busy_us start_us "
    "first_kernel roles",
    "names names[]": "name scheme family kind block_m block_n block_k split_k stages num_warps cluster dtypes epilogue "
    "retunable knob ambiguous",
    "names names[].dtypes": "output activation weight",
    "hotspots": "total_us steps rows",
    "hotspots rows[]": "name role family count total_us share mean_us p50_us p99_us per_step_us tile bound roof_share "
    "headroom_us",
    "roofline": "gpu model measured_us floor_us explained_share rows findings",
    "roofline gpu": "name source peak_tflops bandwidth_gbps",
    "roofline model": "name source",
    "roofline rows[]": "role kind count measured_us flops bytes intensity tflops gbps bound floor_us roof_share "
    "headroom_us plausible basis",
    "diff": "before_step_us after_step_us rows unattributed_us",
    "diff rows[]": "role name_before name_after before_us after_us delta_us",
    "ranks": "ranks missing layout collectives per_rank experts pipeline findings",
    "ranks layout": "tp pp dp ep",
    "ranks collectives[]": "kind calls transfer_us wait_us late_rank",
    "ranks per_rank[]": "rank compute_us comm_us exposed_comm_us idle_us stage layers",
    "ranks experts": "per_rank_us max_over_mean",
    "ranks pipeline": "bubble_share",
    "tune-points points[]": "m concurrency config samples_ms median_ms",
    "tune-policy rules[]": "min_m max_m config",
    "tune-policy regret[]": "m chosen_ms best_ms regret",
    "tune-replay": "space evaluations median_regret p90_regret random_median_regret",
    "tune-plan": "target refused next",
    "tune-plan target": "kernel role m n k experts top_k dtypes tile num_warps measured_us floor_us worth_us_per_step "
    "worth_tpot_percent",
    "tune-plan refused[]": "kernel reason",
    "tune-screen": "target_arch candidates",
    "tune-screen candidates[]": "config rank fits registers spills shared_bytes work_ratio reason",
    "serving": "comparable differing_settings metrics warnings",
    "serving metrics[]": "metric before after change_percent direction verdict",
    "estimate": "model gpu ttft_ms tpot_ms tokens_per_s max_batch ops compute_bound_share assumptions",
    "doctor": "usable problems repaired",
    "doctor problems[]": "code message byte_offset line count effect",
}
"""Keys that other programs rely on, by document and place."""


def commands_of(title: str, commands: list[str]) -> list[str]:
    """The commands that a schema's title names."""
    found = TITLE.match(title)
    assert found is not None, title
    words = found["words"]
    return [c for c in commands if c == words or (found["all"] and c.startswith(f"{words} "))]


def test_every_command_that_prints_json_has_a_schema_and_every_schema_a_command() -> None:
    commands = list(with_json())
    assert len(commands) > 15
    named = {name: commands_of(schema(name)["title"], commands) for name in NAMES}
    assert not [name for name, found in named.items() if not found]
    assert set(commands) == {command for found in named.values() for command in found}


@pytest.mark.parametrize("name", NAMES)
def test_every_field_is_described_with_its_unit_and_when_it_is_null(name: str) -> None:
    lacking = []

    def visit(path: str, value: dict[str, Any]) -> None:
        anonymous = path.endswith("[]") or "#" in path.rpartition(".")[2] or path == name or path.endswith(".schema")
        told = value.get("description", "")
        if not told and not anonymous and "$ref" not in value:
            lacking.append(f"{path}: no description")
        nullable = "null" in value.get("type", ()) or None in value.get("enum", ()) or "anyOf" in value
        if not anonymous and nullable != (" Null: " in told):
            lacking.append(f"{path}: null")
        numeric = {"number", "integer"} & set(
            [value["type"]] if isinstance(value.get("type"), str) else value.get("type", ())
        )
        wanted = next((unit for ending, unit in UNITS.items() if path.endswith(ending)), None)
        if numeric and wanted and f" Unit: {wanted}." not in told:
            lacking.append(f"{path}: unit {wanted}")

    members(schema(name), name, visit)
    assert not lacking


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_valid_and_allow_no_key_that_they_do_not_describe(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))
    open_ = []

    def visit(path: str, value: dict[str, Any]) -> None:
        if "properties" in value and value.get("additionalProperties") is not False:
            open_.append(path)

    members(schema(name), name, visit)
    assert not open_


def place(name: str, path: str) -> dict[str, Any]:
    """The schema of a place in a document."""
    whole = schema(name)
    value: Any = whole
    for step in filter(None, path.split(".")):
        value = resolved(whole, value)["properties"][step.removesuffix("[]")]
        value = resolved(whole, value)["items"] if step.endswith("[]") else value
    return resolved(whole, value)


@pytest.mark.parametrize("where", CONTRACT)
def test_keys_that_other_programs_rely_on_are_required(where: str) -> None:
    name, _, path = where.partition(" ")
    assert set(CONTRACT[where].split()) <= set(place(name, path)["required"])


def test_every_schema_is_tried_on_real_output() -> None:
    assert {*RUNS, "capture"} == set(NAMES)


@pytest.mark.parametrize("name", RUNS)
def test_real_output_keeps_the_schema(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for module in ("measure.backends", "run.command", "verify.command"):
        monkeypatch.setattr(f"traceanalyzer.commands.tune.{module}.BACKENDS", {"builtin": "tests.support.fake_backend"})
    for arguments in RUNS[name]:
        given = [str(tmp_path / "out") if word == "TMP" else word for word in arguments]
        jsonschema.validate(printed(*given), schema(name))


@pytest.mark.parametrize("command", ["ingest", "blocks", "hotspots", "idle", "roofline", "tune plan"])
def test_documents_of_generated_traces_keep_the_schema(command: str, tmp_path: Path) -> None:
    name = {"ingest": "summary", "tune plan": "tune-plan"}.get(command, command)
    for number, spec in enumerate((gptoss_20b_decode(steps=2), llama_decode(layers=8, steps=2))):
        path = write(generate(spec, 0), tmp_path / f"{number}.json")
        jsonschema.validate(printed(*command.split(), str(path)), schema(name))


def test_a_capture_keeps_the_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traceanalyzer.commands.capture.profile_files.POLL", 0.01)
    monkeypatch.setattr("traceanalyzer.commands.capture.profile_files.SETTLE", 0.05)
    load = ("--concurrency", "4", "--input-tokens", "16", "--output-tokens", "6")
    with FakeServer(Behaviour(profile_dir=tmp_path)) as server:
        for seen in (("--profile-dir", str(tmp_path)), ()):
            jsonschema.validate(printed("capture", server.url, *load, *seen, "--no-cache"), schema("capture"))


@pytest.mark.parametrize("stem", ["tp1", "run-dp1-ep3", "x_dcp2"])
def test_a_name_that_tells_a_part_of_the_layout_leaves_the_rest_null(stem: str, tmp_path: Path) -> None:
    path = tmp_path / f"{stem}.json.gz"
    shutil.copy(SAMPLE, path)
    document = printed("ingest", str(path))
    jsonschema.validate(document, schema("summary"))
    parallel = document["timelines"][0]["parallel"]
    assert set(parallel) == {"dp", "pp", "tp", "ep", "dcp"}
    assert None in parallel.values()
