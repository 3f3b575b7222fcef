"""torch.compile: templates (`triton_tem_fused_mm_0`) and fused loops (`triton_red_fused_add_mean_mul_3`)."""

from __future__ import annotations

import re

from traceanalyzer.names.build import kernel
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register
from traceanalyzer.names.vocabulary import classify

KNOB = "Inductor max-autotune (TORCHINDUCTOR_MAX_AUTOTUNE_GEMM=1); the chosen tile is in the launching op's arguments"
_PRODUCTS = re.compile(r"_scaled_grouped_mm|_scaled_mm|_grouped_mm|_int_mm|addmm|baddbmm|bmm|(?<![a-z])mm|convolution")
_MOVES = re.compile(
    r"_to_copy|constant_pad_nd|moe_forward(?:_shared)?|copy_|copy|clone|cat|view|slice_scatter|slice|select_scatter"
    r"|select|empty_like|empty_strided|new_empty|empty|new_zeros|zeros_like|zeros|ones|full_like|full|fill_|fill"
    r"|transpose|permute|expand|unsqueeze|squeeze|split_with_sizes|split|reshape|unbind|stack|t|lift_fresh|detach"
    r"|as_strided|alias|constant|pad|convert_element_type|getitem|repeat|narrow|zero_"
)


@register(
    "inductor_template",
    order=50,
    prefixes=("triton_tem_",),
    pattern=r"^triton_tem_(?:fused_)?(?P<ops>\w{1,4000}?)(?:_(?P<serial>\d{1,9}))?$",
)
def read_template(view: NameView, match: re.Match[str]) -> KernelName:
    """A tuned template: a matrix product, or flex attention. The tile is not in the name."""
    ops = match["ops"]
    if "flex_attention" in ops or "flex_decoding" in ops:
        return kernel(
            view, "inductor_template", "attention", fused_ops=ops, retunable=True, knob=KNOB, library="Inductor"
        )
    if "convolution" in ops:
        return kernel(view, "inductor_template", "convolution", fused_ops=ops, library="Inductor")
    others = re.sub(r"^_+|_+$", "", re.sub(r"_{2,}", "_", _PRODUCTS.sub("", _MOVES_TOKEN.sub("_", ops))))
    return kernel(
        view,
        "inductor_template",
        "gemm",
        fused_ops=ops,
        epilogue=others or None,
        retunable=True,
        knob=KNOB,
        library="Inductor",
    )


_MOVES_TOKEN = re.compile(rf"(?:(?<=_)|^)(?:{_MOVES.pattern})(?=_|$)")


@register(
    "inductor_fused",
    order=51,
    prefixes=("triton_", "cpp_fused", "graph_"),
    pattern=r"^(?:graph_\d{1,6}_)?(?:triton_(?P<loop>poi|red|per|for|spl|mix|sca|unk|[a-z]{3})_fused|cpp_fused)(?P<ops>_\w{0,4000}?)??(?:_(?P<serial>\d{1,9}))?$",
)
def read_fused(view: NameView, match: re.Match[str]) -> KernelName:
    """Fused loops: the kind follows from the list of fused ops; the serial number changes with every build."""
    ops = (match["ops"] or "").removeprefix("_")
    kind = _kind(ops, match["loop"])
    return kernel(view, "inductor_fused", kind, fused_ops=ops or None, library="Inductor")


_TELLING = (
    "norm rope kv_write attention activation embedding quantize moe_routing moe_combine sampling ssm communication"
)
_TELLING_KINDS = frozenset(_TELLING.split())


def _rotates(words: set[str]) -> bool:
    """Whether halves are multiplied by a table, one is subtracted or negated, and both put together again."""
    return {"add", "mul"} <= words and not words.isdisjoint({"cat", "stack"}) and not words.isdisjoint({"neg", "sub"})


def _kind(ops: str, loop: str | None) -> str:
    """Kind of a list of fused ops: what sets the kernel apart, else what its loop does."""
    words = set(ops.split("_"))
    rule = classify(ops) if ops else None
    named = rule.kind if rule is not None and rule.kind in _TELLING_KINDS else None
    signs = (
        ("norm", "rsqrt" in words and words & {"mean", "pow", "var", "sum"}),
        ("sampling", words & {"argmax", "exponential"}),
        ("rope", words & {"cos", "sin"} and words & {"mul", "cat", "sub", "add"}),
        ("rope", _rotates(words)),
        (named, named),
        ("softmax", "softmax" in words),
        ("sort", words & {"sort", "topk"}),
        ("quantize", words & {"amax", "abs"} and words & {"clamp", "div", "reciprocal"}),
        ("memory", ops and not _MOVES_TOKEN.sub("", ops).strip("_")),
        ("index", words & {"gather", "scatter", "index", "take"}),
        ("reduction", loop in {"red", "per"}),
    )
    return next((kind for kind, fits in signs if kind and fits), "elementwise")
