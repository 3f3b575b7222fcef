from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from synthetic import ModelSpec, TraceSpec
from synthetic.models import gptoss_20b_decode, llama_decode, prefill
from tests.support.places import CASES, ROOT
from traceanalyzer.commands.diff.compute import change, diff
from traceanalyzer.problems import TraceError
from traceanalyzer.trace import open_trace

SWIGLU = "_matmul_ogs_NNT_bf16xbf16xmxfp4_32x256x128x1_swiglu"


def renamed(spec: TraceSpec, old: str, new: str, factor: float = 1.0) -> TraceSpec:
    def block(kernels):
        return tuple(replace(k, name=new, dur_us=k.dur_us * factor) if k.name == old else k for k in kernels)

    layers = tuple(replace(layer, kernels=block(layer.kernels)) for layer in spec.model.layers)
    model: ModelSpec = replace(spec.model, layers=layers)
    return replace(spec, model=model)


def test_deltas_sum_to_the_steps_delta(open_spec) -> None:
    before, _ = open_spec(replace(gptoss_20b_decode("rocm", steps=3), jitter=0.2), seed=1)
    after, _ = open_spec(replace(gptoss_20b_decode("rocm", steps=2), jitter=0.2), seed=2)
    found = diff(before, after)
    delta = found.after_step_ns - found.before_step_ns
    assert found.rows["delta_ns"].sum() + found.unattributed_ns == pytest.approx(delta)
    assert found.unattributed_ns == pytest.approx(0, abs=1e-3)
    assert found.rows["before_ns"].sum() == pytest.approx(found.before_step_ns)
    assert found.rows["after_ns"].sum() == pytest.approx(found.after_step_ns)


def test_a_new_tile_is_one_changed_row_and_said_in_words(open_spec) -> None:
    spec = gptoss_20b_decode("rocm", steps=2)
    new = SWIGLU.replace("32x256x128x1", "32x32x128x1")
    before, _ = open_spec(spec)
    after, _ = open_spec(renamed(spec, SWIGLU, new, factor=0.5))
    rows = diff(before, after).rows.filter(pl.col("delta_ns").abs() > 1)
    assert set(rows["name_before"]) == {SWIGLU}
    assert set(rows["name_after"]) == {new}
    assert set(rows["role"]) == {"moe_gate_up"}
    assert change(SWIGLU, new) == "tile 32x256x128 -> 32x32x128"


def test_identical_traces_differ_by_nothing(open_spec) -> None:
    spec = llama_decode(layers=4, steps=2)
    before, _ = open_spec(spec)
    after, _ = open_spec(spec)
    found = diff(before, after)
    assert found.rows["delta_ns"].abs().max() == 0
    assert not found.warnings


def test_a_kernel_that_is_gone_is_called_removed(open_spec) -> None:
    spec = llama_decode(layers=4, steps=2)
    gone = next(k for k in spec.model.layers[0].kernels if k.role == "rope").name
    fewer = tuple(
        replace(layer, kernels=tuple(k for k in layer.kernels if k.name != gone)) for layer in spec.model.layers
    )
    before, _ = open_spec(spec)
    after, _ = open_spec(replace(spec, model=replace(spec.model, layers=fewer)))
    rows = diff(before, after).rows.filter(pl.col("name_after").is_null())
    assert rows["name_before"].to_list() == [gone]
    assert change(gone, None) == "removed"


def test_another_batch_size_is_compared_with_a_warning(open_spec) -> None:
    before, _ = open_spec(llama_decode(layers=4, batch=2, steps=2))
    after, _ = open_spec(llama_decode(layers=4, batch=8, steps=2))
    found = diff(before, after)
    assert [warning.code for warning in found.warnings] == ["batch_differs"]
    assert found.unattributed_ns == pytest.approx(0, abs=1e-3)


def test_traces_without_a_common_phase_are_refused(open_spec) -> None:
    trace, _ = open_spec(llama_decode(layers=4, steps=2))
    with pytest.raises(TraceError, match="no complete step"):
        diff(trace, trace, phase="prefill")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("triton_red_fused_add_mean_3", "triton_red_fused_add_mean_7", None),
        ("nvjet_sm90_tst_192x8_64x8_2x1_v_bz_TNT", "nvjet_sm90_tst_64x8_64x16_2x1_v_bz_TNT", "tile"),
        ("fused_moe_kernel", None, "removed"),
        (None, "fused_moe_kernel", "added"),
    ],
)
def test_changes_are_named(before, after, said) -> None:
    found = change(before, after)
    assert found is None if said is None else said in found


def test_traces_without_a_common_phase_say_which_they_have(open_spec) -> None:
    decode = llama_decode(layers=2, steps=1)
    prompts = replace(decode, steps=(prefill(decode.model, 1, 512),))
    with pytest.raises(TraceError, match=r"before: decode, after: prefill"):
        diff(open_spec(decode)[0], open_spec(prompts)[0])


def test_rows_of_equal_times_have_an_order_of_their_own() -> None:
    before = open_trace(ROOT / "traces" / "gptoss20b_decode_synthetic.json.gz")
    after = open_trace(CASES / "600_ab_after.json.gz")
    rows = diff(before, after).rows.to_dicts()
    place = ("section", "block_kind", "role", "position")
    keys = [
        (-abs(row["delta_ns"]), -row["before_ns"], *((row[name] is not None, row[name] or 0) for name in place))
        for row in rows
    ]
    times = [key[:2] for key in keys]
    assert len(set(times)) < len(times)
    assert keys == sorted(keys)
