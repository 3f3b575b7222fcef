"""Composable Kernel: `void ck::kernel_gemm_xdl_cshuffle_v3<...>` and `ck_tile::kentry<...>`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from traceanalyzer.names.build import blocks, by_rule, groups, kernel
from traceanalyzer.names.cpp_text import NameView, integers, template_arguments
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register
from traceanalyzer.names.vocabulary import classify

KNOB = "AITER's tuned CSV files (aiter/configs), which choose among the compiled instances"
_GRIDWISE = re.compile(r"\bck::(Gridwise\w{1,120})<")
_CLASS = re.compile(r"\bkentry<[^<>]{0,80}?(?:ck_tile::)?(\w{1,120})[<>,]")
_TILE_SHAPE = re.compile(
    r"\bTile(?:Gemm|Flatmm)\w{0,40}Shape<(?:ck_tile::)?sequence<(\d{1,4}), ?(\d{1,4}), ?(\d{1,4})>"
)
_CONVOLVES = re.compile(r"grouped_conv|bwd_weight|bwd_data|conv_to_gemm|convolution|conv2d|conv3d|_conv_")
"""A convolution is computed as a product, by kernels that are named after it; the template or the direction tells."""
_THREADS = frozenset({64, 128, 256, 512, 1024})


@register("ck", order=85, contains=("void ck::", "_zn2ck"), pattern=r"^(?:void ck::|_ZN2ck)")
def read_ck(view: NameView, _match: re.Match[str]) -> KernelName:
    """The first run of whole numbers in the gridwise template: threads, M, N, K.

    Block-scaled variants have the scale's block in between, MX variants the scale's block size before.
    """
    rule = classify(view.function)
    if _CONVOLVES.search(view.lower):
        return kernel(view, "ck", "convolution", library="Composable Kernel")
    if rule is None or rule.kind != "gemm":
        kind = "unknown" if rule is None else rule.kind
        return kernel(view, "ck", kind, library="Composable Kernel")
    return kernel(
        view,
        "ck",
        "gemm",
        family="moe_gemm" if "moe" in view.lower else "gemm",
        **blocks(_gridwise_tile(view.cxx)),
        retunable=True,
        knob=KNOB,
        library="Composable Kernel",
    )


def _gridwise_tile(text: str) -> tuple[int, int, int] | None:
    gridwise = _GRIDWISE.search(text)
    if gridwise is None:
        return None
    run: list[int] = []
    for value in integers(template_arguments(text, gridwise.end() - 1)):
        if value is None:
            if run:
                break
            continue
        run.append(value)
    name = gridwise[1]
    if run and "MX" in name and run[0] not in _THREADS:
        run = run[1:]
    if "BlockScale" in name or "ABScale" in name:
        run = run[:1] + run[4:]
    if len(run) < 4 or run[0] not in _THREADS or any(extent % 8 or not extent for extent in run[1:4]):
        return None
    return run[1], run[2], run[3]


@register(
    "ck_tile", order=86, contains=("ck_tile",), pattern=r"ck_tile::kentry<|_ZN7ck_tile6kentry|^(?:void )?ck_tile::"
)
def read_ck_tile(view: NameView, _match: re.Match[str]) -> KernelName:
    """One entry function for all: the kernel class in its arguments tells the kind, `TileGemmShape` the tile."""
    name = _kernel_class(view)
    rule = classify(name) or classify(view.identifier)
    fields: dict[str, object] = {}
    if rule is not None and rule.kind == "gemm":
        fields = {**blocks(_tile_shape(view)), "retunable": True, "knob": KNOB}
    return by_rule(view, "ck_tile", rule, library="Composable Kernel", **fields)


def _kernel_class(view: NameView) -> str:
    """`ck_tile::kentry<1, ck_tile::FmhaFwdKernel<...>>` -> `FmhaFwdKernel`; the function where there is none."""
    if view.is_mangled:
        names = [token for token in view.tokens if isinstance(token, str) and token not in {"ck_tile", "kentry"}]
        return names[0] if names else view.function
    inner = _CLASS.search(view.text)
    return inner[1] if inner else view.function


def _tile_shape(view: NameView) -> Sequence[str | int] | None:
    if "<" in view.cxx:
        return groups(_TILE_SHAPE.search(view.cxx))
    tokens = view.tokens
    for at, token in enumerate(tokens):
        if isinstance(token, str) and token.startswith(("TileGemm", "TileFlatmm")) and token.endswith("Shape"):
            numbers = [value for value in tokens[at + 2 : at + 5] if isinstance(value, int)]
            if tokens[at + 1 : at + 2] == ["sequence"] and len(numbers) == 3:
                return numbers
    return None
