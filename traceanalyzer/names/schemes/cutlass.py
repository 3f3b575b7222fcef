"""CUTLASS 2 (`cutlass_80_tensorop_..._64x64_64x6_tn_align8`) and CUTLASS 3 (`cutlass::device_kernel<...>`)."""

from __future__ import annotations

import re

from traceanalyzer.names.build import blocks, by_rule, kernel, number, same_inputs
from traceanalyzer.names.cpp_text import NameView, integers, template_arguments
from traceanalyzer.names.kernel_name import Dtypes, KernelName
from traceanalyzer.names.registry import register
from traceanalyzer.names.vocabulary import classify

_REBUILD = "Only by rebuilding: the tile is a template argument"
_SWAPPED = "The two operands may be swapped: block_m may run along the weight's N."
_EXTENT = re.compile(r"cute::(?:C|Int|constant)<(?:int, ?)?(\d{1,5})[uUlL]*>|cute::_(\d{1,5})")
_COLLECTIVE = re.compile(r"\bCollectiveMma<")
_GROUPED = ("groupproblemshape", "ptr_array", "ptrarray", "grouped_gemm", "groupedgemm")
_ATTENTION = re.compile(r"FlashAttn|[Ff]mha|FMHA|\bflash::|5flash|Mla[A-Z<_]|MLA|[Aa]ttention")


@register(
    "cutlass2",
    order=70,
    contains=("cutlass_", "cutlass3x_"),
    pattern=(
        r"cutlass_(?:\d{2,3}_)?(?P<head>[a-z0-9_]{0,80}?gemm[a-z0-9_]{0,80}?)_(?P<m>\d{1,4})x(?P<n>\d{1,4})"
        r"(?:_(?P<k>\d{1,4})x(?P<stages>\d{1,2}))(?=_|\b)"
    ),
)
def read_cutlass2(view: NameView, match: re.Match[str]) -> KernelName:
    """Tile M x N, then K x stages. The instruction (s16816) and the alignment are not part of it."""
    types = re.search(r"_(bf16|f16|tf32|s8|f32)_", match["head"] + "_")
    return kernel(
        view,
        "cutlass2",
        "gemm",
        **blocks(match.group("m", "n", "k")),
        stages=number(match["stages"]),
        dtypes=same_inputs(types[1], types[1]) if types else Dtypes(),
        epilogue="relu" if "_relu" in match["head"] else None,
        knob=_REBUILD,
        library="CUTLASS",
    )


@register(
    "cutlass3_procedural",
    order=69,
    contains=("cutlass3x_",),
    pattern=(
        r"cutlass3x_sm\d{2,3}[af]?_\w{1,160}?_(?P<m>\d{1,4})x(?P<n>\d{1,4})x(?P<k>\d{1,4})"
        r"_(?P<cluster>\d{1,2}x\d{1,2}x\d{1,2})_(?P<stages>\d{1,2})(?=_|$)"
    ),
)
def read_cutlass3_procedural(view: NameView, match: re.Match[str]) -> KernelName:
    """Tile M x N x K, cluster, stages (0: the builder chooses, so they are unknown)."""
    return kernel(
        view,
        "cutlass3",
        "gemm",
        **blocks(match.group("m", "n", "k")),
        stages=number(match["stages"]),
        cluster=tuple(int(part) for part in match["cluster"].split("x")),
        knob=_REBUILD,
        library="CUTLASS",
    )


@register("cutlass3", order=71, contains=("device_kernel",), pattern=r"\bdevice_kernel\b|13device_kernel")
def read_device_kernel(view: NameView, _match: re.Match[str]) -> KernelName:
    """One function name for products, machete and attention: the template arguments tell them apart.

    The tile is the first cute tuple of constants after the dispatch policy of `CollectiveMma`; an attention
    kernel's tuple holds the head size and is not read.
    """
    lower = view.cxx.lower()
    if _ATTENTION.search(view.cxx):
        library = "FlashAttention" if "flash" in lower else "CUTLASS"
        return kernel(view, "cutlass3", "attention", knob=_REBUILD, library=library)
    if "gemm" not in lower and "collectivemma" not in lower and "machete" not in lower:
        return by_rule(view, "cutlass3", classify(view.identifier), library="CUTLASS")
    collective = _collective(view.cxx)
    grouped = any(mark in lower for mark in _GROUPED)
    return kernel(
        view,
        "cutlass3",
        "gemm",
        family="moe_gemm" if grouped or "moe" in lower else "gemm",
        **collective,
        knob=_REBUILD,
        ambiguous=_SWAPPED if collective.get("block_m") else None,
        library="machete" if "machete" in lower else "CUTLASS",
    )


def _collective(text: str) -> dict[str, object]:
    """Return tile, stages, cluster and element types of the first `CollectiveMma<policy, tile, A, ..., B, ...>`."""
    opening = _COLLECTIVE.search(text)
    if opening is None:
        return {}
    arguments = template_arguments(text, opening.end() - 1)
    policy = arguments[0]
    policy_arguments = template_arguments(policy, policy.find("<")) if "<" in policy else []
    numbers = [value for value in integers(policy_arguments) if value is not None]
    clusters = [shape for argument in policy_arguments if (shape := _extents(argument))]
    tile = _extents(arguments[1]) if len(arguments) > 1 else None
    return {
        **blocks(tile if tile is not None and len(tile) == 3 else None),
        "stages": numbers[0] if numbers and numbers[0] else None,
        "cluster": clusters[0] if clusters and all(clusters[0]) else None,
        "dtypes": _operands(arguments),
    }


def _extents(argument: str) -> tuple[int, ...] | None:
    """`cute::tuple<cute::C<64>, cute::C<128> >` -> (64, 128); ``None`` unless every part is a constant."""
    if not argument.startswith("cute::tuple<"):
        return None
    parts = [_EXTENT.fullmatch(part.strip()) for part in template_arguments(argument, argument.find("<"))]
    if not parts or any(part is None for part in parts):
        return None
    return tuple(int(part[1] or part[2]) for part in parts if part is not None)


def _operands(arguments: list[str]) -> Dtypes:
    """Element types of A and B, only where they are the same: which is the weight, the name does not say."""
    if len(arguments) < 5 or not re.fullmatch(r"[\w:]{1,80}", arguments[2]):
        return Dtypes()
    return same_inputs(arguments[2], arguments[4]) if arguments[2] == arguments[4] else Dtypes()
