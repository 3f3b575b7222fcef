"""Times of ops and steps: what never gets slower, and where bounds switch."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.deployments import deployment
from traceanalyzer.commands.estimate.compute import switches
from traceanalyzer.commands.estimate.deployment import Chunk, Deployment, padded
from traceanalyzer.commands.estimate.efficiencies import (
    ROOFLINE,
    Efficiencies,
    EstimateError,
    Share,
    default_efficiencies,
)
from traceanalyzer.commands.estimate.step_time import StepTimes, imbalance, round_time, time_op
from traceanalyzer.hardware import HardwareError, roofs
from traceanalyzer.model import ExpertRouting, Parallel, gemm

MODELS = ("llama-3.1-8b", "gpt-oss-20b", "qwen3-8b")
GPUS = ("MI300X", "H100 SXM5", "L4", "Radeon 8060S")
steps = st.tuples(st.integers(1, 300), st.integers(2, 4000), st.integers(0, 3000))


def time_of(found: Deployment, step: tuple[int, int, int]) -> float:
    decodes, context, prompt = step
    return round_time(found, decodes, context, [Chunk(prompt)] if prompt else []).total_ns


@settings(max_examples=25, deadline=None)
@given(model=st.sampled_from(MODELS), gpu=st.sampled_from(GPUS), step=steps, factor=st.floats(1, 8))
def test_more_bandwidth_or_arithmetic_never_makes_a_step_slower(model, gpu, step, factor) -> None:
    own = deployment(model, gpu)
    faster = own.gpu.bandwidth_gbps * factor
    peaks = {dtype: peak * factor for dtype, peak in own.gpu.peak_tflops.items()}
    for changed in (
        msgspec.structs.replace(own.gpu, bandwidth_gbps=faster),
        msgspec.structs.replace(own.gpu, peak_tflops=peaks),
    ):
        same_shares = replace(own, gpu=changed)
        own_shares = replace(same_shares, efficiencies=default_efficiencies(changed))
        for other in (same_shares, own_shares):
            assert time_of(other, step) <= time_of(own, step) * (1 + 1e-9)


@settings(max_examples=25, deadline=None)
@given(gpu=st.sampled_from(GPUS), step=steps, layers=st.integers(1, 31))
def test_a_smaller_model_is_never_slower(gpu, step, layers) -> None:
    own = deployment("llama-3.1-8b", gpu)
    shallow = replace(own.architecture, layers=own.architecture.layers[:layers])
    narrow = replace(own.architecture, layers=tuple(replace(x, ffn_size=7168) for x in own.architecture.layers))
    for smaller in (shallow, narrow):
        assert time_of(replace(own, architecture=smaller), step) <= time_of(own, step) * (1 + 1e-9)


@settings(max_examples=25, deadline=None)
@given(model=st.sampled_from(MODELS), step=steps, more=st.integers(1, 200))
def test_more_sequences_a_longer_context_or_a_longer_prompt_is_never_faster(model, step, more) -> None:
    own = deployment(model, "H100 SXM5")
    decodes, context, prompt = step
    for larger in ((decodes + more, context, prompt), (decodes, context + more, prompt)):
        assert time_of(own, larger) >= time_of(own, step) * (1 - 1e-9)
    if prompt:
        assert time_of(own, (decodes, context, prompt + more)) >= time_of(own, step) * (1 - 1e-9)


@settings(max_examples=50, deadline=None)
@given(m=st.integers(1, 4096), n=st.sampled_from((64, 1024, 8192)), k=st.sampled_from((64, 1024, 8192)))
def test_the_bound_switches_where_intensity_crosses_the_ridge(m, n, k) -> None:
    own = deployment("llama-3.1-8b", "H100 SXM5", efficiencies=ROOFLINE)
    op, ridge = gemm(m, n, k), roofs(own.gpu, "bf16").ridge
    bound = time_op(op, 1, own).bound
    assert op.intensity is not None
    assert bound == ("compute" if op.intensity > ridge else "memory")


def test_a_growing_batch_moves_matrix_products_from_memory_to_arithmetic() -> None:
    found = {one.op: one for one in switches(deployment("llama-3.1-8b", "H100 SXM5"), 500)}
    assert {"qkv_proj", "o_proj", "gate_up", "down", "lm_head"} <= set(found)
    assert "attention" not in found
    assert all(one.from_ == "memory" and 64 < one.batch <= 1024 for one in found.values())


def test_experts_need_a_larger_batch_than_dense_products() -> None:
    found = {(one.op, one.kind): one.batch for one in switches(deployment("gpt-oss-120b", "H100 SXM5"), 500)}
    assert found["moe_gate_up", "full"] > found["qkv_proj", "full"]


def test_graph_padding_makes_three_sequences_as_slow_as_four() -> None:
    assert [padded(n) for n in (1, 2, 3, 5, 8, 9, 257, 513)] == [1, 2, 4, 8, 8, 16, 272, 513]
    own = deployment("gpt-oss-20b", "Radeon 8060S")
    three, four = (round_time(own, n, 400).total_ns for n in (3, 4))
    assert three == pytest.approx(four, rel=0.01)
    bare = replace(own, graphs=False)
    assert round_time(bare, 3, 400).total_ns < 0.95 * round_time(bare, 4, 400).total_ns


def test_remembered_times_are_those_of_single_steps() -> None:
    own = deployment("gpt-oss-20b", "MI300X", parallel=Parallel())
    times = StepTimes(own)
    for decodes, context in ((1, 57.0), (32, 1721.4), (48, 3000.0)):
        exact = round_time(own, decodes, context).total_ns
        assert times.round(decodes, context).total_ns == pytest.approx(exact, rel=0.01)
    prompt = (Chunk(64, 16),)
    assert times.round(8, 500.0, prompt).total_ns == pytest.approx(round_time(own, 8, 500, prompt).total_ns, rel=0.01)


def test_skewed_routing_touches_fewer_experts_and_is_faster() -> None:
    own = deployment("gpt-oss-20b", "MI300X")
    uniform = replace(own, routing=ExpertRouting())
    assert round_time(own, 16, 500).total_ns < round_time(uniform, 16, 500).total_ns


def test_a_type_without_a_peak_is_refused_and_a_missing_vector_peak_is_not() -> None:
    own = deployment("llama-3.1-8b", "H100 SXM5")
    lacking = msgspec.structs.replace(own.gpu, peak_tflops={"bf16": 989.4})
    assert round_time(replace(own, gpu=lacking), 1, 100).total_ns > 0
    with pytest.raises(HardwareError, match="no peak of"):
        round_time(replace(own, gpu=msgspec.structs.replace(own.gpu, peak_tflops={"fp32": 67.0})), 1, 100)


def test_efficiencies_outside_of_the_possible_are_refused() -> None:
    for share in (0.0, 1.01, float("nan")):
        with pytest.raises(EstimateError):
            Efficiencies({"dense": Share(share, 0.5)}, 0.0, 0.0)
    with pytest.raises(EstimateError):
        Efficiencies({}, -1.0, 0.0)


def test_expert_ranks_are_uneven_by_chance_and_less_so_with_more_tokens() -> None:
    spread = deployment("gpt-oss-120b", "H100 SXM5", parallel=Parallel(dp=4, ep=4))
    assert imbalance(spread, 1) > imbalance(spread, 32) > 1
    assert imbalance(replace(spread, expert_imbalance=1.5), 32) == 1.5
    assert imbalance(replace(spread, parallel=Parallel()), 32) == 1
    with pytest.raises(EstimateError):
        replace(spread, expert_imbalance=0.5)
