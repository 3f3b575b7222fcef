"""How a kernel of a trace is measured here: which kernel and backend of ``tune run``, on which shape and rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from traceanalyzer.commands.tune.plan.candidates import PlanCandidate, Product, is_fused_moe
from traceanalyzer.commands.tune.plan.result import RowFlip
from traceanalyzer.hardware import Gpu
from traceanalyzer.model import Execution
from traceanalyzer.names import Dtypes, KernelName

MXFP4_STEP = 64
"""vLLM rounds mxfp4 experts up to multiples of this where a GPU needs no more (its mxfp4 layer)."""

PADDINGS = (256, 128)
"""Multiples that vLLM on ROCm pads gpt-oss to, by version and GPU (its sources; docs/tuning.md)."""

ROCM_STEP, ROCM_STEP_OF = 128, {"gfx950": 256}
"""The multiple of current versions: of every GPU, and of those that have their own (its sources; docs/tuning.md)."""

GROUP_M = {"amd": 4, "nvidia": 8}
"""What the heuristics of triton_kernels 3.5.0 (opt_flags.py) take on every shape."""

HALF = ("bf16", "fp16")

FEW_ROWS_AMD = 16
"""triton_kernels 3.5.0 on AMD takes 2 warps for at most this many rows and 8 above: its opt_flags.py."""

WARPS_AMD = ("triton_kernels 3.5.0 takes 2 warps up to 16 rows", "triton_kernels 3.5.0 takes 8 warps above 16 rows")
DEFAULT_TILE = (
    "without a tuned file, vLLM's default takes its small tile up to as many tokens as experts",
    "without a tuned file, vLLM's default takes its large tile above as many tokens as experts",
)

MOST_FLIP_TOKENS = 256
"""Flips beyond this batch size are not worth a measurement of decode steps. Chosen, not fitted."""


@dataclass(frozen=True)
class PlannedBench:
    """What the tune commands take.

    Attributes:
        kernel: for ``--kernel``.
        backend: for ``--backend``.
        dtype: for ``--dtype``; None for the kernel's default.
        n, k: of the product as it runs.
        experts, top_k: on this rank; None for a dense product. A rank of an expert-parallel group sees on average
            ``top_k / ep`` of a token's experts.
        axes: for ``--axis``: what the server's library fixes, so that candidates do not differ in it.
    """

    kernel: str
    backend: str
    dtype: str | None
    n: int
    k: int
    experts: int | None
    top_k: int | None
    axes: tuple[str, ...]

    @property
    def screens(self) -> bool:
        """Whether ``tune screen`` knows the kernel: vLLM's fused_moe is not built in."""
        return self.kernel != "fused_moe"

    @property
    def same_code(self) -> bool:
        """Whether the backend is the very kernel of the trace."""
        return self.backend != "builtin"

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
    chosen: PlanCandidate, execution: Execution | None, gpu: Gpu | None
) -> tuple[tuple[int, int] | None, tuple[str, ...]]:
    """Return (n, k) as the kernel runs them, and what that rests on. Only mxfp4 experts are known to be padded."""
    product = chosen.product
    if product is None:
        return None, ()
    n, k = product.n, product.k
    if chosen.kernel.dtypes.weight != "mxfp4" or chosen.role not in ("moe_gate_up", "moe_down"):
        return (n, k), ()
    width = execution.moe_input_width if execution else None
    rocm = gpu if width is None and gpu is not None and gpu.vendor == "amd" else None
    step = _padding_step(width, rocm)
    gate_up = chosen.role == "moe_gate_up"
    hidden, ffn = (k, n // 2) if gate_up else (n, k)
    padded_hidden, padded_ffn = width or _up(hidden, step), _up(ffn, step)
    padded = (2 * padded_ffn, padded_hidden) if gate_up else (padded_hidden, padded_ffn)
    if padded == (n, k):
        return padded, ()
    change = f"weights padded from {n} x {k} to {padded[0]} x {padded[1]}"
    if rocm is None:
        return padded, (f"{change} (multiples of {step}), inferred",)
    others = " or ".join(str(other) for other in PADDINGS if other != step)
    return padded, (
        f"{change}, as vLLM on ROCm pads (multiples of {step}, in other versions of {others}): assumed, as no kernel "
        "here pads the experts' input",
    )


def _padding_step(width: int | None, rocm: Gpu | None) -> int:
    """The multiple that weights are padded to: of the padded input, else as vLLM does on ROCm, else the least."""
    if rocm is not None:
        return ROCM_STEP_OF.get(rocm.target or "", ROCM_STEP)
    return next((multiple for multiple in PADDINGS if width and width % multiple == 0), MXFP4_STEP)


def _up(size: int, step: int) -> int:
    return -(-size // step) * step


def bench_of(
    chosen: PlanCandidate, dtypes: Dtypes, executed: tuple[int, int] | None, ep: int, vendor: str | None
) -> tuple[PlannedBench | None, str | None]:
    """Return how a kernel can be measured, or why none of the tune commands does."""
    product = chosen.product
    if product is None or executed is None:
        return None, f"its shape is unknown: {chosen.why_unknown}"
    backend = _backend_of(chosen, product, dtypes)
    if isinstance(backend, str):
        return None, backend
    kernel, name = backend
    experts, top_k = product.experts, product.top_k
    if experts is not None and top_k is not None and ep > 1:
        top_k = top_k // ep if top_k % ep == 0 else 1
    return PlannedBench(
        kernel=kernel,
        backend=name,
        dtype=None if kernel == "fp8_block" or dtypes.activation == "bf16" else dtypes.activation,
        n=executed[0],
        k=executed[1],
        experts=experts,
        top_k=top_k,
        axes=(f"group_m={GROUP_M[vendor]}",) if name == "triton_kernels" and vendor in GROUP_M else (),
    ), None


def _backend_of(chosen: PlanCandidate, product: Product, dtypes: Dtypes) -> tuple[str, str] | str:
    """Return the kernel and the backend of ``tune run`` that measure a kernel, or why none does."""
    kernel = chosen.kernel
    if kernel.scheme == "triton_kernels":
        return _triton_kernels(chosen, product, dtypes)
    if is_fused_moe(kernel):
        return _fused_moe(chosen, product, dtypes)
    if re.search(r"w8a8.*fp8|fp8_block", kernel.name, re.IGNORECASE) or _block_scaled_fp8(kernel.knob, dtypes):
        return "fp8_block", "builtin"
    if _plain_triton(chosen) and dtypes.activation in HALF and dtypes.weight in HALF:
        return "dense", "builtin"
    return f"none of the tune commands measures it; it is tuned through {kernel.knob}"


def _triton_kernels(chosen: PlanCandidate, product: Product, dtypes: Dtypes) -> tuple[str, str] | str:
    fits = dtypes.weight == "mxfp4" and dtypes.activation in HALF and chosen.role in ("moe_gate_up", "moe_down")
    if not fits or product.experts is None:
        return "of triton_kernels, tune run measures only gate_up and down with bf16 or fp16 x mxfp4"
    return chosen.role, "triton_kernels"


def _fused_moe(chosen: PlanCandidate, product: Product, dtypes: Dtypes) -> tuple[str, str] | str:
    if dtypes.weight not in HALF or product.experts is None or chosen.role != "moe_gate_up":
        return f"tune run measures vLLM's fused_moe with bf16 or fp16 weights, not {dtypes.weight or 'unknown ones'}"
    return "fused_moe", "fused_moe"


def _block_scaled_fp8(knob: str | None, dtypes: Dtypes) -> bool:
    return bool(knob) and "quantization/utils/configs" in (knob or "") and dtypes.weight == "fp8_block"


def _plain_triton(chosen: PlanCandidate) -> bool:
    """Whether it is a dense product that a compiler wrote in Triton."""
    kernel = chosen.kernel
    dense = kernel.kind == "gemm" and chosen.product is not None and chosen.product.experts is None
    return dense and kernel.scheme in ("inductor_template", "aiter_triton")


def flips(kernel: KernelName, vendor: str | None, experts: int | None, top_k: int | None) -> tuple[RowFlip, ...]:
    """Return both sides of every number of rows at which a library starts to take another tile or number of warps.

    Rows come in steps of ``top_k``, so that the sides are the nearest numbers that a batch can have. Experts are those
    of the whole model.
    """
    step = top_k or 1
    if kernel.scheme == "triton_kernels" and vendor == "amd":
        limit, (below, above) = FEW_ROWS_AMD // step, WARPS_AMD
    elif is_fused_moe(kernel) and experts is not None and experts < MOST_FLIP_TOKENS:
        limit, (below, above) = experts, DEFAULT_TILE
    else:
        return ()
    return tuple(RowFlip(m=tokens * step, why=why) for tokens, why in ((limit, below), (limit + 1, above)) if tokens)


def rows_to_tune(seen: Sequence[int], flip: Sequence[RowFlip]) -> tuple[int, ...]:
    """Return the rows seen, smallest first, then those of flips that were not seen."""
    return tuple(dict.fromkeys((*sorted(seen), *(one.m for one in flip))))
