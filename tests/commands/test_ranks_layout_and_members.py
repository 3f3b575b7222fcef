"""Which traces are which ranks, and how the job is split: stated, else inferred, never guessed."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from synthetic.ranks import JobSpec, SyntheticJob, generate_job, write_job
from tests.support.places import CASES
from traceanalyzer.commands.ranks.compute import compare, warnings_of_job
from traceanalyzer.commands.report.gather import gather_ranks
from traceanalyzer.trace import open_traces


def codes(found: Any) -> set[str]:
    return {warning.code for warning in found.warnings}


def renamed_processes(made: SyntheticJob, names: list[str]) -> SyntheticJob:
    for document, name in zip(made.documents.values(), names, strict=True):
        for event in document["traceEvents"]:
            if event.get("name") == "process_name":
                event["args"]["name"] = name
    return made


def test_worker_names_tell_the_layout_where_file_names_do_not(tmp_path: Path) -> None:
    made = generate_job(JobSpec(pp=2, tp=2, naming="rank"))
    names = [f"VLLM::Worker_PP{rank // 2}_TP{rank % 2}" for rank in range(4)]
    found = compare(open_traces(write_job(renamed_processes(made, names), tmp_path / "job"), cache=False))
    assert found.layout.source == "worker names"
    assert (found.layout.sizes["pp"], found.layout.sizes["tp"]) == (2, 2)
    assert found.layout.coordinates[3] == {"dp": 0, "pp": 1, "tp": 1}


def test_described_process_groups_tell_the_layout(tmp_path: Path) -> None:
    made = generate_job(JobSpec(pp=2, tp=2, naming="rank"))
    for document in made.documents.values():
        groups = document["distributedInfo"]["pg_config"]
        groups[0] |= {"pg_desc": "tp", "pg_size": 2}
        groups[1] |= {"pg_desc": "PIPELINE_PARALLEL_GROUP", "pg_size": 2}
    found = compare(open_traces(write_job(made, tmp_path / "job"), cache=False))
    assert found.layout.source == "process groups"
    assert (found.layout.sizes["dp"], found.layout.sizes["pp"], found.layout.sizes["tp"]) == (1, 2, 2)


def test_a_pipeline_is_told_by_its_kernels_alone(run_job: Callable[..., Any]) -> None:
    found, made = run_job(JobSpec(pp=2, tp=2, naming="rank", jitter=0.1))
    assert found.layout.source == "inferred from kernels"
    assert (found.layout.sizes["pp"], found.layout.sizes["tp"]) == (2, 2)
    assert found.pipeline.bubble_share == pytest.approx(made.truth.bubble_share, abs=1e-4)


def test_names_that_contradict_each_other_are_not_used(tmp_path: Path) -> None:
    folder = write_job(generate_job(JobSpec(tp=2)), tmp_path / "job")
    for number, path in enumerate(sorted(folder.iterdir())):
        path.rename(folder / f"dp0_pp0_tp0_dcp0_ep0_rank{number}.1.pt.trace.json.gz")
    found = compare(open_traces(folder, cache=False))
    assert "layout_conflict" in codes(found)
    assert found.layout.source == "inferred from kernels"
    assert found.layout.sizes["tp"] == 2


def test_the_same_rank_twice_is_said_and_never_merged(tmp_path: Path) -> None:
    folder = write_job(generate_job(JobSpec(tp=2)), tmp_path / "job")
    first = min(folder.iterdir())
    shutil.copy(first, folder / f"copy_of_{first.name}")
    found = compare(open_traces(folder, cache=False))
    assert found.ranks == [0, 1]
    assert "duplicate_rank" in codes(found)
    assert found.collectives["calls"].to_list() == [24]


def test_a_rank_that_occurs_twice_is_told_once_with_the_trace_that_was_taken(tmp_path: Path) -> None:
    folder = write_job(generate_job(JobSpec(tp=2)), tmp_path / "job")
    first = min(folder.iterdir())
    shutil.copy(first, folder / f"copy_of_{first.name}")
    traces = open_traces(folder, cache=False)
    (told,) = (one for one in warnings_of_job(traces, compare(traces)) if one.code == "duplicate_rank")
    assert "is analysed, left out: " in told.message
    _, on_the_page = gather_ranks(traces)
    assert [one for one in on_the_page if one.code == "duplicate_rank"] == [told]


def test_two_profiles_in_one_folder_are_not_mixed(tmp_path: Path) -> None:
    later = JobSpec(tp=2, steps=4, base_offset_ns=dict.fromkeys(range(2), 0))
    folder = write_job(generate_job(JobSpec(tp=2, steps=2)), tmp_path / "job")
    made = generate_job(later)
    for name, document in made.documents.items():
        document["baseTimeNanoseconds"] += 60_000_000_000
        made.documents[name] = document
    write_job(SyntheticJob({f"b_{n}": d for n, d in made.documents.items()}, made.truth), folder)
    found = compare(open_traces(folder, cache=False))
    assert "several_profiles" in codes(found)
    assert found.collectives["calls"].to_list() == [32]
    told = warnings_of_job(open_traces(folder, cache=False), found)
    assert "duplicate_rank" not in {one.code for one in told}


def test_warnings_of_a_rank_name_its_file(tmp_path: Path) -> None:
    folder = write_job(generate_job(JobSpec(tp=2)), tmp_path / "job")
    cut = max(folder.iterdir())
    text = gzip.decompress(cut.read_bytes())
    cut.write_bytes(gzip.compress(text[: text.rindex(b"{") + 20]))
    traces = open_traces(folder, cache=False)
    told = warnings_of_job(traces, compare(traces))
    assert {one.source for one in told if one.code == "truncated"} == {str(cut)}


def test_devices_of_one_trace_are_compared_as_ranks() -> None:
    cases = CASES
    found = compare(open_traces(cases / "113_two_gpus.json.gz", cache=False))
    assert "devices_as_ranks" in codes(found)
    assert len(found.ranks) == 2


def test_a_rank_without_number_is_left_out_and_named(tmp_path: Path) -> None:
    made = generate_job(JobSpec(tp=2, naming="rank"))
    name = max(made.documents)
    document = made.documents.pop(name)
    del document["distributedInfo"]
    made.documents["nameless.json.gz"] = document
    found = compare(open_traces(write_job(made, tmp_path / "job"), cache=False))
    assert found.ranks == [0]
    assert "rank_unknown" in codes(found)
    assert found.membership.missing == (1,)
