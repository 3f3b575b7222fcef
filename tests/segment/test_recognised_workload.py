"""What a trace was recorded of is told by evidence, and nothing is advised that does not hold for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeAlias

import pytest
from click.testing import CliRunner

from tests.support.places import CASES, DATA, TRACES
from traceanalyzer.cli.main import cli
from traceanalyzer.segment import segment
from traceanalyzer.segment.recorded_work import SENTENCES, RecordedWork, joint
from traceanalyzer.trace import Trace, open_traces

REPORTS = DATA / "reports" / "traces"
HostEvent: TypeAlias = tuple[str, str, dict[str, object]]
"""Category, name and args of an event of the host."""


def opened(path: Path) -> Trace:
    return open_traces(path, cache=False).traces[0]


@pytest.mark.parametrize(
    ("name", "workload", "phases"),
    [
        ("bertsmall_mi300", "encoder", {"forward"}),
        ("vit_mi300", "encoder", {"forward"}),
        ("owlv2_mi300", "encoder", {"forward"}),
        ("timesformer_mi300", "encoder", {"forward"}),
        ("kineto_resnet", "training", {"training"}),
        ("ddp_resnet18_mi300", "training", {"training"}),
        ("hta_dlrm_neg", "training", {"training"}),
        ("hta_alexnet", "other", {"unknown"}),
        ("sglang_capture_mi300", "graph_capture", {"unknown"}),
        ("qwen3_30b_sglang_decode_mi300", "llm_serving", {"decode"}),
    ],
)
def test_recordings_of_others_are_what_they_were_recorded_of(
    shared: Path, name: str, workload: str, phases: set[str]
) -> None:
    cut = segment(opened(shared / "traces" / "others" / f"{name}.json.gz"))
    assert cut.workload.kind == workload
    assert set(cut.steps["phase"]) == phases
    assert cut.workload.basis


@pytest.mark.parametrize(
    ("path", "workload"),
    [
        (REPORTS / "diffusion_vae_after_blocks.json.gz", "diffusion"),
        (REPORTS / "graph_capture_only.json.gz", "graph_capture"),
        (REPORTS / "training_fwd_bwd_dpsk_ep.json.gz", "training"),
        (CASES / "209_sliding_full.json.gz", "llm_serving"),
        (CASES / "200_profilerstep_only.json.gz", "llm"),
        (CASES / "205_no_annotation_eager.json.gz", "llm_serving"),
        (TRACES / "qwen3_24_vllm_compiled.json.gz", "llm_serving"),
    ],
)
def test_small_traces_are_what_they_were_made_of(path: Path, workload: str) -> None:
    assert segment(opened(path)).workload.kind == workload


def kernels(*names: str, host: tuple[HostEvent, ...] = ()) -> dict[str, object]:
    """A trace of kernels of 10 µs, each launched on its own, next to host events (category, name, args)."""
    events: list[dict[str, object]] = []
    for number, name in enumerate(names):
        at = 20 * number
        events += [
            {
                **{
                    "ph": "X",
                    "cat": "cuda_runtime",
                    "name": "cudaLaunchKernel",
                    "pid": 1,
                    "tid": 1,
                    "ts": at,
                    "dur": 2,
                },
                "args": {"correlation": number + 1},
            },
            {
                **{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at + 5, "dur": 10},
                "args": {"device": 0, "stream": 7, "correlation": number + 1},
            },
        ]
    for number, (category, name, args) in enumerate(host):
        events.append(
            {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": number, "dur": 1, "args": args}
        )
    return {"traceEvents": events}


NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int)"
GELU = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&)>(int)"
PRODUCT = "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_32x6_tn"
FLASH = (
    "void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false>, false, {causal}, false, false, true>(int)"
)
LAYER = (NORM, PRODUCT, FLASH.format(causal="false"), PRODUCT, NORM, PRODUCT, GELU, PRODUCT)
CAUSAL = (NORM, PRODUCT, FLASH.format(causal="true"), PRODUCT, NORM, PRODUCT, GELU, PRODUCT)
CONVOLUTION = "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage4"
GROUP_NORM = "void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<c10::BFloat16>(long)"
BATCH_NORM = "void at::native::batch_norm_transform_input_kernel<c10::BFloat16, float, true>(int)"
RMS = "void vllm::rms_norm_kernel<c10::BFloat16>(int)"
GATED = "void at::native::vectorized_elementwise_kernel<4, at::native::silu_kernel(at::TensorIteratorBase&)>(int)"
BACKWARD = "void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64, 64, 128, 8> >(int)"
TRANSPOSED = "sm80_xmma_dgrad_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage4"
DECODER: HostEvent = ("python_function", "nn.Module: LlamaDecoderLayer_0", {})
DETECTOR: tuple[HostEvent, ...] = (
    ("python_function", "nn.Module: DetrDecoderLayer_0", {}),
    ("python_function", "nn.Module: DetrEncoder_0", {}),
)


@pytest.mark.parametrize(
    ("made", "workload"),
    [
        (kernels(*LAYER * 4), "encoder"),
        (kernels(*CAUSAL * 4), "llm"),
        (kernels(*LAYER * 4, host=(DECODER,)), "llm"),
        (kernels(*LAYER * 4, host=DETECTOR), "encoder"),
        (kernels(*LAYER * 4, host=(("user_annotation", "denoise_step_3", {}),)), "diffusion"),
        (kernels(*(CONVOLUTION, GROUP_NORM) * 8, *LAYER), "diffusion"),
        (kernels(*(CONVOLUTION, BATCH_NORM, GROUP_NORM) * 8, *LAYER), "encoder"),
        (kernels(*(CONVOLUTION, BATCH_NORM) * 8, PRODUCT), "other"),
        (kernels(*LAYER * 4, BACKWARD, BACKWARD), "training"),
        (kernels(*LAYER * 4, TRANSPOSED, TRANSPOSED), "encoder"),
        (kernels(PRODUCT, host=(("cpu_op", "AddmmBackward0", {}),)), "training"),
        (kernels(PRODUCT, host=(("user_annotation", "Optimizer.step#AdamW.step", {}),)), "training"),
        (kernels(RMS, PRODUCT, FLASH.format(causal="false"), PRODUCT, RMS, PRODUCT, GATED, PRODUCT), "unknown"),
        (kernels("kernel_0", "kernel_1"), "unknown"),
    ],
)
def test_evidence_decides(tmp_path: Path, made: dict[str, object], workload: str) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(made))
    assert segment(opened(path)).workload.kind == workload


def attention_call(mask: list[int], causal: str, queries: int = 512) -> HostEvent:
    """An attention operator as the profiler records it with shapes."""
    dims = [[1, 8, queries, 64], [1, 8, 512, 64], [1, 8, 512, 64], mask, [], [], []]
    args = {"Input Dims": dims, "Concrete Inputs": ["", "", "", "", "0.", causal, ""]}
    return ("cpu_op", "aten::scaled_dot_product_attention", args)


@pytest.mark.parametrize(
    ("call", "workload"),
    [
        (attention_call([], "True"), "llm"),
        (attention_call([], "False", queries=1), "llm"),
        (attention_call([], "False"), "encoder"),
    ],
)
def test_inputs_of_attention_say_whether_it_looks_ahead(tmp_path: Path, call: HostEvent, workload: str) -> None:
    path = tmp_path / "trace.json"
    flash = "void pytorch_flash::flash_fwd_kernel(pytorch_flash::Flash_fwd_params)"
    path.write_text(json.dumps(kernels(*(NORM, PRODUCT, flash, PRODUCT, GELU) * 3, host=(call,))))
    assert segment(opened(path)).workload.kind == workload


def test_training_and_captures_have_no_blocks() -> None:
    for name in ("training_fwd_bwd_dpsk_ep", "graph_capture_only"):
        cut = segment(opened(REPORTS / f"{name}.json.gz"))
        assert cut.blocks.is_empty()
        assert not {"lm_head", "sampler", "gate_up"} & set(cut.events["role"])


def test_ranks_that_ran_speak_for_a_rank_that_captured() -> None:
    ranks = [RecordedWork("graph_capture"), RecordedWork("llm_serving"), RecordedWork("unknown")]
    assert joint(ranks).kind == "llm_serving"
    assert joint([RecordedWork("graph_capture")]).kind == "graph_capture"


def said(*arguments: str) -> str:
    result = CliRunner().invoke(cli, [*arguments, "--no-cache"], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(
    "command", [("ingest",), ("hotspots",), ("blocks",), ("roofline",), ("idle",), ("tune", "plan")]
)
def test_every_command_names_the_idle_time_before_any_kernel(command: tuple[str, ...]) -> None:
    first, *rest = said(*command, str(REPORTS / "host_bound_idle_94.json.gz")).splitlines()
    assert "idle" in first
    assert "93.9 %" in first
    assert not any(line.startswith("Attack") for line in rest)


def test_a_busy_gpu_is_not_spoken_of(samples: Path) -> None:
    assert "idles" not in said("hotspots", str(REPORTS / "side_stream_in_blocks.json.gz"))


@pytest.mark.parametrize("command", ["ingest", "hotspots", "blocks", "roofline", "idle"])
def test_a_graph_capture_gets_no_verdict(command: str) -> None:
    text = said(command, str(REPORTS / "graph_capture_only.json.gz"))
    assert text.startswith(SENTENCES["graph_capture"])
    assert "--capture" in text.splitlines()[0]
    assert "Attack" not in text


def test_training_gets_no_advice_for_serving() -> None:
    answer = json.loads(said("hotspots", str(REPORTS / "training_fwd_bwd_dpsk_ep.json.gz"), "--json"))
    assert [finding["code"] for finding in answer["findings"]] == ["workload", "target"]
    assert answer["findings"][-1]["message"].startswith("Largest kernel:")


def test_ingest_tells_the_workload_and_what_it_rests_on() -> None:
    answer = json.loads(said("ingest", str(REPORTS / "training_fwd_bwd_dpsk_ep.json.gz"), "--json"))
    assert answer["workload"] == "training"
    assert "AttnBackward" in answer["workload_basis"][0]
    assert answer["findings"][0]["message"] == SENTENCES["training"]
    assert answer["timelines"][0]["steps"][0]["phase"] == "training"
