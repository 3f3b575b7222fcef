from __future__ import annotations

from dataclasses import replace

import pytest

from synthetic import KernelSpec
from synthetic.models import gptoss_20b_decode, llama_decode
from traceanalyzer.commands.hotspots.advice import advice, tile_rows
from traceanalyzer.names import parse
from traceanalyzer.roofline.redundancy import redundancies
from traceanalyzer.trace import open_traces


def findings(trace, code):
    return [finding for finding in advice(trace, phase="decode") if finding.code == code]


def test_the_last_line_says_what_to_attack_and_how(open_spec) -> None:
    trace, truth = open_spec(gptoss_20b_decode("rocm", steps=2))
    last = advice(trace)[-1]
    assert last.code == "target"
    assert max(truth.kernel_ns, key=lambda name: truth.kernel_ns[name]) in last.message
    assert "can be changed" in last.message


def test_a_closed_kernel_on_top_is_not_promised_to_be_tunable(open_spec) -> None:
    trace, _ = open_spec(llama_decode(layers=4, steps=2))
    assert "not known to be changeable" in advice(trace)[-1].message or "Neither" in advice(trace)[-1].message


def test_a_tall_tile_at_batch_one_is_called_padding(open_spec) -> None:
    trace, _ = open_spec(gptoss_20b_decode("rocm", batch=1, steps=2, tile="128x256x128x1"))
    messages = [finding.message for finding in findings(trace, "tile_padding")]
    assert any("128 rows for 1 row (99 % padding)" in message for message in messages)


def test_a_tile_that_the_batch_fills_is_no_finding(open_spec) -> None:
    trace, _ = open_spec(gptoss_20b_decode("rocm", batch=64, steps=2))
    assert not findings(trace, "tile_padding")


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_32x256x128x1", 32),
        ("nvjet_sm90_tst_192x8_64x8_2x1_v_bz_TNT", 8),
        ("fused_moe_kernel", None),
    ],
)
def test_an_ambiguous_tile_is_read_in_the_kernels_favour(name, rows) -> None:
    assert tile_rows(parse(name)) == rows


def test_a_table_cast_in_every_block_is_worth_all_but_one_run(open_spec) -> None:
    spec = llama_decode(layers=8, steps=2)
    cast = KernelSpec("triton_poi_fused__to_copy_1", "copy", 12.0)

    def with_cast(kernels):
        at = next(i for i, k in enumerate(kernels) if k.role == "rope")
        return (*kernels[:at], cast, *kernels[at:])

    layers = tuple(replace(layer, kernels=with_cast(layer.kernels)) for layer in spec.model.layers)
    trace, _ = open_spec(replace(spec, jitter=0.0, model=replace(spec.model, layers=layers)))
    (found,) = redundancies(trace)
    assert found.name == cast.name
    assert found.blocks == 8
    assert found.worth_ns == pytest.approx(7 * 12_000)


def test_no_repeated_work_is_invented(open_spec) -> None:
    trace, _ = open_spec(llama_decode(layers=8, steps=2))
    assert not redundancies(trace)


def test_the_recast_rotary_table_of_the_real_decode_step_is_found(shared) -> None:
    trace = open_traces(shared / "traces/gpu/gptoss20b_vllm_decode_mi300x.json.gz", cache=False).traces[0]
    (found,) = redundancies(trace)
    assert (found.name, found.blocks) == ("triton_poi_fused__to_copy_1", 23)
    assert found.worth_ns == pytest.approx(292_376 * 22 / 23, rel=1e-3)
