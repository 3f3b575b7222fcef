"""Steps of known make: layouts, workloads, several phases, what-if."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

import polars as pl
import pytest

from synthetic import TraceSpec, Truth, decode_steps
from synthetic.models import gptoss_20b_decode, llama_decode, llama_dense
from traceanalyzer.commands.hotspots.compute import hotspots
from traceanalyzer.commands.hotspots.headroom import by_headroom
from traceanalyzer.hardware import find_gpu
from traceanalyzer.model import named
from traceanalyzer.roofline import Request, Roofline, RooflineError, Row, parse_assumption, roofline, what_if
from traceanalyzer.roofline.bounds import bounds_by
from traceanalyzer.roofline.ceilings import default_ceilings
from traceanalyzer.roofline.roofline_findings import with_findings
from traceanalyzer.roofline.workloads import Stated
from traceanalyzer.trace import Trace

analyse = import_module("traceanalyzer.roofline.analyse")
Open = Callable[..., tuple[Trace, Truth]]
LLAMA = named("Llama-3.1-8B")
BATCH, CONTEXT = 8, 2048


def dense(**more: int) -> TraceSpec:
    steps = decode_steps(3, batch=BATCH, kv_tokens=CONTEXT)
    return TraceSpec(model=llama_dense(batch=BATCH, kv=CONTEXT, **more), steps=steps, engine="vllm_detailed")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Roofline:
    from synthetic import generate, write
    from traceanalyzer.trace import open_traces

    path = write(generate(dense(), 0), tmp_path_factory.mktemp("dense") / "trace.json")
    return roofline(open_traces(path, cache=False).traces[0], Request(model=LLAMA))


def role(found: Roofline, name: str, part: str = "") -> pl.DataFrame:
    return pl.DataFrame(
        [
            {"floor": row.floor_ns, "measured": row.measured_ns, "bytes": row.bytes, "flops": row.flops, "n": row.count}
            for row in found.rows
            if row.role == name and row.part == part
        ]
    )


def test_rows_sum_to_the_steps_kernel_time(found: Roofline) -> None:
    assert found.steps == 3
    assert found.measured_ns == pytest.approx(found.kernels["dur_ns"].sum() / 3)
    assert found.kernels["index"].n_unique() == found.kernels.height


def test_roofs_that_the_trace_proves_count_as_if_they_had_been_known_before(
    open_spec: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, _ = open_spec(dense())
    request = Request(model=LLAMA, gpu=find_gpu("H100 SXM5"))
    default = default_ceilings(find_gpu("H100 SXM5"))
    raised = replace(default, gbps=0.6 * default.gbps, proven_tflops=(("bf16", 100.0, "reached here"),))
    usual = roofline(trace, request)
    with monkeypatch.context() as patch:
        patch.setattr(analyse, "proven", lambda ceilings, reached: raised)
        later = roofline(trace, request)
    with monkeypatch.context() as patch:
        patch.setattr(analyse, "default_ceilings", lambda gpu: raised)
        patch.setattr(analyse, "proven", lambda ceilings, reached: ceilings)
        before = roofline(trace, request)
    assert [row.label for row in later.rows] == [row.label for row in before.rows]
    for one, other in zip(later.rows, before.rows, strict=True):
        assert (one.reachable_ns, one.floor_ns) == pytest.approx((other.reachable_ns, other.floor_ns))
    assert later.reachable_ns != pytest.approx(usual.reachable_ns)
    columns = ["reachable_ns", "floor_ns", "headroom_ns"]
    assert later.kernels.select(columns).sum().row(0) == pytest.approx(before.kernels.select(columns).sum().row(0))


def test_what_is_as_good_as_done_is_not_attacked_and_hides_nothing_that_is_far(found: Roofline) -> None:
    def row(part: str, measured: float, floor: float) -> Row:
        one = replace(found.rows[0], part=part, measured_ns=measured, floor_ns=floor, reachable_ns=floor / 0.8)
        return replace(one, latency_ns=0.0, bound="memory", plausible=True, redundant=False)

    done, far = row("done", 10e6, 7.6e6), row("far", 3e6, 1e6)
    both = with_findings(replace(found, rows=(done, far), measured_ns=13e6), [])
    assert both.findings[-1].message.startswith("Attack far first")
    alone = with_findings(replace(found, rows=(done,), measured_ns=10e6), [])
    assert alone.findings[-1].message.startswith("No kernel is far from its roof: the largest headroom is 2.40 ms")


def test_attention_follows_the_context_of_every_step(found: Roofline) -> None:
    context = BATCH * (CONTEXT + CONTEXT + 1 + CONTEXT + 2) / 3
    per_token = 2 * 8 * 128 * 2
    queries = 2 * BATCH * 32 * 128 * 2
    assert role(found, "attention")["bytes"][0] == pytest.approx(32 * (context * per_token + queries))


def test_tensor_parallel_ranks_hold_half_of_the_weights(found: Roofline, open_spec: Open) -> None:
    trace, _ = open_spec(replace(dense(tensor_parallel=2), world_size=2))
    half = roofline(trace, Request(model=LLAMA))
    assert any(line.startswith("tp = 2, inferred") for line in half.basis)
    weights = 32 * 4096 * 2 * 14336 * 2
    whole, split = role(found, "gate_up"), role(half, "gate_up")
    assert whole["bytes"][0] - split["bytes"][0] == pytest.approx(weights / 2, rel=0.01)
    collective = next(row for row in half.rows if row.role == "communication")
    assert collective.bound == "communication"
    # Ring all-reduce over 2 ranks: each sends the whole payload of T d bytes, twice a layer.
    assert collective.bytes == pytest.approx(64 * BATCH * 4096 * 2)
    assert roofline(trace, Request(model=LLAMA, tp=1)).rows != half.rows


def test_a_stage_between_the_first_and_the_last_is_told_by_what_it_lacks(open_spec: Open) -> None:
    spec = dense(layers=8)
    inner = replace(spec.model, prologue=(), epilogue=())
    trace, _ = open_spec(replace(spec, model=inner, world_size=4))
    found = roofline(trace, Request(model=LLAMA))
    assert not [finding for finding in found.findings if finding.code == "model_mismatch"]
    assert role(found, "down")["flops"][0] == pytest.approx(8 * 2 * BATCH * 14336 * 4096)
    assert any(line.startswith("pipeline stage 1 (from 0) or one like it, inferred") for line in found.basis)


def test_a_pipeline_degree_that_the_ranks_name_contradicts_is_refused(open_spec: Open) -> None:
    trace, _ = open_spec(dense(layers=8))
    placed = Trace(replace(trace.metadata, parallel={"pp": 3, "tp": 0}), trace.events, trace.store)
    with pytest.raises(RooflineError, match="pp = 2 contradicts the trace, which is of pipeline rank 3"):
        roofline(placed, Request(model=LLAMA, pp=2))


def test_a_layout_that_does_not_fit_the_model_is_refused(open_spec: Open) -> None:
    trace, _ = open_spec(dense())
    with pytest.raises(RooflineError, match="tp = 3 does not divide"):
        roofline(trace, Request(model=LLAMA, tp=3))


def test_without_context_attention_is_unknown_until_it_is_stated(open_spec: Open) -> None:
    trace, _ = open_spec(llama_decode(steps=2, batch=BATCH, kv=CONTEXT))
    plain = roofline(trace, Request(model=LLAMA))
    attention = next(row for row in plain.rows if row.role == "attention")
    assert attention.bound == "unknown"
    assert "pass --kv-tokens" in attention.basis[-1]
    stated = roofline(trace, Request(model=LLAMA, stated=Stated(kv_tokens=BATCH * CONTEXT)))
    assert next(row for row in stated.rows if row.role == "attention").bound == "memory"


def test_stated_requests_replace_the_marker(found: Roofline, open_spec: Open) -> None:
    trace, _ = open_spec(dense())
    more = roofline(trace, Request(model=LLAMA, stated=Stated(requests=16, kv_tokens=16 * CONTEXT)))
    assert role(more, "gate_up")["flops"][0] == 2 * role(found, "gate_up")["flops"][0]


def test_contradicting_statements_are_refused(open_spec: Open) -> None:
    trace, _ = open_spec(dense())
    with pytest.raises(RooflineError, match="cannot"):
        roofline(trace, Request(model=LLAMA, stated=Stated(requests=16, tokens=8)))


def test_without_a_gpu_work_is_known_but_no_bound(open_spec: Open) -> None:
    device = replace(dense(), device=None)
    from synthetic.devices import H100_SXM

    trace, _ = open_spec(replace(device, device=replace(H100_SXM, name="Some New GPU", num_sms=7)))
    unknown = roofline(trace, Request(model=LLAMA))
    gate_up = next(row for row in unknown.rows if row.role == "gate_up")
    assert (gate_up.bound, gate_up.floor_ns) == ("unknown", None)
    assert gate_up.flops
    assert "--gpu" in gate_up.basis[-1]
    assert "--gpu" in unknown.findings[-1].message
    assert unknown.floor_ns is None
    stated = roofline(trace, Request(model=LLAMA, gpu=find_gpu("H100 SXM5")))
    assert stated.device.source == "option"
    assert stated.floor_ns


def test_experts_hit_change_the_weights_read(open_spec: Open) -> None:
    from traceanalyzer.model import ExpertRouting

    trace, _ = open_spec(gptoss_20b_decode(batch=16, steps=1))
    model = named("gpt-oss-20b")
    few = roofline(trace, Request(model=model, routing=ExpertRouting(distinct=8)))
    many = roofline(trace, Request(model=model, routing=ExpertRouting(distinct=32)))
    assert role(many, "moe_down")["bytes"][0] > 3.5 * role(few, "moe_down")["bytes"][0]


def test_an_unknown_phase_or_step_names_those_there_are(open_spec: Open) -> None:
    trace, _ = open_spec(dense())
    with pytest.raises(RooflineError, match=r"no complete prefill step \(phases of its complete steps: decode\)"):
        roofline(trace, Request(phase="prefill"))
    with pytest.raises(RooflineError, match="no step 9: its steps are 0 to 2"):
        roofline(trace, Request(step=9))


def test_sequences_that_a_marker_tells_complete_what_is_stated(open_spec: Open) -> None:
    trace, _ = open_spec(replace(dense(), engine="vllm_old"))
    assert roofline(trace, Request(model=LLAMA)).requests is None
    stated = roofline(trace, Request(model=LLAMA, stated=Stated(kv_tokens=BATCH * CONTEXT)))
    assert (stated.requests, stated.decode) == (BATCH, True)
    assert role(stated, "attention")["flops"][0] == pytest.approx(32 * 4 * 32 * 128 * BATCH * CONTEXT)


def test_what_a_model_rests_on_is_told(open_spec: Open) -> None:
    trace, _ = open_spec(dense())
    unsure = roofline(trace, Request(model=replace(LLAMA, notes=("quantization 'quip' is not known",))))
    assert "model: quantization 'quip' is not known" in unsure.basis


def test_what_if_takes_the_floor_over_the_share(found: Roofline) -> None:
    gate_up = next(row for row in found.rows if row.role == "gate_up")
    assumed = what_if(found, [parse_assumption("gate_up=1")])
    saved = gate_up.measured_ns - (gate_up.floor_ns or 0)
    assert assumed.step_before_ns - assumed.step_after_ns == pytest.approx(saved)
    assert assumed.tpot_before_ns == pytest.approx(found.period_ns)
    assert assumed.tpot_after_ns == pytest.approx(found.period_ns - saved)
    assert assumed.tokens_after == pytest.approx(BATCH / (found.period_ns - saved) * 1e9)


def test_what_if_never_beats_launching(found: Roofline) -> None:
    norm = next(row for row in found.rows if row.role == "norm")
    assert what_if(found, [parse_assumption("norm=1")]).effects[0].after_ns == norm.latency_ns


@pytest.mark.parametrize(
    "text", ["gate_up", "gate_up=0", "gate_up=1.2", "gate_up=120%", "=0.5", "gate_up=-1", "gate_up=x"]
)
def test_absurd_assumptions_are_refused(text: str) -> None:
    with pytest.raises(RooflineError, match="role=share"):
        parse_assumption(text)


def test_percent_and_kind_are_understood() -> None:
    assumption = parse_assumption("attention:full=80%")
    assert (assumption.role, assumption.kind, assumption.share) == ("attention", "full", 0.8)


def test_assumptions_on_unknown_roles_name_the_known_ones(found: Roofline) -> None:
    with pytest.raises(RooflineError, match=r"moe_down is not among the rows; roles with a known floor are .*gate_up"):
        what_if(found, [parse_assumption("moe_down=0.8")])
    with pytest.raises(RooflineError, match="assumed twice"):
        what_if(found, [parse_assumption("gate_up=0.8"), parse_assumption("gate_up=0.9")])


@pytest.mark.parametrize("by", ["kernel", "role", "family"])
def test_hotspots_are_ranked_by_headroom(open_spec: Open, by: str) -> None:
    trace, _ = open_spec(gptoss_20b_decode(batch=1, steps=2))
    result = roofline(trace, Request(every_phase=True))
    bounds = bounds_by(result, by)
    ranked = by_headroom(hotspots(trace, by=by), bounds)
    names = [name for name in ranked.rows["name"].to_list() if bounds[name].headroom_ns is not None]
    headroom = [bounds[name].headroom_ns or 0.0 for name in names]
    assert headroom == sorted(headroom, reverse=True)
    assert ranked.rows.height == hotspots(trace, by=by).rows.height
    total = sum(row.headroom_ns or 0.0 for row in result.rows)
    assert sum(headroom) == pytest.approx(total)
