"""A step that lost kernels follows one of its kind that did not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from synthetic import DroppedKernel, TraceSpec, generate, models, variety, write
from tests.support.segment_faults import faults
from traceanalyzer.segment import segment
from traceanalyzer.segment.consensus import consult
from traceanalyzer.segment.cut import Cut
from traceanalyzer.segment.truncated import Peer
from traceanalyzer.trace import open_traces

LLAMA = models.llama_decode(layers=2, steps=3)
HEAD_NORMS = variety.qwen3_dense(3)
CASES: dict[str, TraceSpec] = {
    "a norm of the second block": replace(LLAMA, dropped=(DroppedKernel(1, 1, 6),)),
    "norms of queries and keys, first block": replace(HEAD_NORMS, dropped=(DroppedKernel(0, 0, 2),)),
    "norms of queries and keys, two blocks": replace(
        HEAD_NORMS, dropped=(DroppedKernel(0, 0, 3), DroppedKernel(0, 2, 9))
    ),
    "a product and a norm, eager": replace(
        LLAMA, launch="eager", dropped=(DroppedKernel(2, 0, 5), DroppedKernel(2, 0, 6))
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_lost_kernels_move_no_border(name: str, tmp_path: Path) -> None:
    made = generate(CASES[name], 1)
    found = segment(open_traces(write(made, tmp_path / "trace.json"), cache=False).traces[0])
    assert faults(made, found) == []


def peer(tokens: list[int], block_of: list[int], confidence: float) -> Peer:
    cut = Cut(np.array(block_of), max(block_of) + 1, confidence)
    return Peer(np.array(tokens), np.zeros(len(tokens), dtype=np.int64), cut)


CLEAR = peer([0, *range(1, 10), *range(1, 10), *range(1, 10), 20], [-1] + [0] * 9 + [1] * 9 + [2] * 9 + [-1], 0.99)


def test_a_step_with_kernels_missing_takes_the_blocks_of_the_clearer_one() -> None:
    tokens = np.delete(CLEAR.tokens, [5, 12])
    doubtful = peer(tokens.tolist(), [0] * len(tokens), 0.3)
    _, advised = consult([CLEAR, doubtful])
    assert advised.block_of.tolist() == np.delete(CLEAR.cut.block_of, [5, 12]).tolist()


def test_a_kernel_at_a_border_that_the_clearer_step_lacks_leaves_the_step_as_it_was() -> None:
    tokens = np.insert(CLEAR.tokens, 10, 33)
    doubtful = peer(tokens.tolist(), [0] * len(tokens), 0.3)
    assert consult([CLEAR, doubtful])[1] is doubtful.cut


def test_a_step_of_other_kernels_is_not_advised() -> None:
    doubtful = peer([40 + token for token in CLEAR.tokens.tolist()], [0] * len(CLEAR.tokens), 0.3)
    assert consult([CLEAR, doubtful])[1] is doubtful.cut


def test_a_step_that_is_clear_itself_keeps_its_blocks() -> None:
    other = peer(np.delete(CLEAR.tokens, 5).tolist(), [0] * (len(CLEAR.tokens) - 1), 0.95)
    assert consult([CLEAR, other])[1] is other.cut


def test_each_step_may_have_lost_a_kernel_that_stands_beside_the_other_s() -> None:
    tokens = np.array([0, *[1, 2, 3, 1, 4, 5, 6] * 4, 20])
    blocks = np.array([-1, *(number for number in range(4) for _ in range(7)), -1])
    clear = peer(np.delete(tokens, 5).tolist(), np.delete(blocks, 5).tolist(), 0.9)
    doubtful = peer(np.delete(tokens, 4).tolist(), [0] * (len(tokens) - 1), 0.3)
    assert consult([clear, doubtful])[1].block_of.tolist() == np.delete(blocks, 4).tolist()
