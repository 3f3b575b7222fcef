"""What commands print stays: keys and figures of a small set of documents and tables; sentences may be reworded.

``python -m bench.outputs record tests/data/outputs --few`` keeps what they print now, after a change that is meant.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bench.outputs import Run, differences, few_runs, file_of, read, record_one
from tests.support.places import DATA, ROOT

KEPT = DATA / "outputs"
TOLERANCE = 1e-9
"""Sums of floats depend on the order in which cores finish."""


def test_every_record_is_of_a_run_and_every_run_has_one() -> None:
    assert {path.name for path in KEPT.iterdir()} == {file_of(run, KEPT).name for run in few_runs()}


@pytest.mark.parametrize("run", few_runs(), ids=lambda run: " ".join(word.rpartition("/")[2] for word in run))
def test_keys_and_figures_are_those_that_were_kept(
    run: Run, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    record_one(run, tmp_path)
    before, now = read(file_of(run, KEPT)), read(file_of(run, tmp_path))
    assert now["status"] == 0
    assert list(differences(before, now, Counter(), tolerance=TOLERANCE)) == []


def test_a_changed_figure_or_a_key_that_is_gone_is_a_difference() -> None:
    (run,) = [run for run in few_runs() if run[:2] == ("hotspots", "traces/gptoss20b_decode_synthetic.json.gz")][:1]
    before = read(file_of(run, KEPT))
    for old, new in (('"steps": 8', '"steps": 9'), ('"share":', '"part":')):
        assert old in before["output"]
        now = {**before, "output": before["output"].replace(old, new, 1)}
        assert len(list(differences(before, now, Counter()))) == 1
