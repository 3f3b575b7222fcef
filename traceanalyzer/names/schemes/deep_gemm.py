"""DeepGEMM: `void deep_gemm::sm90_fp8_gemm_1d2d_impl<major, M, N, K, groups, BM, BN, BK, ...>`."""

from __future__ import annotations

import re

from traceanalyzer.names.build import blocks, by_words, kernel
from traceanalyzer.names.cpp_text import NameView, integers
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register

_GROUPED = re.compile(r"GemmType(?:\)|::)\s*(\d|\w+)")


@register("deep_gemm", order=95, contains=("deep_gemm", "deepgemm"), pattern=r"(?i)deep_?gemm")
def read(view: NameView, _match: re.Match[str]) -> KernelName | None:
    """The tile is a run of three among the template's numbers; its place depends on architecture and version.

    Shape arguments of 0 are read at launch. Where the numbers at that place cannot be a tile, none is read.
    """
    function = view.function.rsplit("::", 1)[-1]
    if "gemm" not in function or any(word in function for word in ("silu", "quant", "logits")):
        return by_words(view, "deep_gemm", library="DeepGEMM")
    numbers = [value for value in integers(view.template) if value is not None]
    tile, groups = _tile(function, numbers)
    grouped = bool(groups and groups > 1) or "grouped" in function or _is_grouped(view.text)
    return kernel(
        view,
        "deep_gemm",
        "gemm",
        family="moe_gemm" if grouped else "gemm",
        **blocks(tile),
        library="DeepGEMM",
    )


def _tile(function: str, numbers: list[int]) -> tuple[tuple[int, int, int] | None, int | None]:
    """(tile, groups) by the orders in use.

    Hopper: M N K groups BM BN BK. Blackwell: [scale granularities] M N K BM BN BK groups. Before: N K BM BN BK.
    """
    if function.startswith("sm90"):
        start, group = 4, 3
    elif function.startswith("sm"):
        scaled = len(numbers) > 8 and set(numbers[:2]) <= {32, 128}
        start, group = (5, 8) if scaled else (3, 6)
    else:
        start, group = 2, None
    tile = tuple(numbers[start : start + 3])
    if len(tile) != 3 or not _is_tile(tile):
        return None, None
    groups = numbers[group] if group is not None and group < len(numbers) else None
    return (tile[0], tile[1], tile[2]), groups


def _is_tile(tile: tuple[int, ...]) -> bool:
    return all(8 <= extent <= 512 and extent % 8 == 0 for extent in tile) and tile[2] in {32, 64, 128, 256}


def _is_grouped(text: str) -> bool:
    kind = _GROUPED.search(text)
    return kind is not None and kind[1] not in {"0", "Normal"}
