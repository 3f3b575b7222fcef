"""What the text of a frame says."""

from __future__ import annotations

import pytest

from traceanalyzer.source.frame_text import Frame, frame_of, is_models, module_class, shown_path


@pytest.mark.parametrize(
    "plumbing",
    [
        "torch/nn/modules/module.py(1773): _wrapped_call_impl",
        "torch/_ops.py(1209): __call__",
        "torch/utils/_contextlib.py(112): decorate_context",
        "torch/utils/_device.py(99): __torch_function__",
        "torch/_dynamo/eval_frame.py(800): compile_wrapper",
        "torch/_inductor/output_code.py(466): __call__",
        "torch/fx/graph_module.py(820): call_wrapped",
        "torch/autograd/function.py(575): apply",
        "torch/library.py(41): run",
        "/usr/lib/python3.12/site-packages/triton/runtime/jit.py(419): <lambda>",
        "/sgl-workspace/triton-custom/python/triton/backends/amd/driver.py(1): __call__",
        "contextlib.py(279): helper",
        "functools.py(900): wrapper",
        "<built-in method mm of type object at 0x7f2a>",
        "<string>(2): forward",
        "<frozen abc>(117): __instancecheck__",
        "/opt/aiter/jit/core.py(1637): custom_wrapper",
        "vllm/_custom_ops.py(333): fused_add_rms_norm",
        "nn.Module: Linear_3",
        "no frame at all",
        "",
        "x" * 100_000,
    ],
)
def test_plumbing_says_nothing(plumbing: str) -> None:
    assert frame_of(plumbing) is None


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ("vllm/models/llama.py(20): forward", Frame("vllm/models/llama.py", 20, "forward", False)),
        (
            "/opt/venv/lib/python3.12/site-packages/vllm/x.py(7): f",
            Frame("vllm/x.py", 7, "f", False),
        ),
        (
            r"C:\venv\Lib\site-packages\transformers\models\llama\modeling_llama.py(7): f",
            Frame("transformers/models/llama/modeling_llama.py", 7, "f", False),
        ),
        (
            "/w/sglang/python/sglang/srt/models/qwen2.py(94): forward",
            Frame("sglang/srt/models/qwen2.py", 94, "forward", False),
        ),
        ("/w/vllm/vllm/x.py(1): <lambda>", Frame("vllm/x.py", 1, "<lambda>", False)),
        ("odd (name)(3).py(12): f(1): g", Frame("odd (name)(3).py", 12, "f(1): g", False)),
        ("/tmp/torchinductor_root/zg/abc.py(232): call", Frame("/tmp/torchinductor_root/zg/abc.py", 232, "call", True)),
    ],
)
def test_a_frame_is_file_line_and_function(text: str, frame: Frame) -> None:
    assert frame_of(text) == frame


def test_models_are_told_by_where_they_lie() -> None:
    known = {
        "vllm/model_executor/models/gpt_oss.py(293): forward": True,
        "transformers/models/qwen2/modeling_qwen2.py(150): forward": True,
        "sglang/srt/layers/linear.py(9): forward": False,
        "vllm/v1/worker/gpu_model_runner.py(3000): execute_model": False,
    }
    for text, of_model in known.items():
        frame = frame_of(text)
        assert frame is not None
        assert is_models(frame) == of_model


def test_modules_lose_the_number_of_the_instance() -> None:
    assert module_class("nn.Module: Qwen2MLP_12") == "Qwen2MLP"
    assert module_class("nn.Module: Linear") == "Linear"
    assert module_class("nn.Module: GraphModule_0") is None
    assert module_class("forward") is None


def test_a_path_starts_at_its_package() -> None:
    assert shown_path("/a/dist-packages/b/site-packages/vllm/x.py") == "vllm/x.py"
    assert shown_path("relative/x.py") == "relative/x.py"
