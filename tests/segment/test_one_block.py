"""Steps with a single block."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from traceanalyzer.segment.blocks import find_blocks
from traceanalyzer.segment.tokens import encode

NORM, ADD_NORM = "void vllm::rms_norm_kernel<float>()", "void vllm::fused_add_rms_norm_kernel<float>()"
ATTENTION = ["nvjet_qkv", "void vllm::rotary_embedding_kernel<float>()", "flash_fwd_kernel", "nvjet_out"]
FEED_FORWARD = ["nvjet_up", "void vllm::act_and_mul_kernel<float>()", "nvjet_down"]
BEFORE, LOGITS = ["vectorized_gather_kernel"], ["nvjet_logits", "argmax_kernel"]
AHEAD = [NORM, *ATTENTION, ADD_NORM, *FEED_FORWARD]
AROUND = [NORM, *ATTENTION, NORM, ADD_NORM, *FEED_FORWARD, NORM]


@pytest.mark.parametrize("block", [AHEAD, AROUND], ids=["norms ahead of both halves", "norms around both halves"])
def test_the_final_norm_is_the_last_one_ahead_of_the_logits(block: list[str]) -> None:
    names = [*BEFORE, *block, ADD_NORM, *LOGITS]
    cut = find_blocks(*encode(pl.Series(names)))
    assert np.flatnonzero(cut.block_of == 0).tolist() == list(range(1, 1 + len(block)))
    assert cut.count == 1
