"""The truth agrees with the document, and with itself."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthetic import ROLES, SyntheticTrace, TraceSpec, generate
from synthetic.catalogue import H100, NORM, RESIDUAL_ADD
from synthetic.models import gptoss_20b_decode, llama_decode
from synthetic.random_specs import Limits, random_model
from synthetic.variety import (
    dense_first_moe,
    dual_batch_overlap,
    hybrid_mamba,
    qwen3_dense,
    separate_residual,
    sliding_by_duration,
    speculative,
)

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
READY: list[Callable[[], TraceSpec]] = [
    gptoss_20b_decode,
    llama_decode,
    qwen3_dense,
    dense_first_moe,
    hybrid_mamba,
    sliding_by_duration,
    speculative,
    dual_batch_overlap,
]


def ns(us: float) -> int:
    return round(us * 1000)


def device_events(trace: SyntheticTrace) -> dict[int, dict[str, Any]]:
    return {i: event for i, event in enumerate(trace.events) if event.get("cat") in DEVICE}


def assert_consistent(trace: SyntheticTrace) -> None:
    events, truth = device_events(trace), trace.truth
    assert Counter(event.event for event in truth.events) == Counter(list(events))
    for event in truth.events:
        written = events[event.event]
        assert (written["name"], written["cat"]) == (event.name, event.category)
        assert (ns(written["ts"]), ns(written["dur"])) == (event.start_ns, event.dur_ns)
        assert (written["tid"], written["args"]["correlation"]) == (event.stream, event.correlation)
        assert event.role in ROLES
    kernels = [event for event in truth.events if event.category == "kernel"]
    assert truth.kernel_sum_ns == sum(event.dur_ns for event in kernels) == sum(truth.kernel_ns.values())
    assert truth.busy_ns <= truth.kernel_sum_ns
    assert truth.kernels_without_step == sum(event.step is None for event in kernels)
    for step in truth.steps:
        assert_step_consistent(trace, step.index)


def assert_step_consistent(trace: SyntheticTrace, index: int) -> None:
    step = trace.truth.steps[index]
    sections = [step.prologue, *step.blocks, step.epilogue, step.outside]
    own = [event.event for event in trace.truth.events if event.step == index]
    assert Counter(own) == Counter(i for section in sections for i in section.events)
    assert step.kernels == sum(section.kernels for section in sections)
    assert step.kernel_sum_ns == sum(section.kernel_sum_ns for section in sections)
    assert step.busy_ns <= min(step.span_ns, step.kernel_sum_ns)
    for block in step.blocks:
        assert sum(block.roles.values()) == block.kernel_sum_ns
        assert block.busy_ns <= block.kernel_sum_ns


def assert_blocks_follow_each_other(trace: SyntheticTrace) -> None:
    """Every event of a block starts before the next block does."""
    starts = {event.event: event.start_ns for event in trace.truth.events}
    for step in trace.truth.steps:
        for block, following in pairwise(step.blocks):
            assert block.start_ns == min(starts[i] for i in block.events)
            assert max(starts[i] for i in block.events) < following.start_ns


def assert_launched_before_run(trace: SyntheticTrace) -> None:
    """A device event has a launch, which lies in its step's window, unless the profile began after it."""
    launches = {e["args"]["correlation"]: e for e in trace.events if e.get("cat") == "cuda_runtime"}
    for event in trace.truth.events:
        if event.step is None:
            assert event.correlation not in launches
        else:
            assert ns(launches[event.correlation]["ts"]) < event.start_ns


def assert_streams_run_one_at_a_time(trace: SyntheticTrace) -> None:
    by_stream: dict[int, list[tuple[int, int]]] = {}
    for event in trace.truth.events:
        by_stream.setdefault(event.stream, []).append((event.start_ns, event.start_ns + event.dur_ns))
    for intervals in by_stream.values():
        intervals.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(intervals))


@pytest.mark.parametrize("ready", READY, ids=lambda ready: ready.__name__)
def test_ready_specifications_are_consistent(ready: Callable[[], TraceSpec]) -> None:
    trace = generate(ready())
    assert_consistent(trace)
    assert_launched_before_run(trace)
    assert_streams_run_one_at_a_time(trace)
    assert all(step.complete and step.blocks for step in trace.truth.steps)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_random_traces_are_consistent(seed: int) -> None:
    spec = random_model(random.Random(seed), Limits(max_layers=40, max_steps=3))
    trace = generate(spec, seed)
    assert_consistent(trace)
    assert_blocks_follow_each_other(trace)
    assert_launched_before_run(trace)
    if not spec.overlap_us:
        assert_streams_run_one_at_a_time(trace)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_random_traces_without_troubles_have_every_block_whole(seed: int) -> None:
    spec = random_model(random.Random(seed), Limits(max_layers=24, troubles=False))
    truth = generate(spec, seed).truth
    assert truth.kernels_without_step == 0
    for step in truth.steps:
        assert step.complete
        assert [block.index for block in step.blocks] == list(range(len(spec.model.layers)))
        assert [len(block.events) for block in step.blocks] == [len(layer.kernels) for layer in spec.model.layers]


