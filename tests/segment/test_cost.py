"""The work grows with the kernels and no further, whatever they are."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.support.architectures import ARCHITECTURES, dense
from tests.support.counted_work import lines_run
from traceanalyzer.read import TraceMetadata, TraceSource
from traceanalyzer.read.event_schema import EVENT_SCHEMA
from traceanalyzer.segment import segmentation
from traceanalyzer.segment.block_borders import StepLayout, tail_end
from traceanalyzer.segment.blocks import find_blocks
from traceanalyzer.segment.segmentation import cut_up
from traceanalyzer.segment.tokens import encode
from traceanalyzer.segment.variants import smallest_period
from traceanalyzer.trace import Trace


def finding_lines(names: list[str]) -> int:
    """Return how many lines of Python the block finder runs for a sequence, names read already."""
    tokens, vocabulary = encode(pl.Series(names))
    return lines_run(lambda: find_blocks(tokens, vocabulary))


def layers(count: int) -> list[str]:
    return [*ARCHITECTURES["llama"].names[:3], *(name for _ in range(count) for name in dense()), "argmax_kernel"]


def shuffled(count: int) -> list[str]:
    kernels = dense()
    return [random.Random(1).choice(kernels) for _ in range(count)] if count else kernels


@pytest.mark.parametrize("make", [layers, shuffled, lambda n: ["one_gemm"] * n, lambda n: ["flash_attn_fwd"] * n])
def test_twice_the_kernels_are_about_twice_the_work(make: Any) -> None:
    small, large = finding_lines(make(400)), finding_lines(make(1600))
    assert large < 4.8 * small + 2000


def test_a_step_of_different_kernels_ends_at_once() -> None:
    assert finding_lines([f"unique_kernel_{i}" for i in range(40)]) < 500


def test_identical_kernels_have_no_blocks_and_end_at_once() -> None:
    for name in ("some_kernel", "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT", "flash_fwd_splitkv_kernel"):
        tokens, vocabulary = encode(pl.Series([name] * 100_000))
        assert find_blocks(tokens, vocabulary).count == 0


def test_the_period_of_a_long_sequence_is_found_in_one_pass() -> None:
    class Counted:
        compared = 0

        def __init__(self, value: int) -> None:
            self.value = value

        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            Counted.compared += 1
            return isinstance(other, Counted) and self.value == other.value

    keys = [Counted(0)] * 3000 + [Counted(1)]
    assert smallest_period(keys) is None
    assert Counted.compared < 5 * len(keys)


def trace_of(names: list[str], steps: int) -> Trace:
    """Return a trace of equal steps, each with a marker and its own launches."""
    size = len(names)
    start = np.arange(steps * size) * 5_000 + np.repeat(np.arange(steps) * 100_000, size)
    kernels = pl.DataFrame(
        {
            "cat": ["kernel"] * len(start),
            "name": names * steps,
            "start_ns": start,
            "dur_ns": np.full(len(start), 4_000),
            "device": np.zeros(len(start), dtype=np.int32),
            "correlation": np.arange(len(start)) + 1,
        }
    )
    launches = kernels.with_columns(
        cat=pl.lit("cuda_runtime"), name=pl.lit("cudaLaunchKernel"), start_ns=pl.col("start_ns") - 2_000
    )
    marks = pl.DataFrame({"start_ns": start[::size] - 3_000, "dur_ns": np.full(steps, 1_000)}).with_columns(
        cat=pl.lit("user_annotation"), name=pl.lit("execute_context_0(0)_generation_4(4)")
    )
    events = pl.concat([kernels, launches.drop("device"), marks], how="diagonal").with_row_index("index")
    events = events.with_columns(pid=pl.lit("1"), tid=pl.lit("1"), stream=pl.lit(7))
    missing = [pl.lit(None).alias(name) for name in EVENT_SCHEMA if name not in events.columns]
    columns = [pl.col(name).cast(dtype) for name, dtype in EVENT_SCHEMA.items()]
    metadata = TraceMetadata(source=TraceSource("made.json", 0, "json", None, len(events)), base_ns=0)
    return Trace(metadata, events.with_columns(missing).select(columns).lazy())


@pytest.fixture
def solved(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Count the searches for blocks by the length of the step."""
    counts: Counter[int] = Counter()

    def counted(tokens: Any, *rest: Any) -> Any:
        counts[len(tokens)] += 1
        return find_blocks(tokens, *rest)

    monkeypatch.setattr(segmentation, "find_blocks", counted)
    return counts


def test_steps_of_the_same_kernels_are_solved_once(solved: Counter[int]) -> None:
    names = list(ARCHITECTURES["llama"].names)
    found = cut_up(trace_of(names, 50))
    assert found.steps["blocks"].to_list() == [32] * 50
    assert solved == {len(names): 1}


def test_the_end_of_a_tower_looks_at_a_few_blocks_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Watched(list[int]):
        read = 0

        def __iter__(self) -> Any:
            for value in super().__iter__():
                Watched.read += 1
                yield value

    tokens, vocabulary = encode(pl.Series(layers(200)))
    layout = StepLayout.of(tokens, vocabulary)
    starts, ends = Watched(range(3, 1000, 5)), Watched(range(8, 1000, 5))
    assert tail_end(layout, 900, starts, ends) == tail_end(layout, 900, list(starts)[-4:-1], list(ends)[-3:])
    Watched.read = 0
    tail_end(layout, 900, starts, ends)
    assert Watched.read < 10
