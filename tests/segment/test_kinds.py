"""Kinds claim a window only where it is proven, towers are told apart, and variants start at A in what is shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from tests.support.places import CASES
from traceanalyzer.cli.main import cli
from traceanalyzer.segment import segment
from traceanalyzer.segment.reach import takes_turns
from traceanalyzer.segment.tokens import IntArray, KernelVocabulary, encode
from traceanalyzer.segment.towers import towers_of
from traceanalyzer.segment.variants import tell_apart
from traceanalyzer.trace import open_traces

NORM, PRODUCT, OTHER_PRODUCT = "rms_norm_kernel", "ampere_gemm_64x64", "ampere_gemm_128x256"
FLASH, WINDOW, TEXT = "flash_fwd_kernel", "flash_attn_sliding_window_kernel", "fmha_forward_kernel"
INDEXER, WRITE = "fp8_mqa_logits_kernel", "reshape_and_cache_kernel"
CONVOLUTION, LOOKUP = "implicit_convolve_sgemm", "indexSelectSmallIndex"


def blocks_of(layers: list[list[str]]) -> tuple[list[IntArray], KernelVocabulary]:
    tokens, vocabulary = encode(pl.Series([name for layer in layers for name in layer]))
    bounds = np.cumsum([len(layer) for layer in layers])[:-1]
    return list(np.split(tokens, bounds)), vocabulary


def kinds(layers: list[list[str]], attention: list[int], *, generates: bool = True) -> list[str | None]:
    """The kinds of layers whose attention takes the times given and everything else 10."""
    blocks, vocabulary = blocks_of(layers)
    times = [
        np.array([time if name in (FLASH, WINDOW) else 10 for name in layer])
        for layer, time in zip(layers, attention, strict=True)
    ]
    return list(tell_apart(blocks, times, vocabulary, generates=generates).kinds)


def layer(*attention: str) -> list[str]:
    return [NORM, PRODUCT, *attention, PRODUCT, NORM, PRODUCT, "silu_and_mul_kernel", PRODUCT]


@pytest.mark.parametrize("turn", [(40, 200), (40, 40, 40, 40, 40, 200), (40, 40, 40, 200)])
def test_windows_that_take_turns_in_a_language_model_are_sliding(turn: tuple[int, ...]) -> None:
    times = [*turn, *turn, *turn, turn[0]]
    found = kinds([layer(FLASH)] * len(times), times)
    assert found == ["full" if time == 200 else "sliding" for time in times]


@pytest.mark.parametrize("times", [[40] * 6 + [200] * 6, [200] * 3 + [40] * 9, [40, 200, 200, 40, 40, 200, 40, 200]])
def test_attention_that_takes_no_turns_is_long_or_short(times: list[int]) -> None:
    found = kinds([layer(FLASH)] * len(times), times)
    assert found == ["long attention" if time == 200 else "short attention" for time in times]


def test_nothing_slides_outside_of_language_models() -> None:
    found = kinds([layer(FLASH)] * 12, [40, 200] * 6, generates=False)
    assert set(found) == {"long attention", "short attention"}


def test_layers_that_attend_to_another_input_are_not_full() -> None:
    layers = [layer(WRITE, FLASH), layer(WRITE, FLASH), layer(FLASH)] * 4
    assert set(kinds(layers, [40, 40, 200] * 4)) == {"short attention", "long attention"}


def test_a_window_in_the_name_needs_no_turns() -> None:
    layers = [layer(WINDOW), layer(FLASH), layer(WINDOW), layer(WINDOW), layer(FLASH)]
    assert kinds(layers, [50, 55, 50, 50, 55]) == ["sliding", "full", "sliding", "sliding", "full"]


def test_layers_with_an_indexer_say_so_and_nothing_of_windows() -> None:
    layers = [layer(INDEXER, FLASH), layer(FLASH), layer(FLASH), layer(FLASH)] * 3
    assert kinds(layers, [100] * 12) == ["with indexer", "dense", "dense", "dense"] * 3


@pytest.mark.parametrize(
    ("long", "turns"),
    [([False, True] * 4, True), ([False] * 4 + [True] * 4, False), ([True] * 8, False), ([False, True, True], False)],
)
def test_turns_repeat_from_the_first_layer_to_the_last(long: list[bool], turns: bool) -> None:
    assert takes_turns(long) is turns


def towers(parts: list[tuple[list[str], int]]) -> list[str] | None:
    """The towers of a step made of parts: names, and how many blocks each is (0: no block)."""
    names = [name for part, count in parts for _ in range(max(count, 1)) for name in part]
    tokens, vocabulary = encode(pl.Series(names))
    block_of, number = [], 0
    for part, count in parts:
        for _ in range(count):
            block_of += [number] * len(part)
            number += 1
        block_of += [-1] * len(part) if not count else []
    placed = np.array(block_of)
    blocks = [tokens[placed == n] for n in range(number)]
    return towers_of(tokens, placed, blocks, vocabulary)


IMAGE = [NORM, PRODUCT, FLASH, PRODUCT]
WORDS = [NORM, OTHER_PRODUCT, TEXT, OTHER_PRODUCT]


def test_two_encoders_in_one_pass_are_two_towers() -> None:
    once = [([CONVOLUTION], 0), (IMAGE, 4), ([NORM, LOOKUP], 0), (WORDS, 3), ([NORM, PRODUCT], 0)]
    assert towers(once * 2) == (["image tower"] * 4 + ["text tower"] * 3) * 2


def test_towers_that_nothing_names_are_numbered() -> None:
    assert towers([(IMAGE, 4), ([NORM], 0), (WORDS, 4)]) == ["tower 1"] * 4 + ["tower 2"] * 4


def test_passes_of_one_model_are_one_tower() -> None:
    assert towers([([LOOKUP], 0), (IMAGE, 4), ([NORM], 0)] * 3) is None


def test_a_lone_block_is_no_tower() -> None:
    assert towers([(IMAGE, 4), ([NORM], 0), (WORDS, 1)]) is None


def test_an_image_and_a_text_encoder_are_told_apart_in_a_recording(shared: Path) -> None:
    path = shared / "traces" / "others" / "owlv2_mi300.json.gz"
    cut = segment(open_traces(path, cache=False).traces[0])
    assert cut.blocks["kind"].to_list() == (["image tower"] * 24 + ["text tower"] * 12) * 5
    text = CliRunner().invoke(cli, ["blocks", str(path), "--no-cache"], env={"COLUMNS": "200"}).stdout
    assert "2 towers: image tower with 24 blocks, text tower with 12 blocks; 5 passes" in text
    assert "sliding" not in text


def test_the_view_says_what_sets_variants_apart() -> None:
    text = CliRunner().invoke(cli, ["blocks", str(CASES / "209_sliding_full.json.gz")], env={"COLUMNS": "200"}).stdout
    assert "B differs from A: the same kernels, but attention takes" in text


def test_variants_begin_with_a_in_the_step_that_is_shown() -> None:
    cut = segment(open_traces(CASES / "206_two_batch_sizes.json.gz", cache=False).traces[0])
    for step in cut.steps.filter(pl.col("blocks") > 0)["step"]:
        assert cut.only(step=step).blocks["variant"][0] == "A"
