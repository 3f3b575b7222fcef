"""TensorRT-LLM generated kernels: `bmm_Bfloat16_E2m1E2m1_Fp32_..._t128x8x512_s5_..._c1x1x1_...`, `fmhaSm100...`."""

from __future__ import annotations

import re

from traceanalyzer.names.build import blocks, extents, joined_words, kernel, number, same_inputs
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register

KNOB = "FlashInfer's autotuner, which chooses among the generated kernels"
_TYPE = r"(?:Mx|Nv)?[A-Z][a-z]*\d{0,2}(?:m\d)?"
_CLUSTER = re.compile(r"_(?:c|cga)(\d{1,2})x(\d{1,2})x(\d{1,2})(?=_|$)")
_EPILOGUES = ("swiglu", "geglu", "relu2", "silu", "gelu")
_TRANSPOSED = (
    "The kernel computes the transposed output: block_m runs along the weight's N and block_n along the tokens."
)


@register(
    "trtllm_gen",
    order=90,
    prefixes=("bmm_", "gemm_", "gemmgatedact_"),
    pattern=(
        rf"^(?P<form>[Bb]mm|[Gg]emm|[Gg]emmGatedAct)_(?P<output>{_TYPE})_(?P<a>{_TYPE}?)(?P<b>{_TYPE})_(?P<acc>Fp32|Fp16)"
        r"(?P<middle>(?:_\w{1,60}?)??)_t(?P<m>\d{1,4})x(?P<n>\d{1,4})x(?P<k>\d{1,4})(?:u\d)?_s(?P<stages>[\dx]{1,30})"
        r"(?P<rest>(?:_\w{0,400})?)$"
    ),
)
def read_product(view: NameView, match: re.Match[str]) -> KernelName:
    """Output, inputs, accumulator; tile after t, stages after s, epilogue tile (et), instruction (m), cluster (c)."""
    rest = match["rest"]
    gated = "gatedact" in view.lower or "swiglu" in view.lower or "_geglu" in view.lower
    batched = match["form"].lower() == "bmm"
    stages = match["stages"]
    return kernel(
        view,
        "trtllm_gen",
        "gemm",
        family="moe_gemm" if batched else "gemm",
        role="moe_gate_up" if gated and batched else None,
        **blocks(match.group("m", "n", "k")),
        stages=number(stages) if stages.isdecimal() else None,
        cluster=extents(_CLUSTER.search(rest)),
        dtypes=same_inputs(match["a"] or match["b"], match["b"], match["output"]),
        epilogue=joined_words(view.lower, _EPILOGUES),
        retunable=True,
        knob=KNOB,
        ambiguous=_TRANSPOSED if "_transOut" in rest else None,
        library="TensorRT-LLM",
    )


@register("trtllm_fmha", order=91, prefixes=("fmha",), pattern=r"^fmha(?:Sm\d|_v\d|Kernel|Reduction)")
def read_attention(view: NameView, _match: re.Match[str]) -> KernelName:
    """H128 is the head size, P32 the page, Q8 Kv128 the step of the loop: not a product's tile."""
    return kernel(view, "trtllm_fmha", "attention", library="TensorRT-LLM")
