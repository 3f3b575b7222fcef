"""The replay benchmark: budgets, strategies, and what the page says of them."""

from __future__ import annotations

import json
import random

import pytest

from bench.replay import STRATEGIES, Table, budgets, evaluations, quartiles, replayed, tables_of
from bench.sections.replay import images, render
from traceanalyzer.commands.tune.formats.sweep import Sweep, SweepPoint
from traceanalyzer.commands.tune.tile_config import TileConfig


def line(size: int, samples: int = 1, m: int = 1) -> list[SweepPoint]:
    """Configurations that get slower the farther they are from the fifth."""
    return [
        SweepPoint("line", m, None, TileConfig({"x": x, "y": x % 3}), rounds=(tuple([1.0 + abs(x - 5)] * samples),))
        for x in range(size)
    ]


def test_a_budget_is_a_share_rounded_down_but_at_least_one() -> None:
    assert [evaluations(share, 17956) for share in (0.01, 0.03)] == [179, 538]
    assert evaluations(0.2, 6) == 1
    assert set(budgets(6)) == {1, 2, 3, 4, 6}
    assert max(budgets(1000)) == 200


def test_the_order_of_the_table_is_its_first_configurations() -> None:
    table = Table(line(12))
    assert table.regret("table order", 3, 0) == pytest.approx(3.0)
    assert table.regret("table order", 6, 0) == 0.0


def test_every_strategy_finds_the_best_when_everything_is_measured() -> None:
    table = Table(line(12, samples=5))
    assert [table.regret(strategy, 12, 1) for strategy in STRATEGIES] == [0.0] * 3


def test_a_failed_configuration_is_never_the_answer() -> None:
    failed = SweepPoint("line", 1, None, TileConfig({"x": -1, "y": 0}), reason="out of memory")
    table = Table([failed, *line(8)])
    assert table.regret("table order", 1, 0) == float("inf")
    assert table.regret("table order", 2, 0) == 5.0
    assert quartiles([float("inf"), 0.5, 0.25]) == [0.25, 0.5, None]


def test_an_evaluation_draws_some_of_many_samples() -> None:
    point = SweepPoint("line", 1, None, TileConfig({"x": 0, "y": 0}), rounds=((1.0, 2.0, 3.0, 4.0),))
    drawn = Table([point]).draw(0, random.Random(0))
    assert len(drawn) == 3
    assert set(drawn) < {1.0, 2.0, 3.0, 4.0}


def test_the_page_has_a_row_for_every_share_and_says_where_chance_is_better() -> None:
    sweep = Sweep((*line(7), *line(7, m=2)), source="line")
    assert [len(table) for table in tables_of(sweep)] == [7, 7]
    found = replayed(sweep, "line.jsonl", seeds=1)
    document = {"results": {"tables": [json.loads(json.dumps(found))]}, "settings": {"seeds": 1}}
    text = render(document)
    assert "| line.jsonl | 7, 2 spaces | 1 % to 20 % | 1 |" in text
    assert "worse at" in text
    assert images(document) == images(document)
    assert len(images(document)["replay.svg"]) < 150_000


def test_spaces_of_equal_size_get_luck_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[tuple[str, int], list[int]] = {}

    def regret(_: Table, strategy: str, budget: int, seed: int) -> float:
        seen.setdefault((strategy, budget), []).append(seed)
        return 0.0

    monkeypatch.setattr(Table, "regret", regret)
    replayed(Sweep((*line(7), *line(7, m=2)), source="line"), "line.jsonl", seeds=1)
    assert all(len(seeds) == len(set(seeds)) for seeds in seen.values())
