"""The benchmark of traces without a transformer: its outcomes repeat, its summary counts what is claimed."""

from __future__ import annotations

from bench.negatives import FITTED, POSITIVE, UNSEEN, run, summary
from bench.sections.negatives import render
from synthetic import negatives


def test_no_family_both_chooses_thresholds_and_measures() -> None:
    assert not set(negatives.FITTED) & set(negatives.UNSEEN)


def test_the_same_task_has_the_same_outcome() -> None:
    assert run((UNSEEN, 3)) == run((UNSEEN, 3))


def test_claims_above_the_limit_count_and_the_page_shows_them() -> None:
    rows = [
        {"kind": FITTED, "seed": 0, "family": "CNN", "claim": [0.9, False], "right": False},
        {"kind": UNSEEN, "seed": 0, "family": "vocoder", "claim": [0.1, False], "right": False},
        {"kind": UNSEEN, "seed": 1, "family": "vocoder", "claim": None, "right": True},
        {"kind": POSITIVE, "seed": 0, "family": "dense", "claim": [0.9, True], "right": True},
    ]
    outcome = summary(rows)
    assert outcome["negatives"][FITTED]["found"]["right"] == 1
    assert outcome["negatives"][UNSEEN] == {
        "traces": 2,
        "shown": 1,
        "found": outcome["negatives"][UNSEEN]["found"],
        "highest": 0.1,
    }
    assert outcome["negatives"][UNSEEN]["found"]["right"] == 0
    assert outcome["calibration"]["together"]["claims"] == 2
    page = render({"results": outcome, "settings": {"first": 0}, "date": "2026-01-01"})
    assert "0 of 2 traces without a transformer get blocks" in page
    assert "vocoder" in page
