"""Measuring, on a backend without a GPU but in a real worker process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tune_benches import GOOD, PROBLEM, fake_bench, outcome_of, verdicts
from traceanalyzer.commands.tune.formats import read_sweep
from traceanalyzer.commands.tune.measure.bench import open_bench, start_worker
from traceanalyzer.commands.tune.measure.journal import Journal
from traceanalyzer.commands.tune.run.compute import Job, Settings, measure
from traceanalyzer.kernels.problem import Config
from traceanalyzer.problems import TraceError

FAST, SLOWER, TIE, HOPELESS = GOOD


def test_the_fastest_wins_although_everything_drifts() -> None:
    outcome = outcome_of(GOOD, Settings(rounds=8, samples=3, margin=None))
    assert outcome.finished
    assert outcome.best is not None
    assert outcome.best.launch in (FAST, TIE)
    assert verdicts(outcome)[SLOWER] == "slower"
    ratio = next(result.ratio_to_best for result in outcome.results if result.launch == SLOWER)
    assert ratio is not None
    assert ratio == pytest.approx(1.2, rel=0.05), "the drift of 1 % a call cancels within a round"


def test_what_cannot_be_told_apart_is_reported_as_a_tie() -> None:
    outcome = outcome_of(GOOD, Settings(rounds=6, samples=3, margin=None))
    assert sorted(verdicts(outcome)[config] for config in (FAST, TIE)) == ["best", "tie"]


def test_racing_drops_the_hopeless_at_once_and_the_slower_later(tmp_path: Path) -> None:
    log = tmp_path / "log"
    outcome = outcome_of(GOOD, Settings(rounds=8, samples=2), log=log)
    rounds = {result.launch: result.rounds for result in outcome.results}
    assert rounds[HOPELESS] == 1
    assert 3 <= rounds[SLOWER] < 8
    assert rounds[FAST] == 8
    assert verdicts(outcome)[HOPELESS] == "dropped"
    assert log.read_text().count("16x128x64x1") == 2, "one check and one round"


def test_every_candidate_is_checked_before_anything_is_timed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    outcome_of(GOOD, Settings(rounds=2, samples=1, margin=None), log=log)
    kinds = [line.split()[0] for line in log.read_text().splitlines()]
    assert kinds == ["check"] * 4 + ["sample"] * 8


def test_candidates_are_interleaved_in_a_new_order_every_round(tmp_path: Path) -> None:
    log = tmp_path / "log"
    outcome_of(GOOD, Settings(rounds=5, samples=1, margin=None), log=log)
    timed = [line for line in log.read_text().splitlines() if line.startswith("sample")]
    rounds = [tuple(timed[i : i + 4]) for i in range(0, 20, 4)]
    assert all(len(set(of_one)) == 4 for of_one in rounds)
    assert len(set(rounds)) > 2
    assert rounds[1] == rounds[0][::-1], "back and forth, so that a drift within rounds favours nobody"
    assert rounds[3] == rounds[2][::-1]


def test_a_wrong_result_is_never_timed(tmp_path: Path) -> None:
    log, wrong = tmp_path / "log", Config(16, 16, 256)
    outcome = outcome_of((*GOOD, wrong), Settings(rounds=2, samples=1), log=log)
    failed = outcome.results[-1]
    assert (failed.launch, failed.verdict) == (wrong, "failed")
    assert "wrong result" in (failed.reason or "")
    assert f"sample 16 uniform {wrong.label}" not in log.read_text()


@pytest.mark.parametrize(
    ("stages", "reason"),
    [(7, "process died (exit status 139)"), (8, "no answer within"), (9, "illegal memory access")],
    ids=["crash", "hang", "error"],
)
def test_a_candidate_that_breaks_its_process_is_a_failed_candidate(stages: int, reason: str) -> None:
    bad = Config(16, 16, 64, num_stages=stages)
    outcome = outcome_of((bad, *GOOD), Settings(rounds=3, samples=1, timeout_s=3 if stages == 8 else 60))
    assert verdicts(outcome)[bad] == "failed"
    assert reason in (outcome.results[-1].reason or "")
    assert outcome.best is not None
    assert outcome.best.rounds == 3, "the run goes on with a new process"


def test_a_run_goes_on_from_its_journal(tmp_path: Path) -> None:
    path, log = tmp_path / "sweep.jsonl", tmp_path / "log"
    bad = Config(16, 16, 64, num_stages=7)
    outcome_of((*GOOD, bad), Settings(rounds=2, samples=2, margin=None), journal=Journal(path))
    path.write_text(path.read_text() + '{"schema": "traceanalyzer/sweep/1", "kern')  # torn by a kill
    outcome = outcome_of((*GOOD, bad), Settings(rounds=4, samples=2, margin=None), journal=Journal(path), log=log)
    asked = log.read_text().splitlines()
    assert not [line for line in asked if line.startswith("check")], "checked and failed candidates are known"
    assert len(asked) == 8, "two rounds of four are left"
    assert {result.rounds for result in outcome.results if result.verdict != "failed"} == {4}
    sweep = read_sweep(path)
    assert [len(point.rounds) for point in sweep.points if not point.reason] == [4, 4, 4, 4]
    assert sum(warning.count or 0 for warning in sweep.warnings) == 1, "the torn line"


def test_a_finished_run_asks_nothing_again(tmp_path: Path) -> None:
    path, log = tmp_path / "sweep.jsonl", tmp_path / "log"
    first = outcome_of(GOOD, Settings(rounds=4, samples=2), journal=Journal(path))
    again = outcome_of(GOOD, Settings(rounds=4, samples=2), journal=Journal(path), log=log)
    assert not log.exists()
    assert verdicts(again) == verdicts(first)


def test_another_problem_is_not_taken_from_the_journal(tmp_path: Path) -> None:
    path, log = tmp_path / "sweep.jsonl", tmp_path / "log"
    outcome_of(GOOD, Settings(rounds=1, samples=1), journal=Journal(path))
    with fake_bench(log) as bench:
        measure(bench, [Job(PROBLEM.with_m(32), None, GOOD)], Settings(rounds=1, samples=1), Journal(path))
    assert len(log.read_text().splitlines()) == 8


def test_the_budget_ends_a_run_and_says_so() -> None:
    ticks = iter(range(1000))
    with fake_bench() as bench:
        jobs = [Job(PROBLEM, None, GOOD), Job(PROBLEM.with_m(64), None, GOOD)]
        outcomes = measure(
            bench,
            jobs,
            Settings(rounds=50, samples=1, margin=None, budget_s=60),
            Journal(None),
            clock=lambda: next(ticks),
        )
    assert [outcome.finished for outcome in outcomes] == [False, False]
    measured = [sum(result.rounds for result in outcome.results) for outcome in outcomes]
    assert all(0 < rounds < 60 for rounds in measured), "each problem gets its share"


def test_candidates_never_reached_are_unmeasured() -> None:
    ticks = iter(range(1000))
    with fake_bench() as bench:
        settings = Settings(rounds=50, samples=1, budget_s=3)
        outcome = measure(bench, [Job(PROBLEM, None, GOOD)], settings, Journal(None), clock=lambda: next(ticks))[0]
    assert outcome.best is None
    assert set(verdicts(outcome).values()) == {"unmeasured"}


def test_starting_the_process_again_is_no_candidates_time() -> None:
    killer = Config(16, 16, 64, num_stages=7)
    settings = Settings(rounds=1, samples=1, timeout_s=1)
    with fake_bench(FAKE_START_S="1.5") as bench:
        outcome = measure(bench, [Job(PROBLEM, None, (killer, *GOOD))], settings, Journal(None))[0]
    assert [result.launch for result in outcome.results if result.verdict == "failed"] == [killer]


def test_a_process_that_does_not_start_again_ends_the_run_and_fails_nobody(tmp_path: Path) -> None:
    path, killer = tmp_path / "sweep.jsonl", Config(16, 32, 64, num_stages=7)
    with fake_bench(FAKE_ONCE=str(tmp_path / "once")) as bench:
        job = Job(PROBLEM, None, (FAST, killer, TIE))
        outcome = measure(bench, [job], Settings(rounds=1, samples=1), Journal(path))[0]
    assert "does not start again" in (outcome.cut_short or "")
    assert verdicts(outcome) == {FAST: "unmeasured", killer: "failed", TIE: "unmeasured"}
    assert [point.config["num_stages"] for point in read_sweep(path).points if point.reason] == [7]


def test_checks_leave_half_of_the_budget_to_timing() -> None:
    ticks = iter(range(10_000))
    many = tuple(Config(16, 16, 64, num_warps=1, group_m=i) for i in range(1, 100))
    with fake_bench() as bench:
        settings = Settings(rounds=1, samples=1, margin=None, budget_s=150)
        outcome = measure(bench, [Job(PROBLEM, None, many)], settings, Journal(None), clock=lambda: next(ticks))[0]
    rounds = [result.rounds for result in outcome.results]
    assert rounds.count(1) > 10
    assert rounds.count(0) > 10
    assert "checks took half of the budget" in (outcome.cut_short or "")


def test_routings_and_rows_are_measured_one_by_one(tmp_path: Path) -> None:
    log = tmp_path / "log"
    jobs = [Job(PROBLEM.with_m(m), draw, (FAST,)) for m in (16, 32) for draw in ("uniform", "skewed")]
    with fake_bench(log) as bench:
        outcomes = measure(bench, jobs, Settings(rounds=1, samples=1), Journal(None))
    assert [outcome.job for outcome in outcomes] == jobs
    timed = [line.split()[1:3] for line in log.read_text().splitlines() if line.startswith("sample")]
    assert timed == [["16", "uniform"], ["16", "skewed"], ["32", "uniform"], ["32", "skewed"]]


def test_progress_only_grows() -> None:
    seen: list[tuple[int, int]] = []
    with fake_bench() as bench:
        settings = Settings(rounds=3, samples=1)
        measure(
            bench, [Job(PROBLEM, None, GOOD)], settings, Journal(None), progress=lambda _, d, t: seen.append((d, t))
        )
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == seen[-1][1]


def test_a_backend_that_cannot_start_is_one_clear_error() -> None:
    module = "traceanalyzer.commands.tune.measure.backends.fused_moe"
    with start_worker(module, "interpret") as worker, pytest.raises(TraceError, match="runs on a GPU only"):
        open_bench("fused_moe", "fused_moe", worker)


def test_a_file_that_is_no_sweep_is_not_written_to(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("shopping list\n")
    with pytest.raises(TraceError, match="not a sweep file"):
        Journal(path)
    assert path.read_text() == "shopping list\n"
