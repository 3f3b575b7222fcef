"""Rules: the fewest ranges of m within a regret, found exactly and the same every time."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.places import CASES, ROOT
from traceanalyzer.commands.tune.formats import read_sweep
from traceanalyzer.commands.tune.formats.sweep import Sweep, SweepPoint
from traceanalyzer.commands.tune.policy.compute import make_policy, select
from traceanalyzer.commands.tune.policy.policy_file import read_policy
from traceanalyzer.commands.tune.policy.view import document
from traceanalyzer.commands.tune.tile_config import TileConfig
from traceanalyzer.declare import plain
from traceanalyzer.problems import TraceError

SEED = ROOT / "docs" / "data" / "strix_halo_sweep.log"


def sweep_of(times: dict[int, dict[str, float]], **facts: object) -> Sweep:
    points = [
        SweepPoint(None, m, None, TileConfig({"tile": name}), rounds=((time,),), **facts)  # type: ignore[arg-type]
        for m, row in times.items()
        for name, time in row.items()
    ]
    return Sweep(tuple(points), source="sweep")


def test_the_seeds_log_gives_the_authors_rule() -> None:
    policy = make_policy(read_sweep(SEED, top_k=4), 0.15)
    assert [(rule.min_m, rule.max_m) for rule in policy.rules] == [(1, 16), (17, None)]
    low, high = (rule.config for rule in policy.rules)
    assert low == {"block_m": 32, "block_n": 32, "block_k": 128, "split_k": 1}
    assert high == {"block_m": 16, "block_n": 128, "block_k": 128, "split_k": 1}
    assert [choice.m for choice in policy.choices] == [4, 8, 12, 16, 20, 24, 28, 32]
    assert max(choice.regret for choice in policy.choices) == pytest.approx(11.430138999999992 / 10.100704000000007 - 1)


def test_no_regret_takes_a_fastest_configuration_everywhere() -> None:
    policy = make_policy(read_sweep(SEED, top_k=4), 0.0)
    assert [choice.regret for choice in policy.choices] == [0.0] * 8
    assert len(policy.rules) == 3


def test_a_large_regret_needs_one_rule() -> None:
    policy = make_policy(read_sweep(SEED, top_k=4), 10.0)
    assert [(rule.min_m, rule.max_m) for rule in policy.rules] == [(1, None)]


def test_among_equally_few_rules_the_least_regret_wins() -> None:
    times = {1: {"a": 1.0, "b": 1.04}, 2: {"a": 1.09, "b": 1.0}, 3: {"a": 1.08, "b": 1.0}}
    policy = make_policy(sweep_of(times), 0.1)
    assert [rule.config["tile"] for rule in policy.rules] == ["b"]


def test_a_configuration_that_did_not_run_somewhere_cannot_serve_that_range() -> None:
    times = {1: {"a": 1.0, "b": 1.05}, 2: {"b": 1.0, "c": 1.01}, 3: {"a": 1.0, "b": 5.0}}
    policy = make_policy(sweep_of(times), 0.1)
    assert [(rule.max_m, rule.config["tile"]) for rule in policy.rules] == [(2, "b"), (None, "a")]


def test_a_failed_point_is_no_choice_and_an_m_without_any_is_told() -> None:
    sweep = sweep_of({1: {"a": 1.0, "b": 2.0}, 2: {"a": 1.0}})
    failed = [replace(point, reason="wrong result") if point.median_ms == 1.0 else point for point in sweep.points]
    policy = make_policy(replace(sweep, points=tuple(failed)), 0.1)
    assert [rule.config["tile"] for rule in policy.rules] == ["b"]
    assert [(w.code, w.count) for w in policy.warnings] == [("m_without_timing", 1)]


def test_the_same_sweep_in_another_order_gives_the_same_rules() -> None:
    sweep = read_sweep(SEED, top_k=4)
    backwards = replace(sweep, points=tuple(reversed(sweep.points)))
    assert make_policy(backwards, 0.15).rules == make_policy(sweep, 0.15).rules


def brute_force(times: dict[int, dict[str, float]], limit: float) -> tuple[int, float]:
    """Return fewest ranges and least total regret, by trying every way to cut."""
    sizes = sorted(times)
    regret = {m: {c: t / min(row.values()) - 1 for c, t in row.items()} for m, row in times.items()}
    for cuts in range(len(sizes)):
        totals = []
        for places in combinations(range(1, len(sizes)), cuts):
            ends = [0, *places, len(sizes)]
            parts = [sizes[a:b] for a, b in pairwise(ends)]
            costs = [
                min(
                    (
                        sum(regret[m][c] for m in part)
                        for c in regret[part[0]]
                        if all(regret[m].get(c, 9) <= limit + 1e-9 for m in part)
                    ),
                    default=None,
                )
                for part in parts
            ]
            if all(cost is not None for cost in costs):
                totals.append(sum(cost for cost in costs if cost is not None))
        if totals:
            return cuts + 1, min(totals)
    raise AssertionError("a fastest configuration is always allowed")


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.integers(1, 60),
        st.dictionaries(st.sampled_from("abcde"), st.floats(1, 2).map(lambda t: round(t, 3)), min_size=1),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from([0.0, 0.05, 0.15, 0.5]),
)
def test_rules_are_the_fewest_and_lose_the_least(times: dict[int, dict[str, float]], limit: float) -> None:
    policy = make_policy(sweep_of(times), limit)
    total = sum(choice.regret for choice in policy.choices)
    fewest, least = brute_force(times, limit)
    assert len(policy.rules) == fewest
    assert total == pytest.approx(least, abs=1e-6)
    assert all(choice.regret <= limit + 1e-6 for choice in policy.choices)
    assert policy.rules[0].min_m == 1
    assert policy.rules[-1].max_m is None
    for m in range(1, 70):
        assert sum(rule.holds(m) for rule in policy.rules) == 1
    for choice in policy.choices:
        assert policy.config(choice.m)["tile"] in times[choice.m]


def test_without_top_k_rules_count_requests_and_say_so() -> None:
    policy = make_policy(read_sweep(SEED), 0.15)
    assert policy.rows == "requests"
    assert [rule.max_m for rule in policy.rules] == [4, None]
    assert [warning.code for warning in policy.warnings] == ["m_is_concurrency"]


def test_several_problems_are_refused_until_one_is_picked() -> None:
    one, two = sweep_of({1: {"a": 1.0}}, shape={"n": 64}), sweep_of({1: {"a": 2.0}}, shape={"n": 128})
    both = replace(one, points=one.points + two.points)
    with pytest.raises(TraceError, match=r"2 problems.*n=64 or 128"):
        make_policy(both)
    assert make_policy(select(both, {"n": "128"})).choices[0].best_ms == 2.0
    with pytest.raises(TraceError, match=r"no point with n=7 .*known of its points: .*n"):
        select(both, {"n": "7"})


def test_what_was_never_timed_gives_no_rule() -> None:
    (path,) = (CASES / "510_moe_cfg").glob("E=*.json")
    with pytest.raises(TraceError, match="no timing"):
        make_policy(read_sweep(path))
    interpreted = sweep_of({1: {"a": 1.0}}, measured=False)
    with pytest.raises(TraceError, match="interpreter"):
        make_policy(interpreted)
    unknown = Sweep((SweepPoint(None, None, None, TileConfig({"tile": "a"}), rounds=((1.0,),)),), source="sweep")
    with pytest.raises(TraceError, match="how many rows"):
        make_policy(unknown)


def test_a_policy_comes_back_from_its_document(tmp_path: Path) -> None:
    policy = make_policy(read_sweep(SEED, top_k=4), 0.15)
    path = tmp_path / "rules.json"
    path.write_text(json.dumps(plain(document(policy, 0.15))))
    again = read_policy(path)
    assert again is not None
    assert (again.rules, again.shape, again.rows) == (policy.rules, policy.shape, policy.rows)
    assert read_policy(SEED) is None


@pytest.mark.parametrize(
    "rules",
    [
        [],
        [{"min_m": 1, "max_m": 16, "config": {"a": 1}}],
        [{"min_m": 2, "max_m": None, "config": {"a": 1}}],
        [{"min_m": 1, "max_m": 16, "config": {"a": 1}}, {"min_m": 18, "max_m": None, "config": {"a": 1}}],
        [{"min_m": 1, "max_m": None, "config": {}}],
        [{"min_m": 1, "max_m": "x", "config": {"a": 1}}],
    ],
)
def test_an_edited_policy_with_gaps_is_refused(tmp_path: Path, rules: list[object]) -> None:
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"schema": "traceanalyzer/tune-policy/1", "rules": rules}))
    with pytest.raises(TraceError):
        read_policy(path)
