"""A configuration is a value: equal and hashed by what it sets; formats name its parameters their own way."""

from __future__ import annotations

import pytest

from traceanalyzer.commands.tune.config_text import describe_config
from traceanalyzer.commands.tune.tile_config import LOG, VLLM, TileConfig, from_log, from_triton, to_log, to_vllm

FULL = TileConfig({"num_warps": 4, "block_m": 16, "block_n": 32, "block_k": 64, "split_k": 2, "group_m": 8})


def test_order_does_not_tell_configurations_apart_but_unknown_values_do() -> None:
    same = TileConfig(dict(reversed(list(FULL.items()))))
    assert same == FULL
    assert len({same, FULL}) == 1
    unsaid = TileConfig({**FULL, "num_stages": None})
    assert unsaid != FULL
    assert unsaid.known == FULL


def test_a_configuration_does_not_follow_what_it_was_made_of() -> None:
    values = {"block_m": 16}
    config = TileConfig(values)
    values["block_m"] = 32
    assert config == {"block_m": 16}
    with pytest.raises(TypeError):
        config["block_m"] = 32  # type: ignore[index]


def test_values_are_left_out_or_filled_in() -> None:
    config = TileConfig({"block_m": 16, "split_k": 1})
    assert config.without(["split_k"]) == {"block_m": 16}
    assert config.over({"block_m": 64, "num_warps": 4}) == {"block_m": 16, "split_k": 1, "num_warps": 4}


def test_what_is_written_for_a_format_reads_back() -> None:
    assert from_triton(to_vllm(FULL)) == FULL
    assert from_log(to_log(FULL)) == FULL
    assert set(LOG) <= set(VLLM)


def test_a_product_that_is_not_split_has_no_split_in_vllms_file() -> None:
    assert to_vllm(TileConfig({"block_m": 16, "split_k": 1, "kpack": None})) == {"BLOCK_SIZE_M": 16}


def test_a_configuration_in_words_begins_with_its_tile() -> None:
    assert describe_config(FULL) == "16x32x64, split 2, warps 4, group 8"
    assert describe_config(TileConfig({"MWG": 32, "block_m": 16, "x": None})) == "MWG 32, block_m 16"