def test_random_models_cover_the_asked_range() -> None:
    specs = [random_model(random.Random(seed)) for seed in range(300)]
    layers = [len(spec.model.layers) for spec in specs]
    assert min(layers) == 1
    assert max(layers) > 110
    assert {spec.engine for spec in specs} == set(Limits().engines)
    assert {spec.launch for spec in specs} == set(Limits().launches)
    for trouble in ("dropped", "foreign", "leading_kernels", "gpu_lag_us", "overlap_us", "jitter"):
        assert {bool(getattr(spec, trouble)) for spec in specs} == {False, True}
    assert any(kernel.stream for spec in specs for layer in spec.model.layers for kernel in layer.kernels)


def test_gptoss_blocks_alternate_and_the_first_norm_makes_a_variant() -> None:
    step = generate(gptoss_20b_decode(steps=1)).truth.steps[0]
    assert [block.kind for block in step.blocks] == ["sliding", "full"] * 12
    assert [block.variant for block in step.blocks] == [0, 1, *[2, 1] * 11]
    assert step.period_blocks == 2


def test_top_kernel_of_gptoss_is_the_gate_up_product_of_the_given_tile() -> None:
    sums = generate(gptoss_20b_decode(steps=1, tile="32x256x128x1")).truth.kernel_ns
    assert max(sums, key=sums.__getitem__) == "_matmul_ogs_NNT_bf16xbf16xmxfp4_32x256x128x1_swiglu"


def test_narrower_tiles_are_faster_in_gptoss() -> None:
    wide, narrow = (
        generate(gptoss_20b_decode(steps=1, tile=tile)).truth.kernel_sum_ns for tile in ("32x256x128x1", "32x32x128x1")
    )
    assert narrow < wide / 2


def test_side_streams_overlap_the_main_path() -> None:
    step = generate(dense_first_moe(steps=1)).truth.steps[0]
    dense, moe = step.blocks[0], step.blocks[-1]
    assert dense.busy_ns == dense.kernel_sum_ns
    assert moe.busy_ns < moe.kernel_sum_ns
    assert {block.kind for block in step.blocks[:3]} == {"dense"}
    assert {block.kind for block in step.blocks[3:]} == {"moe"}
    assert step.period_blocks is None


def test_kinds_told_apart_by_duration_alone_share_their_names() -> None:
    trace = generate(sliding_by_duration(steps=1))
    names = {event.event: event.name for event in trace.truth.events}
    blocks = trace.truth.steps[0].blocks[1:]
    assert len({tuple(names[i] for i in block.events) for block in blocks}) == 1
    sliding, full = (
        [block.roles["attention"] for block in blocks if block.kind == kind] for kind in ("sliding", "full")
    )
    assert max(sliding) < min(full)


def test_speculative_steps_hold_draft_blocks_after_the_verified_ones() -> None:
    step = generate(speculative(layers=6, drafts=3, steps=1)).truth.steps[0]
    assert [block.run for block in step.blocks] == ["verify"] * 6 + ["draft"] * 3
    assert (step.requests, step.tokens) == (4, 16)


def test_dual_batches_run_each_layer_twice_at_once() -> None:
    step = generate(dual_batch_overlap(layers=4, steps=1)).truth.steps[0]
    assert [(block.layer, block.microbatch) for block in step.blocks] == [(i, j) for i in range(4) for j in (0, 1)]
    assert step.busy_ns < 0.7 * step.kernel_sum_ns


def test_residual_adds_of_their_own_end_both_halves_of_a_block() -> None:
    spec = llama_decode(layers=3, steps=1)
    fused = generate(spec).truth.steps[0]
    trace = generate(replace(spec, model=separate_residual(spec.model, H100)))
    names = {event.event: event.name for event in trace.truth.events}
    step = trace.truth.steps[0]
    assert {block.variant for block in step.blocks} == {0}
    assert step.kernels == fused.kernels + 2 * 3
    for block in step.blocks:
        inside = [names[i] for i in block.events]
        assert (inside[0], inside[-1], inside.count(RESIDUAL_ADD)) == (NORM, RESIDUAL_ADD, 2)
    assert names[step.epilogue.events[0]] == NORM
