"""Which expert gets which row, and the tables that the grouped product reads."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from traceanalyzer.kernels.problem import Problem
from traceanalyzer.kernels.routing import draw_experts, expected_tiles, route, tile_bound, tile_tables


@pytest.mark.parametrize("draw", ["uniform", "skewed"])
def test_no_token_meets_an_expert_twice(draw: str) -> None:
    chosen = draw_experts(Problem(256, 64, 64, experts=16, top_k=4), draw, seed=0)
    assert chosen.shape == (64, 4)
    assert all(len(set(row)) == 4 for row in chosen.tolist())


def test_a_skewed_draw_prefers_the_first_experts() -> None:
    problem = Problem(4096, 64, 64, experts=16, top_k=4)
    skewed = torch.bincount(draw_experts(problem, "skewed", 0).flatten(), minlength=16)
    uniform = torch.bincount(draw_experts(problem, "uniform", 0).flatten(), minlength=16)
    assert skewed[0] > 2 * skewed[8]
    assert uniform.max() < 1.3 * uniform.min()


def test_given_counts_are_kept() -> None:
    counts = [3, 0, 5, 2]
    routing = route(Problem(10, 64, 64, experts=4, top_k=2), "3,0,5,2", 0, "cpu")
    assert routing.counts.tolist() == counts
    assert routing.offsets.tolist() == [0, 3, 3, 8, 10]


@pytest.mark.parametrize(
    ("draw", "words"),
    [("1,2", "names 2 experts"), ("3,3,3,3", "adds up to 12"), ("10,0,0,0", "cannot get 10"), ("zipf", "uniform")],
)
def test_counts_that_do_not_fit_are_refused(draw: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        draw_experts(Problem(10, 64, 64, experts=4, top_k=2), draw, 0)


def test_rows_are_sorted_by_expert_and_go_back_to_their_place() -> None:
    problem = Problem(24, 64, 64, experts=4, top_k=2)
    chosen = draw_experts(problem, "uniform", 5).flatten()
    routing = route(problem, "uniform", 5, "cpu")
    assert chosen[routing.scatter.long()].tolist() == sorted(chosen.tolist())
    assert sorted(routing.scatter.tolist()) == list(range(24))
    assert (routing.gather == routing.scatter // 2).all()
    weights = torch.zeros(24).index_copy(0, routing.scatter.long(), routing.weights)
    torch.testing.assert_close(weights.reshape(12, 2).sum(1), torch.ones(12))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 40), min_size=2, max_size=12).filter(lambda counts: sum(counts) > 0),
    st.sampled_from([16, 32, 64]),
)
def test_tiles_cover_every_row_of_every_expert_once(counts: list[int], block_m: int) -> None:
    problem = Problem(sum(counts), 64, 64, experts=len(counts), top_k=1)
    routing = route(problem, ",".join(map(str, counts)), 0, "cpu")
    expert, first = tile_tables(problem, routing, block_m)
    assert len(expert) == tile_bound(problem.m, len(counts), block_m)
    covered = [0] * len(counts)
    for e, f in zip(expert.tolist(), first.tolist(), strict=True):
        if e >= 0:
            assert f == covered[e]
            covered[e] += min(block_m, counts[e] - f)
    assert covered == counts


def test_expected_tiles_agree_with_the_notes_on_distinct_experts() -> None:
    """D(32, 4) of the performance model: T = 1, 4, 16 tokens hit 4.0, 13.24 and 28.2 experts."""
    for tokens, hit in ((1, 4.0), (4, 13.24), (16, 28.2)):
        found, tiles = expected_tiles(Problem(4 * tokens, 64, 64, experts=32, top_k=4), 16)
        assert found == pytest.approx(hit, abs=0.05)
        assert tiles == pytest.approx(hit, abs=0.05), "16 rows hold what 16 tokens can send to one expert"


def test_expected_tiles_agree_with_draws() -> None:
    problem = Problem(1024, 64, 64, experts=8, top_k=2)
    drawn = [
        sum(-(-count // 32) for count in route(problem, "uniform", seed, "cpu").counts.tolist()) for seed in range(20)
    ]
    assert expected_tiles(problem, 32)[1] == pytest.approx(sum(drawn) / len(drawn), rel=0.03)


def test_expected_tiles_of_many_tokens_stay_finite() -> None:
    hit, tiles = expected_tiles(Problem(65536, 64, 64, experts=128, top_k=8), 128)
    assert hit == pytest.approx(128)
    assert 512 <= tiles <= 640
