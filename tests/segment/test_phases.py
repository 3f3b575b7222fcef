"""Phases of steps that no marker tells, from signs of several kinds; unknown where these are missing or contradict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from synthetic import TraceSpec, models
from synthetic import catalogue as k
from synthetic.spec import BlockSpec, KernelSpec, ModelSpec, StepSpec, decode_steps
from traceanalyzer.segment import Segmentation, segment
from traceanalyzer.segment import segmentation as cutting
from traceanalyzer.segment.host_signs import read_host_events
from traceanalyzer.segment.kernel_signs import kernel_signs, rows_by_grids
from traceanalyzer.segment.markers import Marker
from traceanalyzer.segment.steps import Mark, read_marks
from traceanalyzer.segment.tokens import encode
from traceanalyzer.trace import Trace, open_traces

SAME = "kernel_unified_attention_2d"
Opener = Callable[..., tuple[Trace, object]]


def model(layers: int, rows: int, attention: tuple[str, ...] = (SAME,), *, cached: bool = True) -> ModelSpec:
    """A dense model whose attention runs the kernels named, with tiles as libraries choose them for so many rows."""
    dense = models.llama_dense(layers, min(rows, 64))
    tile, longer = ((128, 128, 64), rows / 64) if rows > 64 else ((192, 16, 64), 1.0)
    products = {"qkv_proj", "o_proj", "gate_up", "down"}
    kernels: list[KernelSpec] = []
    for kernel in dense.layers[0].kernels:
        if kernel.role == "attention":
            kernels += [replace(kernel, name=name, dur_us=kernel.dur_us * longer) for name in attention]
        elif kernel.role in products:
            made = k.gemm(k.H100, kernel.role, 4096, 4096, rows, tile)
            kernels.append(replace(kernel, name=made.name, dur_us=kernel.dur_us * longer))
        elif kernel.role != "kv_write" or cached:
            kernels.append(kernel)
    return replace(dense, layers=(BlockSpec("dense", tuple(kernels)),) * layers)


def prompt(own: ModelSpec, tokens: int = 2048) -> StepSpec:
    return models.prefill(own, 1, tokens)


def segmented(open_spec: Opener, spec: TraceSpec) -> pl.DataFrame:
    cut: Segmentation = segment(open_spec(spec)[0])
    return cut.steps.filter("complete")


def test_an_eager_prefill_and_decode_steps_in_pieces_marked_by_frames_alone(open_spec: Opener) -> None:
    decode, first = model(8, 8), model(8, 2048)
    spec = TraceSpec(
        model=decode, steps=(prompt(first), *decode_steps(9, batch=8)), engine="vllm_python", launch="piecewise"
    )
    steps = segmented(open_spec, replace(spec, record_shapes=False))
    assert steps["phase"].to_list() == ["prefill", *["decode"] * 9]
    assert set(steps["phase_source"]) == {"inferred"}
    assert (steps["phase_confidence"] > 0.85).all()


@pytest.mark.parametrize("engine", ["vllm_python", "profiler_step", "none"])
@pytest.mark.parametrize("launch", ["graph", "piecewise", "eager"])
def test_split_attention_tells_decode_however_it_is_launched(open_spec: Opener, engine: str, launch: str) -> None:
    split = model(6, 4, ("kernel_unified_attention_3d", "reduce_segments"))
    spec = TraceSpec(model=split, steps=decode_steps(3, batch=4), engine=engine, launch=launch)  # type: ignore[arg-type]
    steps = segmented(open_spec, spec)
    assert steps["phase"].to_list() == ["decode"] * 3


def test_a_marker_is_believed_and_says_so(open_spec: Opener) -> None:
    steps = segmented(open_spec, models.llama_decode(layers=2, steps=2))
    assert steps["phase_source"].to_list() == ["marker"] * 2
    assert steps["phase_confidence"].null_count() == 2


def test_a_lone_pass_without_a_cache_or_a_sampler_is_neither_prefill_nor_decode(open_spec: Opener) -> None:
    plain = model(6, 512, cached=False)
    plain = replace(plain, epilogue=plain.epilogue[:1])
    spec = TraceSpec(model=plain, steps=(prompt(plain, 512),), engine="profiler_step", launch="eager")
    steps = segmented(open_spec, spec)
    assert steps["phase"].to_list() == ["unknown"]
    assert steps["phase_source"].to_list() == [None]


def test_an_encoder_run_again_and_again_is_not_decode(open_spec: Opener) -> None:
    plain = model(6, 8, cached=False)
    plain = replace(plain, epilogue=plain.epilogue[:1])
    spec = TraceSpec(model=plain, steps=decode_steps(10), engine="profiler_step", launch="graph")
    assert set(segmented(open_spec, spec)["phase"]) == {"unknown"}


def test_a_cache_alone_does_not_tell_how_many_tokens_there_are(open_spec: Opener) -> None:
    own = model(6, 64)
    bare = replace(own, layers=tuple(replace(layer, kernels=_without_tiles(layer.kernels)) for layer in own.layers))
    spec = TraceSpec(model=bare, steps=decode_steps(1), engine="profiler_step", launch="eager", record_shapes=False)
    assert segmented(open_spec, spec)["phase"].to_list() == ["unknown"]


def _without_tiles(kernels: tuple[KernelSpec, ...]) -> tuple[KernelSpec, ...]:
    return tuple(replace(kernel, name="marlin_gemm") if "nvjet" in kernel.name else kernel for kernel in kernels)


def hide_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden(trace: Trace) -> list[Mark]:
        return [replace(mark, marker=Marker("profiler_step")) for mark in read_marks(trace)]

    monkeypatch.setattr(cutting, "read_marks", hidden)


HIDDEN = {
    "gpu/gptoss20b_vllm_decode_mi300x": [("decode", 32, 32)],
    "gpu/qwen3_8b_sglang_decode_mi300x": [("decode", 32, 32)],
    "gpu/qwen3_8b_sglang_extend_mi300x": [("prefill", 15, 15360)],
    "others/dsr1_sglang_decode_mi300": [("decode", 16, 16)],
    "others/qwen3_30b_sglang_decode_mi300": [("decode", 16, 16)],
    "cpu/qwen3_24_vllm_compiled": [("prefill", 1, 32), *[("decode", 1, 1)] * 5],
    "cpu/qwen3_24_vllm_eager_onednn": [
        *(("prefill", 1, 16), ("mixed", 2, 17), ("decode", 2, 2), ("decode", 2, 2), ("decode", 1, 1))
    ],
}


@pytest.mark.parametrize("name", HIDDEN)
def test_recordings_with_hidden_markers_tell_their_phases(
    name: str, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_markers(monkeypatch)
    trace = open_traces(shared / "traces" / f"{name}.json.gz", cache=False).traces[0]
    steps = cutting.cut_up(trace).steps
    # What follows the last step of a CPU run (3 ops) has no phase.
    known = steps.filter(pl.col("complete"), pl.col("phase_source") == "inferred")
    assert list(known.select("phase", "requests", "tokens").iter_rows()) == HIDDEN[name]


def test_tokens_that_fill_a_servers_budget_may_be_prompts_or_not(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hide_markers(monkeypatch)
    trace = open_traces(shared / "traces/gpu/gptoss20b_vllm_mixed_mi300x.json.gz", cache=False).traces[0]
    step = cutting.cut_up(trace).steps.row(0, named=True)
    assert (step["phase"], step["requests"], step["tokens"]) == ("unknown", 46, 8192)


@pytest.mark.parametrize("name", ["bertsmall_mi300", "owlv2_mi300", "timesformer_mi300", "vit_mi300"])
def test_encoders_are_neither_prefill_nor_decode(name: str, shared: Path) -> None:
    steps = cutting.cut_up(open_traces(shared / "traces/others" / f"{name}.json.gz", cache=False).traces[0]).steps
    assert not set(steps["phase"]) & {"prefill", "decode", "mixed"}


FLASH = (
    "void flash::{kernel}<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, cutlass::bfloat16_t, "
    "Flash_kernel_traits<128, 64, 128, 4, cutlass::bfloat16_t> >, {flags}>(flash::Flash_fwd_params)"
)


@pytest.mark.parametrize(
    ("name", "few", "many", "causal"),
    [
        (FLASH.format(kernel="flash_fwd_kernel", flags="false, true, false, false, true"), 0, 0, 1),
        (FLASH.format(kernel="flash_fwd_kernel", flags="false, false, true, false, true"), 0, 0, 0),
        (FLASH.format(kernel="flash_fwd_splitkv_kernel", flags="true, false, false, false"), 0, 0, 1),
        (FLASH.format(kernel="flash_fwd_splitkv_kernel", flags="false, true, false, false"), 0, 0, 0),
        ("void flash::flash_fwd_splitkv_combine_kernel<T, 8, 1, true>(flash::Flash_fwd_params)", 1, 0, 0),
        ("void flashinfer::BatchPrefillWithPagedKVCacheKernel<P>(P)", 0, 0, 0),
        ("void flashinfer::BatchPrefillWithRaggedKVCacheKernel<P>(P)", 0, 1, 0),
        ("_selective_scan_update_kernel", 1, 0, 0),
        ("_chunk_scan_fwd_kernel", 0, 1, 0),
        ("void flash_attn_ext_vec<128, 1>(char const*)", 1, 0, 0),
        ("fmhaSm100fKernel_QkvE4m3OBfloat16H128PagedKvCausalP64VarSeqQ128Kv128PersistentContext", 0, 1, 0),
        ("fmhaSm100fKernel_QkvE4m3OBfloat16H128PagedKvDenseP32MultiCtasKvVarSeqQ16Kv128SwapsAbForGen", 1, 0, 0),
    ],
)
def test_what_an_attention_kernel_tells(name: str, few: float, many: float, causal: float) -> None:
    tokens, vocabulary = encode(pl.Series([name] * 3))
    signs = kernel_signs(tokens, tokens + 1000, vocabulary)
    assert (signs.few, signs.many, signs.causal) == (few, many, causal)


def test_rows_are_believed_where_two_kinds_of_kernels_agree() -> None:
    norm, activation = "void vllm::fused_add_rms_norm_kernel<T, 8>(T*)", "void vllm::act_and_mul_kernel<T>(T*)"
    assert rows_by_grids([(norm, "[512, 1, 1]"), (activation, "[512, 1, 1]")]) == 512
    assert rows_by_grids([(norm, "[512, 1, 1]"), (activation, "[64, 1, 1]")]) is None
    assert rows_by_grids([(norm, "[512, 1, 1]")]) is None


def test_damaged_shapes_tell_nothing(open_spec: Opener) -> None:
    trace = open_spec(models.llama_decode(layers=1, steps=1))[0]
    damaged = trace.events.with_columns(input_dims=pl.lit('[[2, "x"], [null]').cast(pl.Categorical))
    signs = read_host_events(Trace(trace.metadata, damaged, trace.store)).signs
    assert signs["tokens"].null_count() == signs.height


@pytest.mark.parametrize(
    ("decode", "phase"),
    [("paged_attention_ll4mi_QKV_mfma16_kernel", "mixed"), ("kernel_paged_attention_2d", "unknown")],
)
def test_both_kinds_of_attention_are_mixed_unless_one_is_launched_in_vain(
    open_spec: Opener, decode: str, phase: str
) -> None:
    both = model(4, 64, ("_fwd_kernel", decode))
    spec = TraceSpec(model=both, steps=(prompt(both, 512),), engine="profiler_step", launch="eager")
    assert segmented(open_spec, replace(spec, record_shapes=False))["phase"].to_list() == [phase]
