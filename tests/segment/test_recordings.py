"""Steps and kinds of recordings that were written by hand."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from tests.support.architectures import ADD, ARCHITECTURES, ARGMAX, DOWN, FA3, HEAD, OUT, QKV, SILU, UP, dense, step
from tests.support.hand_written_recording import Recording

DECODE = "execute_context_0(0)_generation_4(4)"
IDLE = "execute_context_0(0)_generation_0(0)"
PREFILL = "execute_context_1(900)_generation_0(0)"

_FUNCTOR = "void at::native::vectorized_elementwise_kernel<4, at::native::{}>(int)"
UNFUSED_NORM = (
    _FUNCTOR.format("pow_tensor_scalar_kernel_impl<float, float>"),
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float> > >()",
    _FUNCTOR.format("rsqrt_kernel_cuda(at::TensorIteratorBase&)"),
    _FUNCTOR.format("BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >"),
)


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


def test_a_last_step_like_a_whole_one_is_whole_though_others_go_on(tmp_path: Path) -> None:
    recording = Recording()
    short = llama()[3:-3]
    for marker, names in ((IDLE, short), (DECODE, llama()), (IDLE, short)):
        recording.step(names, marker)
    found = recording.segment(tmp_path).steps
    assert found.select("phase", "complete").rows() == [("dummy", True), ("decode", True), ("dummy", True)]


def test_the_residual_addition_ahead_of_an_unfused_norm_is_no_part_of_it(tmp_path: Path) -> None:
    recording = Recording()
    block = [*UNFUSED_NORM, QKV, FA3, OUT, ADD, *UNFUSED_NORM, UP, SILU, DOWN, ADD]
    recording.step(list(step([block] * 6, epilogue=(*UNFUSED_NORM, HEAD, ARGMAX)).names), DECODE)
    events = recording.segment(tmp_path).events
    assert events.filter(pl.col("block") == 3)["role"].to_list() == (
        f"{'norm ' * 4} qkv_proj attention o_proj other {'norm ' * 4} gate_up activation down other".split()
    )


def test_two_engines_that_launch_at_the_same_time_keep_their_steps(tmp_path: Path) -> None:
    recording = Recording()
    one, two = llama(4), llama(6)
    for _ in range(2):
        begin = recording.now
        for position in range(max(len(one), len(two))):
            for thread, names in ((1, one), (2, two)):
                if position < len(names):
                    recording.launch(names[position], thread=thread)
        recording.host(DECODE, begin - 2, recording.now, thread=1)
        recording.host(DECODE.replace("4", "7"), begin - 1, recording.now, thread=2)
        recording.now += 10
    found = recording.segment(tmp_path)
    assert found.steps.select("requests", "blocks", "events").rows() == [(4, 4, len(one)), (7, 6, len(two))] * 2


def test_a_thread_that_marks_but_launches_next_to_nothing_cuts_no_steps(tmp_path: Path) -> None:
    recording = Recording()
    for _ in range(2):
        begin = recording.now
        recording.launch("Memcpy HtoD (Pinned -> Device)", thread=2)
        recording.step(llama(), DECODE, thread=1)
        recording.host(DECODE, begin + 1, recording.now, thread=2)
    found = recording.segment(tmp_path)
    assert [blocks for blocks in found.steps["blocks"].to_list() if blocks] == [8, 8]
