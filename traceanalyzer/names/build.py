"""Puts a KernelName together: fills family and role from the kind, and reads numbers and element types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import FAMILY_OF_KIND, ROLE_OF_KIND, Dtypes, KernelName
from traceanalyzer.names.vocabulary import POSITION, KindRule, classify

COLUMN_MAJOR = (
    "The library multiplies column-major matrices: block_m may run along the weight's N (output features)"
    " and block_n along the tokens."
)

SPLIT_NOTE = "Split-K is on; the number of parts is not in the name."

_DTYPES = {
    "bf16": "bf16 bfloat16 __nv_bfloat16 __hip_bfloat16 c10::bfloat16 nv_bfloat16 bfloat16_t hip_bfloat16 b16",
    "fp16": "fp16 f16 half half_t float16 __half c10::half h16",
    "fp32": "fp32 f32 float float32 s",
    "tf32": "tf32",
    "fp64": "fp64 f64 double",
    "fp8_e4m3": "e4m3 fp8 f8 fp8e4nv fp8e4b8 fp8e4m3 float_e4m3_t e4m3fn e4m3fnuz",
    "fp8_e5m2": "e5m2 bf8 fp8e5 fp8e5b16 fp8e5m2 float_e5m2_t",
    "fp4_e2m1": "e2m1 fp4 float_e2m1_t nvfp4",
    "mxfp4": "mxfp4 mxe2m1",
    "mxfp8_e4m3": "mxe4m3",
    "int8": "int8 i8 s8 int8_t",
    "uint8": "u8 uint8 uint8_t",
    "int4": "int4 i4 s4 int4b_t uint4b8_t",
    "int32": "i32 s32 int32",
}
_CANONICAL = {alias: name for name, aliases in _DTYPES.items() for alias in aliases.split()}


def dtype(token: str | None) -> str | None:
    """Return the common name of an element type (`__nv_bfloat16` -> `bf16`); the token itself where it has none."""
    if token is None:
        return None
    key = token.strip().lower().removeprefix("cutlass::").removeprefix("ck_tile::").removeprefix("*")
    return _CANONICAL.get(key, key or None)


def same_inputs(a: str | None, b: str | None, output: str | None = None) -> Dtypes:
    """Return the element types of a product whose name does not tell weight from activation: only if both are alike."""
    left, right = dtype(a), dtype(b)
    both = left if left == right else None
    return Dtypes(output=dtype(output), activation=both, weight=both)


def number(text: str | int | None) -> int | None:
    """Return a positive number of a name; ``None`` for a missing or zero one, and for one too long to be a setting."""
    if isinstance(text, int):
        return text
    if not text or len(text) > 9:
        return None
    return int(text) or None


def blocks(sides: Sequence[str | int | None] | None) -> dict[str, int | None]:
    """Return the sides of a tile, in the order M, N, K, as fields of a reading; none where there is no tile."""
    return dict(zip(("block_m", "block_n", "block_k"), map(number, sides or ()), strict=False))


def groups(match: re.Match[str] | None) -> tuple[str, ...] | None:
    """Return the groups of a match, if there is one."""
    return match.groups() if match else None


def extents(match: re.Match[str] | None) -> tuple[int, ...] | None:
    """Return the groups of a match as numbers, if there is one."""
    return tuple(int(part) for part in match.groups()) if match else None


def first_mark(text: str, marks: Iterable[tuple[str, str]]) -> str | None:
    """Return what the first mark that the text contains stands for."""
    return next((meaning for mark, meaning in marks if mark in text), None)


def joined_words(lower: str, words: Iterable[str]) -> str | None:
    """Return those of some words that follow an underscore in the text, joined by one."""
    return "_".join(word for word in words if f"_{word}" in lower) or None


def kernel(view: NameView, scheme: str, kind: str, **fields: object) -> KernelName:
    """Return a reading of `view`; family and role follow from the kind unless given."""
    fields.setdefault("family", FAMILY_OF_KIND[kind])
    fields.setdefault("role", ROLE_OF_KIND.get(kind))
    return KernelName(name=view.raw, scheme=scheme, kind=kind, **fields)  # type: ignore[arg-type]


def by_rule(view: NameView, scheme: str, rule: KindRule | None, **fields: object) -> KernelName:
    """Return a reading whose kind, family and role a rule of the vocabulary gives; without a rule it is unknown."""
    if rule is None:
        return kernel(view, scheme, "unknown", **fields)
    if rule.family is not None:
        fields.setdefault("family", rule.family)
    if rule.role is not None:
        fields.setdefault("role", None if rule.role == POSITION else rule.role)
    return kernel(view, scheme, rule.kind, **fields)


def by_words(view: NameView, scheme: str, **fields: object) -> KernelName | None:
    """Return a reading whose kind comes from the words of the function name; ``None`` where they say nothing."""
    rule = classify(view.identifier)
    return None if rule is None else by_rule(view, scheme, rule, **fields)
