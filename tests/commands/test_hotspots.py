from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from synthetic.models import gptoss_20b_decode, llama_decode
from synthetic.variety import dense_first_moe
from traceanalyzer.commands.hotspots.compute import hotspots
from traceanalyzer.commands.ingest.compute import timelines
from traceanalyzer.trace import open_traces

SPEC = replace(gptoss_20b_decode("rocm", batch=4, steps=3), jitter=0.1, leading_kernels=20, cut_last_step=40)


def test_kernel_times_equal_an_independent_count(open_spec) -> None:
    trace, truth = open_spec(SPEC)
    rows = hotspots(trace).rows
    assert dict(rows.select("name", "total_ns").iter_rows()) == dict(truth.kernel_ns)
    counts = Counter(event.name for event in truth.events if event.category == "kernel")
    assert dict(rows.select("name", "count").iter_rows()) == counts


def test_every_kernel_is_in_exactly_one_row_of_each_grouping(open_spec) -> None:
    trace, truth = open_spec(SPEC)
    for by in ("kernel", "role", "family"):
        found = hotspots(trace, by=by)
        assert found.rows["total_ns"].sum() == found.total_ns == truth.kernel_sum_ns
        assert found.rows["name"].n_unique() == found.rows.height


def test_roles_equal_the_truth_over_whole_steps(open_spec) -> None:
    trace, truth = open_spec(llama_decode(layers=6, batch=2, steps=3))
    want: dict[str, int] = defaultdict(int)
    for event in truth.events:
        if event.category == "kernel" and event.step is not None:
            want[event.role] += event.dur_ns
    rows = hotspots(trace, by="role", phase="decode").rows
    assert dict(rows.select("name", "total_ns").iter_rows()) == want


def test_time_per_step_is_the_mean_over_complete_steps_only(open_spec) -> None:
    trace, truth = open_spec(SPEC)
    found = hotspots(trace)
    complete = truth.complete_steps
    assert found.steps == len(complete) == 2
    per_step = sum(step.kernel_sum_ns for step in complete) / len(complete)
    assert found.rows["per_step_ns"].sum() == pytest.approx(per_step)


def test_a_phase_holds_only_its_complete_steps(open_spec) -> None:
    trace, truth = open_spec(SPEC)
    found = hotspots(trace, phase="decode")
    assert found.total_ns == sum(step.kernel_sum_ns for step in truth.complete_steps)
    assert hotspots(trace, phase="prefill").rows.is_empty()


def test_a_single_step_can_be_looked_at(open_spec) -> None:
    trace, truth = open_spec(llama_decode(layers=3, steps=3))
    assert hotspots(trace, step=1).total_ns == truth.steps[1].kernel_sum_ns


@pytest.mark.parametrize("wrong", [{"by": "colour"}, {"phase": "noon"}, {"step": 99}])
def test_what_does_not_exist_is_refused(open_spec, wrong) -> None:
    trace, _ = open_spec(llama_decode(layers=2, steps=2))
    with pytest.raises(ValueError, match=next(iter(wrong))):
        hotspots(trace, **wrong)


def test_warps_come_from_the_events_block_and_the_gpus_warp_size(open_spec) -> None:
    trace, _ = open_spec(llama_decode(layers=2, steps=1))
    blocks: dict[str, set[str | None]] = defaultdict(set)
    for name, block in trace.device_events.filter("is_kernel").select("name", "thread_block").iter_rows():
        blocks[name].add(block)
    found = dict(hotspots(trace).rows.select("name", "num_warps").iter_rows())
    for name, (block, *others) in blocks.items():
        threads = 0 if block is None or others else int(block.strip("[]").split(",")[0])
        assert found[name] == (threads // 32 or None)
    assert any(found.values())


def test_the_summary_counts_what_the_truth_counts(open_spec) -> None:
    trace, truth = open_spec(SPEC)
    (timeline,) = timelines(trace)
    assert timeline.kernel_sum_ns == truth.kernel_sum_ns
    assert timeline.busy_ns == truth.busy_ns
    assert timeline.graph_launches == truth.graph_launches
    assert timeline.top_kernels["share"].sum() == pytest.approx(1)


def test_a_synthetic_trace_says_so(open_spec, samples) -> None:
    trace, _ = open_spec(SPEC)
    assert timelines(trace)[0].synthetic
    recorded = open_traces(samples / "gptoss24_vllm_cpu.json.gz", cache=False).traces[0]
    assert not timelines(recorded)[0].synthetic


def test_moe_and_dense_gemms_are_families_of_their_own(open_spec) -> None:
    trace, _ = open_spec(dense_first_moe(dense=2, moe=4, steps=1))
    families = set(hotspots(trace, by="family").rows["name"])
    assert {"gemm", "moe_gemm", "attention"} <= families


def test_a_cut_off_step_does_not_hide_a_kernels_role(samples: Path) -> None:
    rows = hotspots(open_traces(samples / "gptoss20b_decode_synthetic.json.gz", cache=False).traces[0]).rows
    roles = dict(rows.select("name", "role").iter_rows())
    assert roles["_matmul_ogs_NNT_bf16xbf16xmxfp4_32x256x128x1"] == "moe_down"
