"""Blocks of many architectures and engines, from kernel sequences built block by block."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tests.support.architectures import ARCHITECTURES
from traceanalyzer.segment.blocks import find_blocks
from traceanalyzer.segment.tokens import encode


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_blocks_are_those_the_step_was_built_from(name: str) -> None:
    truth = ARCHITECTURES[name]
    cut = find_blocks(*encode(pl.Series(truth.names)))
    found = [np.flatnonzero(cut.block_of == block) for block in range(cut.count)]
    assert [int(block[0]) for block in found] == list(truth.starts)
    assert [int(block[-1]) + 1 for block in found] == list(truth.ends)
