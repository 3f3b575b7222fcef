"""Random models with every trouble the generator knows: steps and blocks must be exactly those it made."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from segment_faults import faults

from traceanalyzer.segment import segment
from traceanalyzer.synthetic import generate, write
from traceanalyzer.synthetic.random_specs import Limits, random_model
from traceanalyzer.trace import open_traces

LEAST_RIGHT = 0.98
FEW = 80
MANY = 1000


def share_right(seeds: range, limits: Limits, folder: Path) -> float:
    """Return the share of seeds whose trace is cut up without a fault; print the others."""
    right = 0
    for seed in seeds:
        truth = generate(random_model(random.Random(seed), limits), seed)
        path = write(truth, folder / f"{seed}.json")
        wrong = faults(truth, segment(open_traces(path, cache=False).traces[0]))
        path.unlink()
        right += not wrong
        if wrong:
            print(f"seed {seed}: {wrong[:3]}")  # noqa: T201
    print(f"exactly right: {right} of {len(seeds)} = {right / len(seeds):.1%}")  # noqa: T201
    return right / len(seeds)


def test_random_models_are_cut_up_exactly(tmp_path: Path) -> None:
    assert share_right(range(FEW), Limits(max_layers=24), tmp_path) >= LEAST_RIGHT


@pytest.mark.slow
def test_a_thousand_random_models_are_cut_up_exactly(tmp_path: Path) -> None:
    assert share_right(range(MANY), Limits(), tmp_path) >= LEAST_RIGHT
