"""Steps and kinds of recordings that were written by hand."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from recordings import Recording
from test_architectures import ARCHITECTURES, ARGMAX, dense, step

DECODE = "execute_context_0(0)_generation_4(4)"
PREFILL = "execute_context_1(900)_generation_0(0)"


def llama(layers: int = 8) -> list[str]:
    """The kernels of a decode step."""
    return list(step([dense() for _ in range(layers)]).names)


def test_what_is_left_of_a_step_before_the_first_marker_is_one_partial_step(tmp_path: Path) -> None:
    recording = Recording()
    rest = llama()[40:]
    recording.step(rest[:-2], launched=False)
    recording.step(rest[-2:])
    recording.step(llama(), DECODE)
    found = recording.segment(tmp_path)
    assert found.steps.select("complete", "events", "blocks").rows() == [(False, len(rest), 0), (True, len(llama()), 8)]
    assert found.events["step"].null_count() == 0


def test_gated_delta_layers_are_linear_though_their_convolution_is_that_of_mamba(tmp_path: Path) -> None:
    names = ["qwen3-next: three linear layers to one of attention"]
    recording = Recording()
    recording.step(list(ARCHITECTURES[names[0]].names), DECODE)
    kinds = recording.segment(tmp_path).blocks["kind"].to_list()
    assert kinds == ["linear", "linear", "linear", "attention"] * 12


def test_a_vision_tower_is_no_model_of_full_attention(tmp_path: Path) -> None:
    recording = Recording()
    names = ARCHITECTURES["a vision tower and its merger ahead of the model"].names
    begin = recording.now
    for name in names:
        recording.launch(name, length=60.0 if "flash_fwd_kernel" in name else 3.0)
    recording.host(PREFILL, begin, recording.now)
    found = recording.segment(tmp_path)
    assert found.steps["blocks"].to_list() == [52]
    assert found.blocks["kind"].unique().to_list() == ["dense"]
    assert found.events.filter(pl.col("name").cast(pl.String) == ARGMAX)["role"].to_list() == ["sampler"]
