"""Blocks are compared over steps that are alike: of one depth, one order of variants, one size of batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from synthetic import BlockSpec, ModelSpec, StepSpec, TraceSpec, Truth, decode_steps, models
from traceanalyzer.segment import segment
from traceanalyzer.segment.outliers import Outlier, find_outliers, too_few
from traceanalyzer.trace import Trace

Open = Callable[..., tuple[Trace, Truth]]


def slower(model: ModelSpec, times: float, *only: int) -> ModelSpec:
    """The model with every kernel of some blocks (of all, if none is named) taking so many times as long."""
    layers = list(model.layers)
    for number in only or range(len(layers)):
        kernels = tuple(replace(kernel, dur_us=kernel.dur_us * times) for kernel in layers[number].kernels)
        layers[number] = BlockSpec(layers[number].kind, kernels)
    return replace(model, layers=tuple(layers))


def steps_of(model: ModelSpec, count: int, batch: int) -> tuple[StepSpec, ...]:
    return tuple(replace(step, model=model) for step in decode_steps(count, batch=batch))


def outliers(open_spec: Open, *steps: StepSpec) -> list[Outlier]:
    trace, _ = open_spec(TraceSpec(model=models.llama_dense(8), steps=steps))
    return find_outliers(segment(trace))


def test_steps_of_another_depth_make_no_block_unusual(open_spec: Open) -> None:
    deep, shallow = models.llama_dense(16), slower(models.llama_dense(6), 2.0)
    assert outliers(open_spec, *steps_of(deep, 3, 8), *steps_of(shallow, 7, 8)) == []


def test_a_slow_block_of_one_depth_is_told_with_its_depth(open_spec: Open) -> None:
    deep, shallow = models.llama_dense(16), slower(models.llama_dense(6), 1.5, 4)
    (found,) = outliers(open_spec, *steps_of(deep, 9, 8), *steps_of(shallow, 4, 8))
    assert (found.block, found.blocks, found.steps) == (4, 6, 4)
    assert found.change == pytest.approx(0.5, abs=0.02)


def test_a_block_that_is_slow_at_one_batch_size_only_is_found(open_spec: Open) -> None:
    plain, slow = models.llama_dense(8), slower(models.llama_dense(8), 1.5, 5)
    (found,) = outliers(open_spec, *steps_of(plain, 9, 1), *steps_of(slow, 4, 64))
    assert (found.block, found.steps) == (5, 4)


def test_a_lone_odd_step_is_not_compared_where_others_have_enough(open_spec: Open) -> None:
    plain, slow = models.llama_dense(8), slower(models.llama_dense(8), 1.5, 5)
    assert outliers(open_spec, *steps_of(plain, 6, 1), *steps_of(slow, 1, 64)) == []
    (alone,) = outliers(open_spec, *steps_of(slow, 2, 64))
    assert alone.steps == 2


def test_kinds_with_too_few_blocks_are_said(open_spec: Open) -> None:
    trace, _ = open_spec(TraceSpec(model=models.llama_dense(4), steps=decode_steps(3, batch=4)))
    (few,) = too_few(segment(trace))
    # The norm of the first block is another kernel, so that three blocks are left.
    assert (few.device, few.phase, few.blocks, few.kind, few.peers) == (0, "decode", 4, "dense", 3)
    enough, _ = open_spec(TraceSpec(model=models.llama_dense(5), steps=decode_steps(3, batch=4)))
    assert too_few(segment(enough)) == []
