"""What runs on a stream beside the model is in no block; what belongs to its layers stays in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from tests.support.places import DATA
from traceanalyzer.segment import segment
from traceanalyzer.segment.side_streams import beside_the_model
from traceanalyzer.segment.tokens import EXPERT, GEMM, MIXER, NORM, OTHER
from traceanalyzer.trace import open_traces

LAYERS = 8
LAYER = (NORM, GEMM, MIXER, GEMM, NORM, GEMM, GEMM)
SIDE = 29


def beside(extra: dict[int, tuple[int, ...]], *, graph: bool = False, launch: int = 9) -> np.ndarray:
    """Which events run beside 8 layers launched by graph 1; `extra` are classes of stream 29 after the layers given."""
    rows = [(OTHER, 7, 1, True)]
    for layer in range(LAYERS):
        rows += [(kind, 7, 1, True) for kind in LAYER]
        rows += [(kind, SIDE, launch, graph) for kind in extra.get(layer, ())]
    rows += [(NORM, 7, 1, True), (GEMM, 7, 1, True)]
    classes, stream, launched, graphs = (np.array(column) for column in zip(*rows, strict=True))
    mask = beside_the_model(classes.astype(np.int64), classes.astype(np.int8), stream, launched, graphs)
    assert set(stream[mask].tolist()) <= {SIDE}
    return mask


def test_preparation_of_the_next_batch_is_beside_the_model() -> None:
    assert beside({2: (OTHER,) * 20, 5: (OTHER,) * 3}).sum() == 23


def test_a_single_kernel_stays_where_it_runs() -> None:
    assert not beside({2: (OTHER,)}).any()


def test_the_same_after_every_layer_belongs_to_the_layers() -> None:
    assert not beside(dict.fromkeys(range(LAYERS), (OTHER, OTHER))).any()


def test_shared_experts_on_another_stream_belong_to_the_model() -> None:
    assert not beside({2: (GEMM,), 5: (EXPERT, OTHER)}).any()


def test_what_the_graph_itself_started_belongs_to_the_model() -> None:
    assert not beside({2: (OTHER,), 5: (OTHER,)}, graph=True, launch=1).any()


def test_small_kernels_after_the_layers_are_left_alone() -> None:
    rows = [(NORM, 7), (MIXER, 7), (GEMM, 7), (OTHER, SIDE)]
    classes, stream = (np.array(column) for column in zip(*rows, strict=True))
    none = np.zeros(len(rows), dtype=np.bool_)
    assert not beside_the_model(classes, classes.astype(np.int8), stream, np.full(len(rows), -1), none).any()


def test_blocks_are_equal_though_another_stream_prepares_the_next_batch() -> None:
    cut = segment(open_traces(DATA / "reports" / "traces" / "side_stream_in_blocks.json.gz", cache=False).traces[0])
    assert cut.blocks.height == 32
    assert cut.blocks["variant"].unique().to_list() == ["A"]
    assert cut.steps["kernels"].to_list() == [372]
    names = pl.col("name").cast(pl.String)
    assert cut.events.filter(names.str.contains("splitKreduce"))["role"].unique().to_list() == ["down"]
    other = cut.events.filter(pl.col("stream") == SIDE)
    assert other["role"].unique().to_list() == ["other"]
    assert other["block"].null_count() == other["section"].null_count() == other.height == 20


def test_the_scheduler_of_a_recording_is_in_no_block(shared: Path) -> None:
    path = shared / "traces" / "others" / "qwen3_30b_sglang_decode_mi300.json.gz"
    cut = segment(open_traces(path, cache=False).traces[0])
    assert cut.blocks.height == 48
    assert cut.blocks["kernels"].unique().to_list() == [16]
    assert cut.blocks["variant"].n_unique() <= 2
    assert cut.events.filter(pl.col("stream") == 2)["block"].null_count() == 22
