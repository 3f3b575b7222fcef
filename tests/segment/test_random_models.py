"""Random models with every trouble the generator knows: steps and blocks must be exactly those it made."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from synthetic import generate, write
from synthetic.random_specs import Limits, random_model
from tests.support.segment_faults import faults
from traceanalyzer.segment import segment
from traceanalyzer.trace import open_traces

LEAST_RIGHT = 0.98
FEW = 80
MANY = 1000


def share_right(seeds: range, limits: Limits) -> float:
    """Return the share of seeds whose trace is cut up without a fault; print the others."""
    right = 0
    for seed in seeds:
        truth = generate(random_model(random.Random(seed), limits), seed)
        with TemporaryDirectory() as folder:
            path = write(truth, Path(folder) / "trace.json")
            wrong = faults(truth, segment(open_traces(path, cache=False).traces[0]))
        right += not wrong
        if wrong:
            print(f"seed {seed}: {wrong[:3]}")  # noqa: T201
    print(f"exactly right: {right} of {len(seeds)} = {right / len(seeds):.1%}")  # noqa: T201
    return right / len(seeds)


def test_random_models_are_cut_up_exactly() -> None:
    assert share_right(range(FEW), Limits(max_layers=24)) >= LEAST_RIGHT


@pytest.mark.slow
def test_a_thousand_random_models_are_cut_up_exactly() -> None:
    assert share_right(range(MANY), Limits()) >= LEAST_RIGHT
