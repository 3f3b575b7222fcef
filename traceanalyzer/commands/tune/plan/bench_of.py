"""How a kernel of a trace is measured here: which kernel and backend of ``tune run``, on which shape."""

from __future__ import annotations

import re
from dataclasses import dataclass

from traceanalyzer.commands.tune.plan.candidates import Candidate
from traceanalyzer.commands.tune.plan.row_counts import is_fused_moe
from traceanalyzer.hardware import Gpu
from traceanalyzer.model import Execution
from traceanalyzer.names import Dtypes

MXFP4_STEP = 64
"""Servers pad mxfp4 weights to multiples of at least this."""

PADDINGS = (256, 128)
"""Multiples that vLLM on ROCm pads gpt-oss to, by version and GPU."""

ROCM_STEP, ROCM_STEP_OF = 128, {"gfx950": 256}
"""The multiple of current versions: of every GPU, and of those that have their own."""

GROUP_M = {"amd": 4, "nvidia": 8}
"""What triton_kernels' heuristics take on every shape."""

HALF = ("bf16", "fp16")


@dataclass(frozen=True)
class Bench:
    """What the tune commands take.

    Attributes:
        kernel: for ``--kernel``.
        backend: for ``--backend``.
        dtype: for ``--dtype``; null for the kernel's default.
        n, k: of the product as it runs.
        experts, top_k: on this rank; null for a dense product. A rank of an expert-parallel group sees on average
            ``top_k / ep`` of a token's experts.
        axes: for ``--axis``: what the server's library fixes, so that candidates do not differ in it.
        screens: whether ``tune screen`` knows the kernel.
        same_code: whether the backend is the very kernel of the trace.
    """

    kernel: str
    backend: str
    dtype: str | None
    n: int
    k: int
    experts: int | None
    top_k: int | None
    axes: tuple[str, ...]
    screens: bool
    same_code: bool

    @property
    def shape(self) -> str:
        """The problem as ``--shape`` takes it."""
        experts = f",experts={self.experts},top_k={self.top_k}" if self.experts is not None else ""
        return f"n={self.n},k={self.k}{experts}"

    def rows(self, m: int) -> int:
        """Return m rounded up to a whole number of tokens."""
        step = self.top_k or 1
        return -(-m // step) * step


def executed_shape(
    chosen: Candidate, execution: Execution | None, gpu: Gpu | None
) -> tuple[tuple[int, int] | None, tuple[str, ...]]:
    """Return (n, k) as the kernel runs them, and what that rests on. Only mxfp4 experts are known to be padded.

    Args:
        chosen: the kernel.
        execution: how the engine carries the model out; its padded input tells the multiple.
        gpu: null where unknown.
    """
    product = chosen.product
    if product is None:
        return None, ()
    n, k = product.n, product.k
    if chosen.kernel.dtypes.weight != "mxfp4" or chosen.role not in ("moe_gate_up", "moe_down"):
        return (n, k), ()
    width = execution.moe_input_width if execution else None
    rocm = gpu if width is None and gpu is not None and gpu.vendor == "amd" else None
    if rocm is not None:
        step = ROCM_STEP_OF.get(rocm.target or "", ROCM_STEP)
    else:
        step = next((multiple for multiple in PADDINGS if width and width % multiple == 0), MXFP4_STEP)
    gate_up = chosen.role == "moe_gate_up"
    hidden, ffn = (k, n // 2) if gate_up else (n, k)
    padded_hidden, padded_ffn = width or _up(hidden, step), _up(ffn, step)
    padded = (2 * padded_ffn, padded_hidden) if gate_up else (padded_hidden, padded_ffn)
    if padded == (n, k):
        return padded, ()
    change = f"weights padded from {n} x {k} to {padded[0]} x {padded[1]}"
    if rocm is None:
        return padded, (f"{change} (multiples of {step}), inferred",)
    return padded, (
        f"{change}, as vLLM on ROCm pads (multiples of {step}, in other versions of "
        f"{' or '.join(str(other) for other in PADDINGS if other != step)}): assumed, as no kernel here pads the "
        "experts' input",
    )


def _up(size: int, step: int) -> int:
    return -(-size // step) * step


def bench_of(
    chosen: Candidate, dtypes: Dtypes, executed: tuple[int, int] | None, ep: int, vendor: str | None
) -> tuple[Bench | None, str | None]:
    """Return how a kernel can be measured, or why none of the tune commands does.

    Args:
        chosen: the kernel.
        dtypes: its element types.
        executed: (n, k) as it runs them.
        ep: expert-parallel ranks.
        vendor: of the GPU; null where unknown.
    """
    kernel, product = chosen.kernel, chosen.product
    if product is None or executed is None:
        return None, f"its shape is not known: {chosen.why_unknown}"
    n, k = executed
    axes: tuple[str, ...] = ()
    if kernel.scheme == "triton_kernels":
        fits = dtypes.weight == "mxfp4" and dtypes.activation in HALF and chosen.role in ("moe_gate_up", "moe_down")
        if not fits or product.experts is None:
            return None, "of triton_kernels, tune run measures gate_up and down with bf16 or fp16 x mxfp4"
        name, backend, screens, same = chosen.role, "triton_kernels", True, True
        axes = (f"group_m={GROUP_M[vendor]}",) if vendor in GROUP_M else ()
    elif is_fused_moe(kernel):
        if dtypes.weight not in HALF or product.experts is None or chosen.role != "moe_gate_up":
            weights = dtypes.weight or "unknown ones"
            return None, f"tune run measures vLLM's fused_moe with bf16 or fp16 weights, not {weights}"
        name, backend, screens, same = "fused_moe", "fused_moe", False, True
    elif re.search(r"w8a8.*fp8|fp8_block", kernel.name, re.IGNORECASE) or _block_scaled_fp8(kernel.knob, dtypes):
        name, backend, screens, same = "fp8_block", "builtin", True, False
    elif _plain_triton(chosen) and dtypes.activation in HALF and dtypes.weight in HALF:
        name, backend, screens, same = "dense", "builtin", True, False
    else:
        return None, f"none of the tune commands measures it; it is tuned through {kernel.knob}"
    experts, top_k = product.experts, product.top_k
    if experts is not None and top_k is not None and ep > 1:
        top_k = top_k // ep if top_k % ep == 0 else 1
    dtype = None if name == "fp8_block" or dtypes.activation == "bf16" else dtypes.activation
    return Bench(name, backend, dtype, n, k, experts, top_k, axes, screens, same), None


def _block_scaled_fp8(knob: str | None, dtypes: Dtypes) -> bool:
    return bool(knob) and "quantization/utils/configs" in (knob or "") and dtypes.weight == "fp8_block"


def _plain_triton(chosen: Candidate) -> bool:
    """Whether it is a dense product that a compiler wrote in Triton."""
    kernel = chosen.kernel
    dense = kernel.kind == "gemm" and chosen.product is not None and chosen.product.experts is None
    return dense and kernel.scheme in ("inductor_template", "aiter_triton")
