"""The segmentation benchmark: its trials repeat, its judge agrees with the tests', its statistics are right."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from bench import segmentation
from bench.calibration import auc, bins, brier, calibration_error, wilson
from bench.sections.segmentation import render
from bench.segmentation_models import FAMILIES, MIXTURE, trial
from bench.segmentation_summary import summary
from bench.segmentation_trials import CUT_OFF, INNER, NOT_FOUND, damaged, judge, run
from synthetic import generate, models, write
from tests.support.segment_faults import faults
from traceanalyzer.segment import segment
from traceanalyzer.trace import open_traces

LAYERS = 18


@pytest.fixture(scope="module")
def rows() -> list[dict[str, object]]:
    return [json.loads(json.dumps(run(seed, LAYERS))) for seed in range(2_000_000, 2_000_004)]


def test_seeds_are_none_of_the_tests() -> None:
    assert segmentation.FIRST >= 1_000_000


def test_a_trial_repeats_itself_and_every_family_can_be_generated() -> None:
    assert trial(5, LAYERS) == trial(5, LAYERS)
    missing = {MIXTURE, *FAMILIES}
    for seed in range(2_000_000, 2_000_250):
        chosen = trial(seed, LAYERS)
        if chosen.family in missing:
            missing.remove(chosen.family)
            assert len(generate(chosen.spec, seed).truth.steps) == len(chosen.spec.steps)
    assert not missing


def test_the_judge_agrees_with_that_of_the_tests(tmp_path: Path) -> None:
    for seed in (2_000_055, 2_000_056, 2_000_101):
        chosen = trial(seed)
        made = generate(chosen.spec, seed)
        found = segment(open_traces(write(made, tmp_path / "trace.json"), cache=False).traces[0])
        assert bool(judge(made, found)[0]) == bool(faults(made, found))
        # Errors that are put in on purpose are seen by both, whatever the segmentation does.
        shifted = replace(found, events=found.events.with_columns(block=found.events["block"].shift(1)))
        assert judge(made, shifted)[0]
        assert faults(made, shifted)


def test_errors_are_told_by_kind(tmp_path: Path) -> None:
    made = generate(models.llama_decode(layers=4, steps=2))
    found = segment(open_traces(write(made, tmp_path / "trace.json"), cache=False).traces[0])
    assert judge(made, found)[0] == []
    assert all(right for _, right in judge(made, found)[1])
    moved = replace(found, events=found.events.with_columns(block=found.events["block"].shift(1)))
    assert judge(made, moved)[0] == [(0, INNER), (1, INNER)]
    assert not any(right for _, right in judge(made, moved)[1])
    steps = found.steps.with_columns(complete=~found.steps["complete"])
    assert {kind for _, kind in judge(made, replace(found, steps=steps))[0]} == {CUT_OFF}
    one = replace(found, events=found.events.with_columns(step=found.events["step"] * 0))
    assert {kind for _, kind in judge(made, one)[0]} == {NOT_FOUND}


def test_damage_loses_and_renames_and_numbers_what_is_left() -> None:
    kernels = [("a", -1), *((name, block) for block in range(3) for name in ("b", "c"))]
    assert damaged(kernels, 0.0, random.Random(0)) == ([name for name, _ in kernels], [-1, 0, 0, 1, 1, 2, 2])
    names, blocks = damaged(kernels * 50, 0.5, random.Random(0))
    assert 100 < len(names) < 250
    assert any(name.startswith("renamed_") for name in names)
    assert set(blocks) == {-1, 0, 1, 2}


def test_rows_can_be_gone_on_from_after_a_line_was_cut(tmp_path: Path, rows: list[dict[str, object]]) -> None:
    file = tmp_path / "rows.jsonl"
    kept = [{"code": "now", **row} for row in rows]
    file.write_text("\n".join(map(json.dumps, [{"code": "before", **rows[0]}, *kept]))[:-20])
    assert segmentation._read(file, "now") == kept[:-1]
    assert segmentation._read(tmp_path / "none", "now") == []


def test_the_page_shows_rates_errors_and_calibration(rows: list[dict[str, object]]) -> None:
    settings = {"first_seed": 2_000_000, "seeds": len(rows)}
    found = json.loads(json.dumps(summary(rows)))
    assert found["all"]["of"] == len(rows)
    text = render({"results": found, "settings": settings, "date": "2026-01-01", "commit": "abc"})
    assert "**By family**" in text
    assert "| confidence | claims |" in text


def test_the_interval_of_a_rate_is_wilsons() -> None:
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)


def test_auc_is_the_share_of_pairs_in_order() -> None:
    rng = random.Random(0)
    claims = [(rng.randrange(6) / 5, rng.random() < 0.6) for _ in range(60)]
    right = [confidence for confidence, each in claims if each]
    wrong = [confidence for confidence, each in claims if not each]
    pairs = [(a > b) + 0.5 * (a == b) for a in right for b in wrong]
    assert auc(claims) == pytest.approx(sum(pairs) / len(pairs))
    assert auc([(0.5, True)]) is None


def test_calibration_of_known_claims() -> None:
    claims = [(0.8, True)] * 8 + [(0.8, False)] * 2 + [(1.0, False)]
    edges = (0.0, 0.5, 0.9, 1.0)
    assert [len(members) for members in bins(claims, edges)] == [0, 10, 1]
    assert calibration_error(claims[:10], edges) == pytest.approx(0)
    assert calibration_error(claims, edges) == pytest.approx(1 / 11)
    assert brier(claims[:10]) == pytest.approx(0.8 * 0.04 + 0.2 * 0.64)
