"""Puts a KernelName together: fills family and role from the kind, and reads numbers and element types."""

from __future__ import annotations

from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import (
    FAMILY_OF_KIND,
    ROLE_OF_KIND,
    Dtypes,
    KernelName,
)
from traceanalyzer.names.vocabulary import POSITION, classify

COLUMN_MAJOR = (
    "The library multiplies column-major matrices: block_m may run along the weight's N (output features)"
    " and block_n along the tokens."
)

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
    """The common name of an element type (`__nv_bfloat16` -> `bf16`); the token itself where it has none."""
    if token is None:
        return None
    key = token.strip().lower().removeprefix("cutlass::").removeprefix("ck_tile::").removeprefix("*")
    return _CANONICAL.get(key, key or None)


def same_inputs(a: str | None, b: str | None, output: str | None = None) -> Dtypes:
    """Element types of a product whose name does not tell the weight from the activation: only if alike."""
    left, right = dtype(a), dtype(b)
    both = left if left == right else None
    return Dtypes(output=dtype(output), activation=both, weight=both)


def number(text: str | None) -> int | None:
    """A positive number of a name; null for a missing or zero one, and for one too long to be a setting."""
    if text is None or not text or len(text) > 9:
        return None
    return int(text) or None


def kernel(view: NameView, scheme: str, kind: str, **fields: object) -> KernelName:
    """A reading of `view`; family and role follow from the kind unless given."""
    fields.setdefault("family", FAMILY_OF_KIND[kind])
    fields.setdefault("role", ROLE_OF_KIND.get(kind))
    return KernelName(name=view.raw, scheme=scheme, kind=kind, **fields)  # type: ignore[arg-type]


def by_words(view: NameView, scheme: str, **fields: object) -> KernelName | None:
    """A reading whose kind comes from the words of the function name; null where they say nothing."""
    rule = classify(view.identifier)
    if rule is None:
        return None
    if rule.family is not None:
        fields.setdefault("family", rule.family)
    if rule.role is not None:
        fields.setdefault("role", None if rule.role == POSITION else rule.role)
    return kernel(view, scheme, rule.kind, **fields)
