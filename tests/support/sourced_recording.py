"""Recordings of a model whose every kernel comes from a known line: an eager prefill step, a decode step in a graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tests.support.architectures import ADD_RMS, ARGMAX, DOWN, EMBED, FA3, HEAD, KV, OUT, QKV, RMS, ROPE, SILU, UP
from tests.support.hand_written_recording import Recording
from traceanalyzer.trace import Trace, open_trace

MODEL = "/opt/venv/lib/python3.12/site-packages/vllm/model_executor/models/llama.py"
PREFILL, DECODE = "execute_context_1(900)_generation_0(0)", "execute_context_0(0)_generation_4(4)"
PLUMBING = ("torch/nn/modules/module.py(1773): _wrapped_call_impl", "torch/_ops.py(1209): __call__")


@dataclass(frozen=True)
class Line:
    """A kernel of a step and where it comes from: the op, the module's class, the line of the model's file."""

    kernel: str
    op: str
    module: str
    line: int


def block(norm: str = ADD_RMS) -> list[Line]:
    """Return the kernels of a block."""
    return [
        Line(norm, "_C::fused_add_rms_norm", "RMSNorm", 10),
        Line(QKV, "aten::mm", "QKVParallelLinear", 20),
        Line(ROPE, "_C::rotary_embedding", "RotaryEmbedding", 21),
        Line(KV, "_C_cache_ops::reshape_and_cache_flash", "Attention", 22),
        Line(FA3, "vllm::unified_attention", "Attention", 23),
        Line(OUT, "aten::mm", "RowParallelLinear", 24),
        Line(ADD_RMS, "_C::fused_add_rms_norm", "RMSNorm", 11),
        Line(UP, "aten::mm", "MergedColumnParallelLinear", 30),
        Line(SILU, "_C::silu_and_mul", "SiluAndMul", 31),
        Line(DOWN, "aten::mm", "RowParallelLinear", 32),
    ]


def model(layers: int = 6) -> list[Line]:
    """Return the kernels of a whole step."""
    return [
        Line(EMBED, "aten::embedding", "VocabParallelEmbedding", 5),
        *block(RMS),
        *(line for _ in range(layers - 1) for line in block()),
        Line(ADD_RMS, "_C::fused_add_rms_norm", "RMSNorm", 12),
        Line(HEAD, "aten::mm", "LogitsProcessor", 40),
        Line(ARGMAX, "aten::argmax", "Sampler", 41),
    ]


@dataclass
class SourcedRecording(Recording):
    """A recording with what runs on the host around each launch."""

    stacks: bool = True
    expected: dict[str, Line] = field(default_factory=dict)

    def eager(self, lines: list[Line], marker: str = PREFILL) -> None:
        """Launch kernels one by one, each within its module, its line and its op."""
        begin = self.now
        for line in lines:
            start = self.now
            self.now += 4
            self.launch(line.kernel)
            end = self.now
            self.host(line.op, start + 3, end, cat="cpu_op")
            if self.stacks:
                frames = (f"nn.Module: {line.module}_7", f"{MODEL}({line.line}): forward", *PLUMBING)
                for depth, frame in enumerate(frames):
                    self.host(frame, start + depth * 0.5, end + 4 - depth * 0.5, cat="python_function")
            self.now = end + 5
        self.host(marker, begin, self.now)
        self.now += 10

    def replayed(self, names: list[str], marker: str = DECODE) -> None:
        """Launch kernels as one graph."""
        begin = self.now
        self.launch(*names)
        self.host(marker, begin, begin + 3)
        self.now += 10

    def trace(self, folder: Path) -> Trace:
        """Write the recording and open it."""
        folder.mkdir(exist_ok=True)
        return open_trace(self.write(folder))
