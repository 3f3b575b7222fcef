"""What is picked to tune, what is refused, and why."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from synthetic import TraceSpec, decode_steps
from synthetic.models import DEVICE_OF_VENDOR, gptoss_20b, gptoss_20b_decode, llama_decode
from tests.support.plan_traces import MOE_CONFIG, fused_moe, opened, renamed
from traceanalyzer.commands.tune.plan.bench_of import flips, rows_to_tune
from traceanalyzer.commands.tune.plan.candidates import LEAST_WORTH
from traceanalyzer.commands.tune.plan.compute import Plan, plan
from traceanalyzer.hardware import find_gpu
from traceanalyzer.model import named, read_config
from traceanalyzer.names import parse
from traceanalyzer.roofline import Request

Save = Callable[..., Path]
GPTOSS = named("openai/gpt-oss-20b")


def of(path: Path, **more: Any) -> Plan:
    return plan(opened(path), Request(**more))


def moe_model(folder: Path, **more: Any) -> Any:
    path = folder / "config.json"
    path.write_text(json.dumps(MOE_CONFIG | more))
    return read_config(path)


def test_the_real_decode_step_targets_its_down_projection(shared: Path) -> None:
    found = of(shared / "traces/gpu/gptoss20b_vllm_decode_mi300x.json.gz")
    target = found.target
    assert target is not None
    one = target.candidate
    assert (one.kernel.name, one.role) == ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", "moe_down")
    assert one.measured_ns / 1000 == pytest.approx(3761.9, abs=0.1)
    assert one.floor_ns is not None
    assert one.floor_ns / 1000 == pytest.approx(636.3, abs=0.5)
    assert one.worth_ns == pytest.approx(one.measured_ns - one.floor_ns)
    assert target.tpot_share == pytest.approx(one.worth_ns / found.period_ns)
    product = one.product
    assert product is not None
    assert (product.n, product.k, product.experts, product.top_k) == (2880, 2880, 32, 4)
    assert target.m == (128, 16, 20), "seen first, then both sides of the flip in whole tokens"
    assert dict(target.distinct)[128] == pytest.approx(31.55, abs=0.01)
    assert target.num_warps is None, "neither name, launch nor cache tells"
    assert found.others[0].role == "moe_gate_up"
    refused = {r.kernel.name: r.reason or "" for r in found.refused}
    assert "need not be done" in refused["triton_poi_fused__to_copy_1"]
    assert "chosen in the code" in refused["kernel_unified_attention_3d"]


def test_the_padding_of_the_servers_weights_is_followed(shared: Path) -> None:
    folder = shared / "traces/gpu"
    capture = opened(folder / "gptoss20b_vllm_decode_mi300x.capture.json.gz")
    found = of(folder / "gptoss20b_vllm_decode_mi300x.json.gz", captures=(capture,))
    assert found.target is not None
    assert found.target.executed == (3072, 3072)
    assert any("3072, as the trace's shapes say" in note for note in found.target.basis)
    halved = of(folder / "gptoss20b_vllm_decode_mi300x.json.gz", tp=2)
    assert halved.target is not None
    assert halved.target.candidate.product is not None
    assert (halved.target.candidate.product.n, halved.target.candidate.product.k) == (2880, 1440), "per rank"
    assert halved.target.executed == (3072, 1536)


def test_the_sample_targets_its_gate_up_projection(samples: Path) -> None:
    found = of(samples / "gptoss20b_decode_synthetic.json.gz")
    target = found.target
    assert target is not None
    assert target.candidate.role == "moe_gate_up"
    assert target.candidate.kernel.tile == (32, 256, 128)
    assert target.m[0] == 4
    assert target.executed == (5888, 2944)
    assert any("as vLLM on ROCm pads (multiples of 128, in other versions of 256): assumed" in n for n in target.basis)


@pytest.mark.parametrize(("gpu", "executed"), [("MI355X", (6144, 3072)), ("MI300X", (5888, 2944)), ("H100 SXM5", None)])
def test_where_no_kernel_shows_the_padding_it_is_that_of_the_gpu(
    save: Save, gpu: str, executed: tuple[int, int] | None
) -> None:
    target = of(save(gptoss_20b_decode("cuda" if executed is None else "rocm")), gpu=find_gpu(gpu)).target
    assert target is not None
    assert target.candidate.role == "moe_gate_up"
    assert target.executed == (executed or (5760, 2880))
    assert target.bench is not None
    assert target.bench.axes == (("group_m=8",) if executed is None else ("group_m=4",)), "what the server takes"


def test_every_batch_size_seen_is_to_be_tuned(save: Save) -> None:
    steps = (*decode_steps(2, batch=2), *decode_steps(3, batch=8))
    spec = replace(gptoss_20b_decode("cuda"), steps=steps, engine="vllm_detailed")
    target = of(save(spec), model=GPTOSS).target
    assert target is not None
    assert target.m == (8, 32), "rows are tokens x top-k; NVIDIA has no flip at 16"
    assert target.candidate.product is not None
    assert target.candidate.product.common_m == 32
    assert target.num_warps == 4, "128 threads of a block over warps of 32"


def test_an_unknown_model_gives_no_target_but_what_to_pass(shared: Path) -> None:
    path = shared / "traces/gpu/qwen3_8b_sglang_decode_mi300x.json.gz"
    found = of(path)
    assert found.target is None
    assert found.reason is not None
    assert "--model" in found.reason
    assert "Qwen/Qwen3-8B" in found.fitting_models
    given = of(path, model=named("Qwen/Qwen3-8B"))
    assert given.target is not None, "hipBLASLt is retunable, as `name` says"
    assert given.target.candidate.role == "gate_up"
    assert parse(given.target.candidate.kernel.name).retunable
    assert given.target.bench is None
    assert "TunableOp" in (given.target.not_measurable or "")


def test_closed_kernels_are_refused_with_their_reason(shared: Path) -> None:
    found = of(shared / "traces/gpu/qwen1.5_0.5b_hf_h100.json.gz")
    assert found.target is None
    assert "reasons are listed" in (found.reason or "")
    closed = {r.role: r.reason or "" for r in found.refused if r.kernel.kind == "gemm"}
    assert closed["gate_up"].startswith("closed (cuBLAS)")
    assert not any(parse(r.kernel.name).retunable for r in found.refused)


def test_nvjet_ahead_of_a_triton_product_is_refused_and_the_next_one_is_named(save: Save) -> None:
    spec = llama_decode(layers=32)
    nvjet = "nvjet_sm90_tst_192x8_64x8_2x1_v_bz_TNT"
    triton = "triton_tem_fused_mm_3"
    names = {"gate_up": nvjet, "down": triton}
    model = renamed(spec.model, lambda name, role: names.get(role, name))
    slow = replace(
        model,
        layers=tuple(
            replace(
                layer,
                kernels=tuple(replace(k, dur_us=k.dur_us * (3 if k.role in names else 1)) for k in layer.kernels),
            )
            for layer in model.layers
        ),
    )
    found = of(save(replace(spec, model=slow)), model=named("Llama-3.1-8B"))
    assert found.refused[0].kernel.name == nvjet
    assert "closed" in (found.refused[0].reason or "")
    assert found.target is not None
    assert found.target.candidate.role == "down"
    assert found.target.bench is not None
    assert (found.target.bench.kernel, found.target.bench.same_code) == ("dense", False)
    assert found.target.bench.shape == "n=4096,k=14336"


def test_a_kernel_at_its_roof_cannot_pay(samples: Path) -> None:
    found = of(samples / "gptoss20b_decode_synthetic.json.gz")
    reasons = {r.role: r.reason or "" for r in found.refused}
    assert "not worth tuning" in reasons["lm_head"]
    for refusal in found.refused:
        if "its floor" in (refusal.reason or ""):
            assert (refusal.worth_ns or 0) < LEAST_WORTH * found.period_ns


def test_one_configuration_of_fused_moe_counts_both_products(save: Save, tmp_path: Path) -> None:
    spec = replace(gptoss_20b_decode("cuda", batch=4), model=fused_moe())
    found = of(save(spec), model=moe_model(tmp_path))
    target = found.target
    assert target is not None
    assert target.candidate.roles == ("moe_gate_up", "moe_down")
    assert target.candidate.count == 48
    assert target.bench is not None
    assert (target.bench.kernel, target.bench.backend) == ("fused_moe", "fused_moe")
    assert target.bench.shape == "n=5760,k=2880,experts=32,top_k=4"
    assert target.m == (16, 128, 132), "vLLM's default flips between 32 and 33 tokens"
    assert target.dtypes.weight == "bf16"


def test_expert_parallel_ranks_hold_their_share_of_the_experts(save: Save, tmp_path: Path) -> None:
    spec = replace(gptoss_20b_decode("cuda", batch=4), model=fused_moe(), world_size=2)
    target = of(save(spec), model=moe_model(tmp_path), tp=2, ep=2).target
    assert target is not None
    product = target.candidate.product
    assert product is not None
    assert (product.experts, product.n, product.k) == (16, 5760, 2880), "whole experts, half of them"
    assert target.bench is not None
    assert (target.bench.experts, target.bench.top_k) == (16, 2)
    split = of(save(spec), model=moe_model(tmp_path), tp=2).target
    assert split is not None
    assert split.candidate.product is not None
    assert (split.candidate.product.experts, split.candidate.product.n) == (32, 2880), "half of every expert"


def test_quantised_fused_moe_is_a_target_that_is_not_measured_here(save: Save, tmp_path: Path) -> None:
    spec = replace(gptoss_20b_decode("cuda", batch=4), model=fused_moe())
    quantised = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
    target = of(save(spec), model=moe_model(tmp_path, **quantised)).target
    assert target is not None
    assert target.bench is None
    assert "bf16 or fp16 weights" in (target.not_measurable or "")


def test_a_model_of_other_depth_is_no_basis_for_a_target(save: Save) -> None:
    found = of(save(gptoss_20b_decode("cuda")), model=named("openai/gpt-oss-120b"))
    assert found.target is None
    assert "do not fit" in (found.reason or "")


def test_an_unknown_gpu_is_asked_for(save: Save) -> None:
    spec = gptoss_20b_decode("cuda")
    unheard = replace(DEVICE_OF_VENDOR["cuda"], name="Thing 9000", num_sms=17, total_global_mem=12345)
    found = of(save(replace(spec, device=unheard)), model=GPTOSS)
    assert found.target is None
    assert "--gpu" in (found.reason or "")


def test_prefill_steps_have_no_share_of_tpot(save: Save) -> None:
    from synthetic.models import prefill

    model = gptoss_20b("cuda", batch=512)
    spec = TraceSpec(model=model, steps=(prefill(model, 1, 512),) * 3, device=DEVICE_OF_VENDOR["cuda"])
    target = of(save(spec), model=GPTOSS).target
    assert target is not None
    assert target.tpot_share is None
    assert target.candidate.worth_ns


@pytest.mark.parametrize(("top_k", "sides"), [(1, (16, 17)), (4, (16, 20)), (6, (12, 18)), (32, (32,))])
def test_flips_are_numbers_of_rows_that_a_batch_can_have(top_k: int, sides: tuple[int, ...]) -> None:
    kernel = parse("_matmul_ogs_NNT_bf16xbf16xmxfp4_32x256x128x1")
    found = flips(kernel, "amd", 64, top_k)
    assert tuple(flip.m for flip in found) == sides
    assert flips(kernel, "nvidia", 64, top_k) == ()
    assert flips(kernel, None, 64, top_k) == ()
    assert rows_to_tune([sides[0], 4], found) == tuple(sorted({4, sides[0]})) + sides[1:]
