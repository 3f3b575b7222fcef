"""Confidence means something: what is called certain is right, and damage lowers it."""

from __future__ import annotations

import itertools
import random

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from synthetic import BlockSpec
from synthetic.random_specs import Limits, random_model
from traceanalyzer.segment.blocks import find_blocks
from traceanalyzer.segment.confidence import in_a_trace
from traceanalyzer.segment.tokens import encode

DAMAGE = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
MODELS = 40


def damaged(seed: int, rate: float) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the kernels of a random model's step, some dropped and some renamed, and the block of each."""
    rng = random.Random(f"{seed} {rate}")
    model = random_model(random.Random(seed), Limits(max_layers=32, troubles=False)).model
    sequence = [(kernel.name, -1) for kernel in model.prologue]
    layers: tuple[BlockSpec, ...] = model.layers
    sequence += [(kernel.name, number) for number, layer in enumerate(layers) for kernel in layer.kernels]
    sequence += [(kernel.name, -1) for kernel in model.epilogue]
    kept = [(name, block) for name, block in sequence if rng.random() >= rate]
    names = [f"renamed_{rng.randrange(5)}" if rng.random() < rate / 2 else name for name, _ in kept]
    found = list(dict.fromkeys(block for _, block in kept if block >= 0))
    return names, np.array([found.index(block) if block >= 0 else -1 for _, block in kept], dtype=np.int64)


@pytest.fixture(scope="module")
def trials() -> pl.DataFrame:
    """Return damage, confidence and whether the blocks are exactly right, for models under rising damage."""
    rows = []
    for seed in range(MODELS):
        for rate in DAMAGE:
            names, truth = damaged(seed, rate)
            cut = find_blocks(*encode(pl.Series(names)))
            rows.append((rate, cut.confidence, bool(np.array_equal(cut.block_of, truth))))
    return pl.DataFrame(rows, schema=["damage", "confidence", "right"], orient="row")


def test_confidence_falls_as_damage_rises(trials: pl.DataFrame) -> None:
    means = trials.group_by("damage").agg(pl.col("confidence").mean()).sort("damage")["confidence"].to_list()
    assert all(later <= earlier + 0.02 for earlier, later in itertools.pairwise(means))
    assert means[0] - means[-1] > 0.4


def test_what_is_called_certain_is_right_and_what_is_called_doubtful_is_not(trials: pl.DataFrame) -> None:
    def share_right(low: float, high: float) -> float:
        chosen = trials.filter(pl.col("confidence").is_between(low, high, closed="left"))
        assert len(chosen) > 10
        return float(chosen["right"].mean())  # type: ignore[arg-type]

    assert share_right(0.95, 1.01) > 0.95
    assert share_right(0.5, 0.95) > share_right(0.15, 0.5)
    assert share_right(0.0, 0.15) < 0.1


def test_right_answers_have_the_higher_confidence_nine_times_of_ten(trials: pl.DataFrame) -> None:
    right = trials.filter("right")["confidence"].to_numpy()
    wrong = trials.filter(~pl.col("right"))["confidence"].to_numpy()
    above = (right[:, None] > wrong[None, :]).mean() + 0.5 * (right[:, None] == wrong[None, :]).mean()
    assert above > 0.9


def test_a_step_of_a_trace_keeps_its_place_in_the_order() -> None:
    ratings = [number / 1000 for number in range(1001)]
    shown = [in_a_trace(rating) for rating in ratings]
    assert all(earlier < later for earlier, later in itertools.pairwise(shown))
    assert shown[0] >= 0
    assert shown[-1] < 1
