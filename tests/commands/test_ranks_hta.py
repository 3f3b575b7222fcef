"""HolisticTraceAnalysis beside our own figures: equal where it is right, and where it is wrong that is said."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from synthetic import generate, write
from synthetic.models import llama_decode
from synthetic.ranks import JobSpec, generate_job, write_job
from tests.support.places import CASES, TRACES
from traceanalyzer.commands.ranks.compute import compare
from traceanalyzer.commands.ranks.hta import second_opinion
from traceanalyzer.commands.ranks.result import SecondOpinion
from traceanalyzer.trace import open_traces


def both(path: Path) -> tuple[dict[int, dict[str, float]], SecondOpinion]:
    """Our figures by rank in µs, and HTA's."""
    found = compare(open_traces(path, cache=False))
    ours = {
        row["rank"]: {
            name: row[f"{name}_ns"] / 1000 for name in ("compute", "exposed_comm", "exposed_copy", "idle", "span")
        }
        for row in found.per_rank.iter_rows(named=True)
    }
    return ours, second_opinion(found)


def assert_agrees(ours: dict[int, dict[str, float]], theirs: SecondOpinion) -> None:
    assert len(theirs.temporal) == len(ours)
    for row in theirs.temporal:
        own = ours[row.rank]
        assert row.compute_us == pytest.approx(own["compute"], abs=0.01)
        assert row.idle_us == pytest.approx(own["idle"], abs=0.01)
        assert row.kernel_time_us == pytest.approx(own["span"], abs=0.01)
        assert row.non_compute_us == pytest.approx(own["exposed_comm"] + own["exposed_copy"], abs=0.01)


def test_time_is_split_alike_where_all_communication_is_nccl() -> None:
    ours, theirs = both(CASES / "305_pp2")
    assert_agrees(ours, theirs)
    assert not any("counts them as computation" in note for note in theirs.notes)


def test_time_is_split_alike_on_synthetic_ranks_of_nccl(tmp_path: Path) -> None:
    job = JobSpec(tp=2, states_groups=True, jitter=0.1)
    ours, theirs = both(write_job(generate_job(job, 1), tmp_path / "job"))
    assert_agrees(ours, theirs)
    assert {row.overlap_percent for row in theirs.overlap} == {0.0}


def test_overlap_is_ours(tmp_path: Path) -> None:
    found = compare(open_traces(CASES / "115_overlapping_streams.json", cache=False))
    (row,) = found.per_rank.iter_rows(named=True)
    (overlap,) = second_opinion(found).overlap
    hidden = 1 - row["exposed_comm_ns"] / row["comm_ns"]
    assert overlap.overlap_percent == pytest.approx(100 * hidden, abs=0.01)


def test_custom_all_reduce_is_communication_here_and_computation_there() -> None:
    ours, theirs = both(CASES / "303_allreduce_wait")
    for row in theirs.temporal:
        own = ours[row.rank]
        assert row.compute_us == pytest.approx(own["compute"] + own["exposed_comm"], abs=0.01)
        assert row.idle_us == pytest.approx(own["idle"], abs=0.01)
    assert any("counts them as computation" in note for note in theirs.notes)


def test_a_critical_path_is_shown_for_eager_steps_only(shared: Path) -> None:
    eager = second_opinion(compare(open_traces(CASES / "205_no_annotation_eager.json.gz", cache=False)))
    graphs = second_opinion(compare(open_traces(CASES / "201_vllm_native.json.gz", cache=False)))
    assert graphs.critical_path == []
    assert any("graphs launch" in note for note in graphs.notes)
    assert not any("graphs launch" in note for note in eager.notes)
    real = second_opinion(compare(open_traces(shared / "traces" / "gpu" / "qwen1.5_0.5b_hf_h100.json.gz", cache=False)))
    assert real.temporal
    assert not any("fails" in note for note in real.notes), real.notes


def test_the_critical_path_of_an_eager_step_is_bound_by_its_kernels(tmp_path: Path) -> None:
    trace = generate(replace(llama_decode(layers=4, steps=4), launch="eager"))
    write(trace, tmp_path / "rank0.pt.trace.json.gz")
    rows = second_opinion(compare(open_traces(tmp_path / "rank0.pt.trace.json.gz", cache=False))).critical_path
    assert rows[0].bound_by == "gpu_compute_bound"
    assert sum(row.share or 0 for row in rows) == pytest.approx(1, abs=0.01)


def test_the_real_decode_trace_is_not_rounded_to_whole_microseconds(shared: Path) -> None:
    ours, theirs = both(shared / "traces" / "gpu" / "gptoss20b_vllm_decode_mi300x.json.gz")
    assert_agrees(ours, theirs)


def test_queue_lengths_and_idle_causes_are_given() -> None:
    _, theirs = both(CASES / "303_allreduce_wait")
    assert {row.rank for row in theirs.queue} == {0, 1}
    assert {row.category for row in theirs.idle} == {"host_wait", "kernel_wait", "other"}
    assert not any("fails" in note for note in theirs.notes)


def test_cpu_traces_have_nothing_to_show() -> None:
    found = compare(open_traces(TRACES / "llama_24_vllm_compiled_tp2_gloo", cache=False))
    theirs = second_opinion(found)
    assert theirs.temporal == []
    assert theirs.notes


def test_logging_is_as_before_afterwards() -> None:
    before = logging.root.manager.disable
    both(CASES / "305_pp2")
    assert logging.root.manager.disable == before
