"""Speculative decoding: a pass of the model, then passes of a draft model of one layer, in every step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from synthetic import TraceSpec, generate, models, variety, write
from tests.support.segment_faults import faults
from traceanalyzer.segment import segment
from traceanalyzer.segment.cut import Cut
from traceanalyzer.segment.passes import passes_in_words, with_drafts
from traceanalyzer.segment.tokens import encode
from traceanalyzer.trace import open_traces

SHALLOW = {
    f"{layers} layers, {drafts} drafts": variety.speculative(layers, drafts)
    for layers in (1, 2, 3)
    for drafts in (1, 3)
}
NO_MARKERS = {
    f"no markers, {launch}, {layers} layers": replace(
        variety.speculative(layers, 2, steps=3), engine="none", launch=launch
    )
    for launch in ("graph", "eager")
    for layers in (2, 9)
}
CASES: dict[str, TraceSpec] = {
    **SHALLOW,
    **NO_MARKERS,
    "no markers, cut off in a draft": replace(variety.speculative(4, 2, steps=3), engine="none", cut_last_step=65),
}


@pytest.mark.parametrize("name", CASES)
def test_every_pass_has_its_blocks_and_the_drafts_belong_to_the_step(name: str, tmp_path: Path) -> None:
    made = generate(CASES[name], 1)
    found = segment(open_traces(write(made, tmp_path / "trace.json"), cache=False).traces[0])
    assert faults(made, found) == []


def test_without_markers_equal_passes_in_a_row_stay_steps_of_their_own(tmp_path: Path) -> None:
    made = generate(replace(models.llama_decode(layers=4, steps=5), engine="none"), 1)
    found = segment(open_traces(write(made, tmp_path / "trace.json"), cache=False).traces[0])
    assert found.steps["blocks"].to_list() == [4] * 5


def test_blocks_count_the_models_layers_and_passes_tell_the_drafts(tmp_path: Path) -> None:
    made = generate(variety.speculative(layers=8, drafts=3), 1)
    found = segment(open_traces(write(made, tmp_path / "trace.json"), cache=False).traces[0])
    assert found.steps["blocks"].to_list() == [8, 8]
    passes = [(one["kind"], one["blocks"]) for one in found.steps["passes"][0]]
    assert passes == [("main", 8), ("draft", 1), ("draft", 1), ("draft", 1)]
    blocks = found.blocks.filter(pl.col("step") == 0)
    assert blocks.height == 11
    said = passes_in_words(found.steps)
    assert said is not None
    assert said.startswith("3 draft passes of 1 block (")
    assert said.endswith("% of the blocks' time), 16 tokens verified (4 per sequence)")


def test_a_plain_step_has_one_pass(tmp_path: Path) -> None:
    made = generate(models.llama_decode(layers=4, steps=1), 1)
    found = segment(open_traces(write(made, tmp_path / "trace.json"), cache=False).traces[0])
    assert [(one["kind"], one["blocks"]) for one in found.steps["passes"][0]] == [("main", 4)]
    assert passes_in_words(found.steps) is None


def test_a_tower_before_the_model_is_no_draft() -> None:
    names = ("rms_norm_kernel", "nvjet_tst_128x8_64x8", "rms_norm_kernel", "argmax")
    tokens, vocabulary = encode(pl.Series(names * 10))
    # Four short blocks, then what ends a pass, then sixteen.
    block_of = np.full(len(tokens), -1, dtype=np.int64)
    block_of[:4] = np.arange(4)
    block_of[12:28] = np.arange(4, 20)
    cut = Cut(block_of, 20, 0.9)
    assert with_drafts(cut, tokens, vocabulary, "prefill").pass_of is None
    assert with_drafts(cut, tokens, vocabulary, "forward").pass_of is None
    assert with_drafts(cut, tokens, vocabulary, "decode").pass_kinds == ("draft", "main")
