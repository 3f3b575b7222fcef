"""Each field of a specification has the effect that it promises."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from synthetic import (
    DroppedKernel,
    ForeignKernel,
    Hole,
    KernelSpec,
    StepSpec,
    SyntheticTrace,
    TraceSpec,
    decode_steps,
    generate,
)
from synthetic.models import gptoss_20b_decode, llama_dense, prefill

FOREIGN = KernelSpec("fill_kernel", "other", 2.0)


def llama(**changes: Any) -> TraceSpec:
    spec = TraceSpec(model=llama_dense(layers=4, batch=2), steps=decode_steps(3, batch=2))
    return replace(spec, **changes)


def events(trace: SyntheticTrace, category: str) -> list[dict[str, Any]]:
    return [event for event in trace.events if event.get("cat") == category]


def names(trace: SyntheticTrace, category: str) -> list[str]:
    return [event["name"] for event in events(trace, category)]


@pytest.mark.parametrize(
    ("engine", "label"),
    [
        ("vllm", "execute_context_1(16)_generation_2(2)"),
        ("vllm_detailed", "execute_18_context_1(sq16sk64sqsq256sqsk1024)_generation_2(sq2sk200sqsq2sqsk200)"),
        ("vllm_old", "execute_new_1_cached_2"),
        ("sglang", "step[MIXED bs=3 toks=18]"),
        ("profiler_step", "ProfilerStep#3"),
    ],
)
def test_annotations_follow_the_engine(engine: str, label: str) -> None:
    step = StepSpec(1, 16, 2, context_kv_tokens=64, generation_kv_tokens=200)
    trace = generate(llama(engine=engine, steps=(step,)))
    assert names(trace, "user_annotation") == [label]
    assert (trace.truth.steps[0].label, trace.truth.steps[0].phase) == (label, "mixed")


def test_decode_and_prefill_labels_of_sglang() -> None:
    trace = generate(llama(engine="sglang", steps=(StepSpec(3, 96), *decode_steps(1, batch=2))))
    assert names(trace, "user_annotation") == ["step[EXTEND bs=3 toks=96]", "step[DECODE bs=2]"]


def test_python_markers_include_calls_without_gpu_work() -> None:
    trace = generate(llama(engine="vllm_python", idle_calls=2, runner_line=1289))
    calls = names(trace, "python_function").count("vllm/v1/worker/gpu_model_runner.py(1289): execute_model")
    assert calls == 3 + 2
    assert names(trace, "user_annotation") == []


def test_no_engine_writes_no_marker() -> None:
    trace = generate(llama(engine="none"))
    assert names(trace, "user_annotation") == names(trace, "gpu_user_annotation") == []
    assert [step.label for step in trace.truth.steps] == [None] * 3


@pytest.mark.parametrize(("launch", "graphs"), [("graph", 1), ("piecewise", 5), ("eager", 0)])
def test_graph_launches_of_a_step_by_mode(launch: str, graphs: int) -> None:
    trace = generate(llama(launch=launch))
    assert names(trace, "cuda_runtime").count("cudaGraphLaunch") == trace.truth.graph_launches == 3 * graphs
    in_graph = [event for event in events(trace, "kernel") if "External id" not in event["args"]]
    assert bool(in_graph) == bool(graphs)


def test_a_step_can_run_another_model_in_another_mode() -> None:
    big = llama_dense(layers=4, batch=128)
    truth = generate(llama(steps=(prefill(big, 1, 128), *decode_steps(1, batch=2)))).truth
    first, second = truth.steps
    assert (first.phase, second.phase) == ("prefill", "decode")
    assert first.blocks[0].kernel_sum_ns > second.blocks[0].kernel_sum_ns
    assert truth.graph_launches == 1


def test_dummy_steps_run_or_not() -> None:
    trace = generate(llama(steps=(*decode_steps(1), StepSpec(), StepSpec(runs=False))))
    one, dummy, empty = trace.truth.steps
    assert one.phase == "decode"
    assert dummy.phase == empty.phase == "dummy"
    assert (dummy.kernels, empty.kernels) == (one.kernels, 0)
    assert names(trace, "user_annotation")[-1] == "execute_context_0(0)_generation_0(0)"
    assert trace.truth.complete_steps == (one,)


@pytest.mark.parametrize(("vendor", "stream"), [("cuda", 7), ("rocm", 0)])
def test_default_stream_of_the_vendor(vendor: str, stream: int) -> None:
    spec = replace(gptoss_20b_decode(vendor, steps=1), device_id=2)
    trace = generate(spec)
    assert {(event["pid"], event["tid"]) for event in events(trace, "kernel")} == {(2, stream)}
    assert [device["id"] for device in trace.document["deviceProperties"]] == [0, 1, 2]


def test_rank_and_world_size() -> None:
    info = generate(llama(rank=3, world_size=8)).document["distributedInfo"]
    assert (info["rank"], info["world_size"], info["pg_config"][0]["ranks"]) == (3, 8, list(range(8)))


def test_hopping_spreads_the_main_path_over_streams() -> None:
    blocks = {event.stream for event in generate(llama(hop_streams=3)).truth.events if event.section == "block"}
    assert len(blocks) == 3


def test_jitter_varies_durations_and_its_absence_does_not() -> None:
    def attention(spec: TraceSpec) -> set[int]:
        return {event.dur_ns for event in generate(spec).truth.events if event.role == "attention"}

    assert len(attention(llama())) == 1
    assert len(attention(llama(jitter=0.1))) > 5


def test_kernels_may_overlap_on_a_stream() -> None:
    plain, overlapping = generate(llama()).truth, generate(llama(overlap_us=1.5)).truth
    assert plain.busy_ns == plain.kernel_sum_ns == overlapping.kernel_sum_ns
    assert overlapping.busy_ns < overlapping.kernel_sum_ns


def test_a_lagging_gpu_starts_after_later_markers() -> None:
    trace = generate(llama(gpu_lag_us=30_000.0, steps=decode_steps(6)))
    markers = events(trace, "user_annotation")
    begin = min(event.start_ns for event in trace.truth.events if event.step == 0)
    assert begin > round(markers[2]["ts"] * 1000)


def test_gaps_and_holes_stretch_the_step_but_not_its_sum() -> None:
    plain = generate(llama()).truth.steps[0]
    gaps = generate(llama(gap_us=2.0)).truth.steps[0]
    hole = generate(llama(holes=(Hole(0, 2, 3, 300.0),))).truth.steps[0]
    assert plain.kernel_sum_ns == gaps.kernel_sum_ns == hole.kernel_sum_ns
    assert gaps.span_ns > plain.span_ns + 80_000
    assert 299_000 < hole.span_ns - plain.span_ns < 301_000


def test_leading_kernels_have_neither_step_nor_launch() -> None:
    truth = generate(llama(leading_kernels=7)).truth
    stray = [event for event in truth.events if event.step is None]
    assert len(stray) == 7
    assert max(event.start_ns for event in stray) < min(e.start_ns for e in truth.events if e.step == 0)
    assert 0 < truth.kernels_without_step <= 7


def test_a_cut_step_keeps_its_launches_and_loses_its_end() -> None:
    whole, cut = generate(llama()), generate(llama(cut_last_step=12))
    assert names(cut, "cuda_runtime") == names(whole, "cuda_runtime")
    assert [step.complete for step in cut.truth.steps] == [True, True, False]
    assert sum(event.step == 2 for event in cut.truth.events) == 12
    assert len(cut.truth.steps[2].blocks) < 4


def test_a_dropped_kernel_is_missing_but_makes_no_variant() -> None:
    whole = generate(llama()).truth.steps[1]
    lossy = generate(llama(dropped=(DroppedKernel(1, 2, 4),))).truth.steps[1]
    assert lossy.kernels == whole.kernels - 1
    assert len(lossy.blocks[2].events) == len(whole.blocks[2].events) - 1
    assert [block.variant for block in lossy.blocks] == [block.variant for block in whole.blocks]
    assert lossy.complete


def test_a_foreign_kernel_runs_within_a_block_and_belongs_to_none() -> None:
    truth = generate(llama(foreign=(ForeignKernel(1, 2, FOREIGN, stream=33),))).truth
    step = truth.steps[1]
    [foreign] = [event for event in truth.events if event.name == "fill_kernel"]
    assert step.outside.events == (foreign.event,)
    assert (foreign.stream, foreign.block, foreign.step) == (33, None, 1)
    assert step.blocks[2].start_ns < foreign.start_ns < step.blocks[3].start_ns


def test_the_first_block_has_other_names() -> None:
    step = generate(llama()).truth.steps[0]
    assert step.blocks[0].first_kernel != step.blocks[1].first_kernel == step.blocks[2].first_kernel


def test_only_the_input_norm_of_the_first_block_is_another_one() -> None:
    truth = generate(llama()).truth
    name_of = {event.event: event.name for event in truth.events}
    first, second = ([name_of[event] for event in block.events] for block in truth.steps[0].blocks[:2])
    assert second.count(second[0]) == 2
    assert [a == b for a, b in zip(first, second, strict=True)] == [False] + [True] * (len(second) - 1)


def test_kernels_that_the_first_block_lacks() -> None:
    spec = llama()
    rope = next(kernel.name for kernel in spec.model.layers[0].kernels if kernel.role == "rope")
    model = replace(spec.model, first_block_lacks=frozenset({rope}))
    first, second = generate(replace(spec, model=model)).truth.steps[0].blocks[:2]
    assert "rope" not in first.roles
    assert "rope" in second.roles


def test_tensor_parallel_blocks_communicate_twice() -> None:
    trace = generate(llama(model=llama_dense(layers=4, batch=2, tensor_parallel=2)))
    block = trace.truth.steps[0].blocks[1]
    roles = {event.event: event.role for event in trace.truth.events}
    assert sum(roles[i] == "communication" for i in block.events) == 2


def test_module_events_enclose_the_launches_of_their_layer() -> None:
    trace = generate(llama(launch="eager", module_events=True))
    layers = [event for event in events(trace, "python_function") if "DecoderLayer_" in event["name"]]
    assert [event["name"] for event in layers[:4]] == [f"nn.Module: LlamaDecoderLayer_{i}" for i in range(4)]
    launches = {event["args"]["correlation"]: event["ts"] for event in events(trace, "cuda_runtime")}
    for event in trace.truth.events:
        if event.block is not None and event.step is not None:
            layer = layers[4 * event.step + event.block]
            assert layer["ts"] < launches[event.correlation] < layer["ts"] + layer["dur"]


def test_graph_replays_show_no_modules() -> None:
    trace = generate(llama(module_events=True))
    assert not [name for name in names(trace, "python_function") if name.startswith("nn.Module")]


def test_stacks_are_optional() -> None:
    assert names(generate(llama()), "python_function") == []
    assert len(names(generate(llama(with_stack=True)), "python_function")) > 6


def test_shapes_are_optional() -> None:
    assert "Input Dims" in events(generate(llama()), "cpu_op")[0]["args"]
    assert "Input Dims" not in events(generate(llama(record_shapes=False)), "cpu_op")[0]["args"]


def test_gpu_annotations_repeat_per_stream() -> None:
    assert len(names(generate(llama(hop_streams=2)), "gpu_user_annotation")) == 3 * 2
    assert names(generate(llama(gpu_annotations=False)), "gpu_user_annotation") == []


def test_thread_names_are_optional() -> None:
    assert [e["ph"] for e in generate(llama(thread_names=False)).events].count("M") == 1


def test_the_file_is_sorted_by_time_only_on_request() -> None:
    def starts(spec: TraceSpec) -> list[float]:
        return [event["ts"] for event in events(generate(spec), "kernel")]

    assert starts(llama()) != sorted(starts(llama()))
    assert starts(llama(shuffled=False)) == sorted(starts(llama(shuffled=False)))


def test_metadata_is_written_into_the_document() -> None:
    assert generate(llama(metadata=(("vllm_version", "0.26.0"),))).document["vllm_version"] == "0.26.0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dropped": (DroppedKernel(0, 1, 0),)}, "first kernel of a block"),
        ({"dropped": (DroppedKernel(0, 9, 1),)}, "step 0 has no block 9"),
        ({"foreign": (ForeignKernel(7, 0, FOREIGN),)}, "step 7 has no block 0"),
        ({"foreign": (ForeignKernel(0, 9, FOREIGN),)}, "step 0 has no block 9"),
        ({"holes": (Hole(0, 9, 0),)}, "step 0 has no block 9"),
        ({"microbatches": 2, "hop_streams": 2}, "do not hop"),
        ({"microbatches": 0}, "count from 1"),
        ({"steps": (), "cut_last_step": 3}, "no step to cut"),
        ({"engine": "vlm"}, "engine 'vlm' is none of vllm, "),
        ({"vendor": "nvidia"}, "vendor 'nvidia' is none of cuda, rocm"),
        ({"launch": "graphs"}, "launch 'graphs' is none of "),
        ({"steps": (StepSpec(1, 16, launch="lazy"),)}, "launch 'lazy' is none of "),
        ({"foreign": (ForeignKernel(0, 0, replace(FOREIGN, role="gateup")),)}, "role 'gateup' is none of "),
    ],
)
def test_specifications_that_contradict_themselves_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        generate(llama(**change))
