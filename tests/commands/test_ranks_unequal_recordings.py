"""Recordings that do not match: shares rest on the steps all ranks share, and what is unlike is said."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from synthetic.ranks import JobSpec, Straggler, generate_job, write_job
from traceanalyzer.cli.main import cli
from traceanalyzer.commands.ranks.compute import RankComparison, compare
from traceanalyzer.commands.ranks.rank_findings import findings, layout_words
from traceanalyzer.commands.ranks.result import RankFinding
from traceanalyzer.trace import open_traces

SLOW = JobSpec(tp=4, steps=6, stragglers=(Straggler(2, "o_proj", 25.0),))
UNEVEN = JobSpec(dp=4, layers=2, steps=5, expert_parallel=True, expert_load={1: 1.6})


def of(found: RankComparison, code: str) -> RankFinding:
    (told,) = (finding for finding in findings(found) if finding.code == code)
    return told


def test_steps_that_one_rank_lacks_do_not_thin_out_the_shares(run_job: Callable[..., Any]) -> None:
    whole = of(run_job(SLOW)[0], "communication")
    late = of(run_job(replace(SLOW, first_step={1: 3}))[0], "communication")
    assert late.worth_share == pytest.approx(whole.worth_share, rel=0.01)
    assert late.worth_us == pytest.approx(whole.worth_us, rel=0.01)


def test_work_before_calls_that_have_no_partner_is_not_a_cause(run_job: Callable[..., Any]) -> None:
    found, _ = run_job(replace(SLOW, first_step={1: 3}))
    (cause,) = found.causes.filter(pl.col("wait_ns") > 1000).iter_rows(named=True)
    assert (cause["calls"], cause["extra_ns"]) == (3 * 4, 3 * 4 * 25_000)


def test_dummy_steps_do_not_thin_out_the_shares(run_job: Callable[..., Any]) -> None:
    plain, _ = run_job(UNEVEN)
    idle, _ = run_job(replace(UNEVEN, dummies=((3, 1), (3, 2))))
    assert of(idle, "communication").worth_share == pytest.approx(of(plain, "communication").worth_share, rel=0.05)
    assert of(idle, "expert_imbalance").worth_us == pytest.approx(of(plain, "expert_imbalance").worth_us, rel=0.05)


def test_expert_load_is_compared_a_step(run_job: Callable[..., Any]) -> None:
    found, _ = run_job(replace(UNEVEN, first_step={0: 2}))
    assert found.experts.max_over_mean == pytest.approx(1.6 / ((3 + 1.6) / 4), rel=0.01)
    assert found.experts.busiest == 1


def test_experts_of_a_deeper_stage_are_not_called_busy(run_job: Callable[..., Any]) -> None:
    found, _ = run_job(JobSpec(dp=2, pp=2, layers=5, expert_parallel=True, expert_load={3: 1.3}))
    assert found.experts.busiest == 3
    assert found.experts.max_over_mean == pytest.approx(1.3 / 1.15, rel=0.01)


def test_with_a_rank_missing_no_upper_bound_of_waiting_is_claimed(run_job: Callable[..., Any]) -> None:
    found, _ = run_job(replace(SLOW, absent=(2,)))
    told = of(found, "communication")
    assert told.worth_us is None
    assert "at minimum" in told.message
    assert "arriving together" not in told.message


def test_ranks_that_run_another_model_are_told(tmp_path: Path) -> None:
    one = write_job(generate_job(JobSpec(tp=2, layers=4)), tmp_path / "one")
    other = write_job(generate_job(JobSpec(tp=2, layers=6)), tmp_path / "other")
    mixed = [next(one.glob("*rank0*")), next(other.glob("*rank1*"))]
    told = of(compare(open_traces(mixed, cache=False)), "unequal_layers")
    assert "4 on rank 0" in told.message
    assert "6 on rank 1" in told.message


def test_stages_of_unequal_depth_are_one_model(run_job: Callable[..., Any]) -> None:
    found, _ = run_job(JobSpec(pp=2, tp=2, layers=5))
    assert not any(finding.code == "unequal_layers" for finding in findings(found))


def test_trailing_ranks_that_are_missing_leave_the_layout_open(run_job: Callable[..., Any]) -> None:
    found, _ = run_job(JobSpec(tp=4, absent=(2, 3)))
    assert found.layout.sizes == {"dp": None, "pp": None, "tp": None, "ep": None}
    assert found.collectives["group"].to_list() == ["[0, 1]"]
    assert layout_words(found.layout) == "tp ? x pp ? x dp ?"


def test_ranks_that_only_one_layout_numbers_so_tell_it(run_job: Callable[..., Any]) -> None:
    found, _ = run_job(JobSpec(tp=2, pp=2, dp=2, layers=4, absent=(0, 1, 3, 4, 6)))
    assert (found.layout.sizes["dp"], found.layout.sizes["pp"], found.layout.sizes["tp"]) == (2, 2, 2)


def test_groups_of_any_size_fit_kernels_of_the_first_ranks(run_job: Callable[..., Any]) -> None:
    found, _ = run_job(JobSpec(tp=4, naming="rank", absent=(2, 3)))
    assert found.layout.source is None


@pytest.mark.parametrize(("key", "value"), [("world_size", 10**12), ("rank", 10**10)])
def test_jobs_of_absurd_size_are_not_believed(tmp_path: Path, key: str, value: int) -> None:
    folder = write_job(generate_job(JobSpec(tp=2)), tmp_path / "job")
    path = next(folder.glob("*rank1*"))
    document = json.loads(gzip.decompress(path.read_bytes()))
    document["distributedInfo"][key] = value
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    traces = open_traces(folder, cache=False)
    assert compare(traces).membership.world_size == 2
    told = [warning.message for trace in traces for warning in trace.metadata.warnings]
    assert any(str(value) in message for message in told)


def test_rows_that_are_not_shown_are_counted(tmp_path: Path) -> None:
    folder = write_job(generate_job(JobSpec(tp=2, dp=3, naming="rank", jitter=0.1)), tmp_path / "job")
    result = CliRunner().invoke(cli, ["ranks", str(folder), "--limit", "2", "--no-cache"])
    assert "and 4 more ranks (--limit 0 shows all)" in result.stdout
    assert "and 1 more collective (--limit 0 shows all)" in result.stdout
