"""Synthetic jobs: every figure is known because it was decided first."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from synthetic.ranks import CollectiveTruth, JobSpec, Straggler, generate_job, write_job
from traceanalyzer.commands.ranks.compute import RankComparison, compare
from traceanalyzer.commands.ranks.rank_findings import findings
from traceanalyzer.trace import open_traces

JOBS = {
    "tensor parallel": JobSpec(tp=2, jitter=0.05, transfer_jitter=0.2, stragglers=(Straggler(1, "o_proj", 40.0),)),
    "tensor parallel, file names without layout": JobSpec(tp=4, naming="rank", jitter=0.1, transfer_jitter=0.1),
    "sglang": JobSpec(tp=2, naming="sglang", jitter=0.1),
    "pipeline": JobSpec(pp=2, layers=5, jitter=0.02),
    "pipeline of tensor-parallel stages, four steps in flight": JobSpec(
        pp=4, tp=2, layers=6, in_flight=4, steps=6, jitter=0.02
    ),
    "experts over data-parallel ranks": JobSpec(dp=4, expert_parallel=True, layers=2, expert_load={2: 1.5}),
    "experts over data- and tensor-parallel ranks": JobSpec(dp=2, tp=2, layers=2, expert_parallel=True, jitter=0.1),
    "layout found by where calls end": JobSpec(tp=2, dp=2, layers=2, expert_parallel=True, naming="rank", jitter=0.1),
    "replicas found by where calls end": JobSpec(tp=2, dp=3, layers=2, naming="rank", jitter=0.1),
    "process groups in the trace": JobSpec(tp=2, dp=2, states_groups=True, jitter=0.1),
    "pipeline with groups in the trace": JobSpec(pp=3, layers=3, states_groups=True, jitter=0.1),
    "a recording that starts two steps later": JobSpec(tp=2, steps=6, first_step={1: 2}, jitter=0.1),
    "base times of their own": JobSpec(tp=2, jitter=0.1, base_offset_ns={1: 77_000_003}),
}


def found_collectives(found: RankComparison) -> set[tuple[object, ...]]:
    """Everything told about collectives, in a form to compare: kind, ranks, calls, transfer, waits, late calls."""
    rows = set()
    for row in found.collectives.iter_rows(named=True):
        own = found.waits.filter(found.waits["kind"] == row["kind"], found.waits["group"] == row["group"])
        waits = tuple(own.select("rank", "wait_ns").rows())
        late = tuple((rank, calls) for rank, calls in own.select("rank", "late_calls").rows() if calls)
        rows.add((row["kind"], tuple(json.loads(row["group"])), row["calls"], row["transfer_ns"], waits, late))
    return rows


def true_collectives(truths: tuple[CollectiveTruth, ...]) -> set[tuple[object, ...]]:
    return {
        (t.kind, t.ranks, t.calls, t.transfer_ns, tuple(sorted(t.wait_ns.items())), tuple(sorted(t.late_calls.items())))
        for t in truths
        if len(t.ranks) > 1
    }


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_transfer_waiting_and_late_ranks_are_those_of_the_job(run_job: Callable[..., Any], job: JobSpec) -> None:
    found, made = run_job(job)
    assert found_collectives(found) == true_collectives(made.truth.collectives)
    assert {row["rank"]: row["layers"] for row in found.per_rank.iter_rows(named=True)} == made.truth.layers
    assert found.layout.coordinates == {rank: job.place(rank) for rank in range(job.world_size)}


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.sampled_from([(2, 1, 1), (3, 1, 1), (1, 2, 1), (2, 2, 1), (1, 1, 3), (2, 1, 2)]),
    slow=st.integers(0, 3),
    extra=st.floats(0, 50),
    seed=st.integers(0, 1000),
)
def test_any_layout_gives_back_its_waits(
    tmp_path_factory: pytest.TempPathFactory, sizes: tuple[int, int, int], slow: int, extra: float, seed: int
) -> None:
    tp, pp, dp = sizes
    job = JobSpec(
        tp=tp,
        pp=pp,
        dp=dp,
        layers=2 * pp,
        steps=2,
        jitter=0.2,
        transfer_jitter=0.3,
        expert_parallel=dp > 1,
        stragglers=(Straggler(slow % (tp * pp * dp), "qkv_proj", extra),),
    )
    made = generate_job(job, seed)
    found = compare(open_traces(write_job(made, tmp_path_factory.mktemp("job")), cache=False))
    assert found_collectives(found) == true_collectives(made.truth.collectives)


def test_the_kernel_that_made_a_rank_late_is_named(run_job: Callable[..., Any]) -> None:
    found, _ = run_job(JobSpec(tp=4, stragglers=(Straggler(2, "o_proj", 25.0),)))
    (cause,) = found.causes.filter(pl.col("wait_ns") > 1000).iter_rows(named=True)
    assert (cause["rank"], cause["role"], cause["calls"]) == (2, "o_proj", 12)
    assert cause["extra_ns"] == 12 * 25_000
    (told,) = (finding.message for finding in findings(found) if finding.code == "communication")
    assert "rank 2" in told
    assert "o_proj" in told


def test_a_rank_whose_launches_come_late_is_not_blamed_on_a_kernel(run_job: Callable[..., Any]) -> None:
    found, _ = run_job(JobSpec(tp=2, stragglers=(Straggler(0, "down", 60.0, idle=True),)))
    (cause,) = found.causes.filter(pl.col("wait_ns") > 1000).iter_rows(named=True)
    assert (cause["rank"], cause["name"]) == (0, None)
    assert cause["extra_ns"] == pytest.approx(12 * 60_000, rel=0.01)
    assert any("launches come late" in finding.message for finding in findings(found))


def test_ranks_that_are_late_by_turns_have_no_culprit(run_job: Callable[..., Any]) -> None:
    turns = (Straggler(0, "o_proj", 20.0), Straggler(1, "down", 20.0))
    found, _ = run_job(JobSpec(tp=2, stragglers=turns))
    (told,) = (finding.message for finding in findings(found) if finding.code == "communication")
    assert "no rank in particular" in told


@pytest.mark.parametrize("in_flight", [1, 2])
def test_the_bubble_of_a_pipeline_is_measured(run_job: Callable[..., Any], in_flight: int) -> None:
    found, made = run_job(JobSpec(pp=2, layers=5, steps=6, in_flight=in_flight, jitter=0.05))
    assert found.pipeline is not None
    assert found.pipeline.layers == (3, 2)
    assert found.pipeline.total_layers == 5
    assert found.pipeline.bubble_share == pytest.approx(made.truth.bubble_share, abs=1e-4)


def test_more_steps_in_flight_shrink_the_bubble(run_job: Callable[..., Any]) -> None:
    shares = [run_job(JobSpec(pp=2, steps=6, in_flight=n))[0].pipeline.bubble_share for n in (1, 2)]
    assert shares[1] < shares[0] - 0.1


def test_uneven_experts_are_told_and_so_is_the_waiting_for_them(run_job: Callable[..., Any]) -> None:
    found, made = run_job(JobSpec(dp=4, layers=2, expert_parallel=True, expert_load={2: 1.6}))
    experts = found.experts
    assert experts.per_rank_ns == made.truth.expert_ns
    assert experts.max_over_mean == pytest.approx(1.6 / ((3 + 1.6) / 4))
    assert experts.parallel
    true_wait = {t.ranks: t.wait_ns for t in made.truth.collectives if t.kind == "combine"}
    assert experts.combine_wait_ns == true_wait[0, 1, 2, 3]


def test_even_experts_give_no_finding(run_job: Callable[..., Any]) -> None:
    found, _ = run_job(JobSpec(dp=2, layers=2, expert_parallel=True))
    assert found.experts.max_over_mean == pytest.approx(1.0)
    assert not any(finding.code == "expert_imbalance" for finding in findings(found))


def test_steps_without_requests_are_counted_and_left_out_of_the_shares(run_job: Callable[..., Any]) -> None:
    found, made = run_job(JobSpec(dp=2, layers=2, expert_parallel=True, steps=4, dummies=((1, 1), (1, 2))))
    assert dict(found.dummies.select("rank", "dummy_steps").iter_rows()) == made.truth.dummy_steps
    assert dict(found.per_step.select("rank", "steps").iter_rows()) == {0: 4, 1: 2}


def test_clocks_that_disagree_are_aligned_by_collectives(run_job: Callable[..., Any]) -> None:
    job = JobSpec(tp=4, jitter=0.1, transfer_jitter=0.1)
    wrong = replace(job, clock_error_ns={1: 3_000_000, 3: -250_000})
    found, _ = run_job(wrong)
    straight, _ = run_job(job)
    assert found.clocks.method == "matched collectives"
    assert found.clocks.offsets_ns == {0: 0, 1: -3_000_000, 2: 0, 3: 250_000}
    assert found.clocks.residual_ns == 0
    assert straight.clocks.method == "baseTimeNanoseconds"
    assert found_collectives(found) == found_collectives(straight)


def test_a_missing_rank_is_said_and_the_others_keep_their_numbers(run_job: Callable[..., Any]) -> None:
    found, _ = run_job(JobSpec(tp=4, jitter=0.1, absent=(2,)))
    assert found.ranks == [0, 1, 3]
    assert found.membership.missing == (2,)
    assert found.layout.sizes["tp"] == 4
    assert findings(found)[0].code == "missing_ranks"
    assert "rank 2" in findings(found)[0].message


def test_a_missing_last_rank_still_counts_for_the_layout(run_job: Callable[..., Any]) -> None:
    found, _ = run_job(JobSpec(tp=4, absent=(3,)))
    assert found.layout.sizes["tp"] == 4


def test_bandwidth_follows_from_the_message_where_it_is_known(tmp_path: Path) -> None:
    from traceanalyzer.commands.ranks.view import document

    made = generate_job(JobSpec(tp=4, states_groups=True, batch=64))
    traces = open_traces(write_job(made, tmp_path / "job"), cache=False)
    (row,) = document(traces, compare(traces), []).collectives
    message = 64 * 4096 * 2
    assert row.bytes == message * row.calls
    assert row.bus_gbps == pytest.approx(message / 8000 * 2 * 3 / 4)
    assert row.link_gbps == 450.0
    assert row.basis == "process group in the trace"
