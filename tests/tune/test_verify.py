"""Before and after, side by side."""

from __future__ import annotations

import pytest

from tests.support.tune_benches import PROBLEM, fake_bench
from traceanalyzer.commands.tune.measure.journal import Journal
from traceanalyzer.commands.tune.run.compute import Job, Settings, measure
from traceanalyzer.commands.tune.verify.compute import compare
from traceanalyzer.commands.tune.verify.result import VerifiedProblem
from traceanalyzer.kernels.problem import Config


def compared(before: Config, after: Config, rounds: int = 12) -> VerifiedProblem:
    with fake_bench() as bench:
        job = Job(PROBLEM, None, (before, after))
        outcome = measure(bench, [job], Settings(rounds=rounds, samples=3, margin=None), Journal(None))[0]
    return compare(outcome, before, after)


@pytest.mark.parametrize(
    ("before", "after", "verdict", "ratio"), [(32, 16, "faster", 1 / 1.2), (16, 32, "slower", 1.2)]
)
def test_a_change_is_told_with_its_size(before: int, after: int, verdict: str, ratio: float) -> None:
    found = compared(Config(16, before, 64), Config(16, after, 64))
    assert found.verdict == verdict
    assert found.ratio == pytest.approx(ratio, rel=0.03)
    assert found.ratio is not None
    assert found.ratio_interval is not None
    low, high = found.ratio_interval
    assert low <= found.ratio <= high


def test_a_change_too_small_to_be_told_is_not_called_faster() -> None:
    found = compared(Config(16, 64, 64), Config(16, 16, 64))
    assert found.verdict in ("unclear", "same")


def test_too_few_rounds_prove_nothing() -> None:
    assert compared(Config(16, 128, 64), Config(16, 16, 64), rounds=2).verdict == "unclear"


def test_a_new_tile_that_computes_something_wrong_is_no_gain() -> None:
    found = compared(Config(16, 32, 64), Config(16, 16, 256))
    assert found.verdict == "failed"
    assert "wrong result" in (found.after.reason or "")
