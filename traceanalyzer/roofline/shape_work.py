"""FLOP and bytes of an op from the shapes a trace gives: matrix products, attention, norms, copies, elementwise."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any


@dataclass(frozen=True)
class ShapeWork:
    """What an op has to do, every operand moved once.

    Attributes:
        what: ``gemm``, ``attention``, ``norm`` or ``elementwise``.
        flops: operations.
        bytes: bytes read and written.
        dtype: data type whose peak bounds it.
        m, n, k: sizes of a matrix product, batch included in m; None otherwise.
        note: how the numbers come about.
    """

    what: str
    flops: float
    bytes: float
    dtype: str
    note: str
    m: int | None = None
    n: int | None = None
    k: int | None = None


@dataclass(frozen=True)
class TensorArgument:
    """One tensor argument: its sizes, element size in bytes and data type."""

    dims: tuple[int, ...]
    size: int
    dtype: str
    position: int

    @property
    def numel(self) -> int:
        """Elements."""
        return math.prod(self.dims)

    @property
    def bytes(self) -> int:
        """Bytes."""
        return self.numel * self.size


TYPES: dict[str, tuple[int, str]] = {
    "bfloat16": (2, "bf16"),
    "half": (2, "fp16"),
    "float": (4, "fp32"),
    "double": (8, "fp64"),
    "int": (4, "int32"),
    "unsigned int": (4, "int32"),
    "long int": (8, "int64"),
    "long": (8, "int64"),
    "short int": (2, "int16"),
    "short": (2, "int16"),
    "signed char": (1, "int8"),
    "char": (1, "int8"),
    "unsigned char": (1, "uint8"),
    "bool": (1, "bool"),
    "float8_e4m3fn": (1, "fp8"),
    "float8_e4m3fnuz": (1, "fp8"),
    "float8_e5m2": (1, "fp8"),
    "float8_e5m2fnuz": (1, "fp8"),
    "float8_e8m0fnu": (1, "uint8"),
}
"""Input type in lower case, namespace dropped -> bytes of an element, data type."""


@lru_cache(maxsize=65_536)
def shape_work(op: str, dims: str, types: str | None, concrete: str | None, kernel: str) -> ShapeWork | None:
    """Return what an op has to do, or None where its shapes do not tell.

    Args:
        op: the op's name, such as ``aten::mm``.
        dims: its Input Dims as JSON.
        types: its input types as JSON.
        concrete: its concrete inputs as JSON.
        kernel: the kernel's name, for what the op does not say (TF32, the width of listed tensors).
    """
    listed = re.search(r"OpaqueType<(\d{1,2})u?>", kernel)
    parsed = _tensors(dims, types, int(listed[1]) if listed else None)
    if parsed is None:
        return None
    values = _json(concrete)
    scalars = [str(value) for value in values] if isinstance(values, list) else []
    name = op.rsplit("::", 1)[-1].lower()
    if op.startswith("triton_"):
        return _pointwise(parsed, scalars)
    for pattern, read in READERS:
        if re.search(pattern, name):
            work = read(name, parsed, scalars)
            return _in_tf32(work, kernel) if work else None
    return None


def _json(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None


def _tensors(dims: str, types: str | None, listed_size: int | None) -> list[TensorArgument] | None:
    """The tensor arguments in order, lists of tensors flattened; None where a type is unknown.

    Lists do not tell their tensors' type; ``listed_size`` is the bytes of an element as the kernel's name has it.
    """
    sizes, names = _json(dims), _json(types)
    if not isinstance(sizes, list) or not isinstance(names, list) or len(sizes) != len(names):
        return None
    tensors: list[TensorArgument] = []
    for position, (size, name) in enumerate(zip(sizes, names, strict=True)):
        # Scalars have no dimensions.
        if isinstance(size, list) and size:
            argument = _argument(size, str(name), position, listed_size)
            if argument is None:
                return None
            tensors += argument
    return tensors


def _argument(size: list[Any], name: str, position: int, listed_size: int | None) -> list[TensorArgument] | None:
    """One argument: a tensor, or each one of a list of tensors; None where its type is unknown."""
    if all(isinstance(part, list) for part in size):
        if listed_size is None:
            return None
        return [TensorArgument(tuple(part), listed_size, "opaque", position) for part in size if part]
    known = TYPES.get(name.removeprefix("c10::").lower())
    if known is None or not all(isinstance(part, int) and part >= 0 for part in size):
        return None
    return [TensorArgument(tuple(size), *known, position)]


def _gemm(name: str, tensors: list[TensorArgument], scalars: list[str]) -> ShapeWork | None:
    """[.., M, K] x [K, N] or [N, K]: 2 M N K FLOP; both operands read and the result written."""
    operands = _operands(name, tensors)
    if operands is None:
        return None
    left, right = operands
    batch = right.dims[0] if len(right.dims) == 3 else 1
    k = left.dims[-1]
    inner, outer = right.dims[-2:]
    if k not in (inner, outer) or not (k and batch) or (left.numel // k) % batch:
        return None
    transposed = name.startswith("linear") or inner != k
    n = inner if transposed else outer
    rows = left.numel // k
    width = 2 if left.size == 1 else left.size
    return ShapeWork(
        what="gemm",
        flops=2.0 * rows * n * k,
        bytes=float(left.bytes + right.bytes + rows * n * width),
        dtype="fp32" if left.dtype == "fp64" else left.dtype,
        note=f"{name} [{rows}, {k}] x [{k}, {n}]" + (f" in {batch} batches" if batch > 1 else ""),
        m=rows,
        n=n,
        k=k,
    )


def _operands(name: str, tensors: list[TensorArgument]) -> tuple[TensorArgument, TensorArgument] | None:
    """The two matrices of a product, in order; None where there are not two."""
    matrices = [tensor for tensor in tensors if len(tensor.dims) >= 2]
    if name in ("addmm", "baddbmm", "cutlass_scaled_mm"):
        # The first argument is the bias, or the result.
        matrices = [tensor for tensor in matrices if tensor.position in (1, 2)]
    return (matrices[0], matrices[1]) if len(matrices) >= 2 else None


def _attention(name: str, tensors: list[TensorArgument], scalars: list[str]) -> ShapeWork | None:
    """4 H h FLOP per (query, visible key) pair; queries, keys, values read and outputs written.

    Only for batches of equal lengths: packed sequences do not tell theirs.
    """
    qkv = [tensor for tensor in tensors if tensor.position < 3 and len(tensor.dims) == 4]
    causal = _causal(name, scalars)
    if len(qkv) < 3 or causal is None:
        return None
    q, k, v = qkv[:3]
    heads_first = name.startswith("_scaled_dot_product") or name.startswith("scaled_dot_product")
    batch, (seq, heads) = q.dims[0], (q.dims[2], q.dims[1]) if heads_first else (q.dims[1], q.dims[2])
    context = k.dims[2] if heads_first else k.dims[1]
    if causal and seq > context:
        return None
    pairs = seq * (context - seq) + seq * (seq + 1) / 2 if causal else float(seq * context)
    words = "causal" if causal else "every pair"
    return ShapeWork(
        what="attention",
        flops=batch * heads * pairs * 2.0 * (q.dims[-1] + v.dims[-1]),
        bytes=float(2 * q.bytes + k.bytes + v.bytes),
        dtype=q.dtype,
        note=f"{name} of {batch} x {seq} queries, {heads} heads of {q.dims[-1]}, {words}",
    )


CAUSAL_ARGUMENT = {
    "_flash_attention_forward": 8,
    "_scaled_dot_product_flash_attention": 4,
    "_scaled_dot_product_cudnn_attention": 6,
    "_scaled_dot_product_efficient_attention": 6,
    "scaled_dot_product_attention": 5,
}
"""Op -> position of its is_causal argument."""


def _causal(name: str, scalars: list[str]) -> bool | None:
    position = CAUSAL_ARGUMENT.get(name)
    if position is None or position >= len(scalars) or scalars[position].lower() not in ("true", "false"):
        return None
    return scalars[position].lower() == "true"


def _norm(name: str, tensors: list[TensorArgument], scalars: list[str]) -> ShapeWork | None:
    """Input read and result written once, with a residual add twice; and the weights."""
    if not tensors:
        return None
    largest = max(tensors, key=lambda tensor: tensor.numel)
    passes = 4 if "add" in name else 2
    weights = sum(tensor.bytes for tensor in tensors if len(tensor.dims) == 1)
    fused = ", residual add fused in" if passes == 4 else ""
    return ShapeWork(
        what="norm",
        flops=passes * float(largest.numel),
        bytes=float(passes * largest.bytes + weights),
        dtype="fp32",
        note=f"{name} of {list(largest.dims)}{fused}",
    )


def _elementwise(name: str, tensors: list[TensorArgument], scalars: list[str]) -> ShapeWork | None:
    """Every input read once, the result, of their common shape, written once; what is filled is only written."""
    if not tensors:
        return None
    if name in ("copy_", "_copy_"):
        # The first argument is written only.
        moved = sum(tensor.bytes for tensor in tensors[:2])
        return _moved(name, tensors, moved, float(tensors[0].numel))
    if name in ("fill_", "zero_"):
        return _moved(name, tensors[:1], tensors[0].bytes, 0.0)
    shape = _broadcast([tensor.dims for tensor in tensors])
    if shape is None:
        return None
    if name in COMPARISONS:
        width = 1
    else:
        floats = [tensor for tensor in tensors if tensor.dtype in ("bf16", "fp16", "fp32", "fp64", "fp8")]
        width = max(tensor.size for tensor in floats or tensors)
    written = math.prod(shape) * width
    return _moved(name, tensors, sum(tensor.bytes for tensor in tensors) + written, float(math.prod(shape)))


def _broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    result: list[int] = []
    for at in range(1, max(map(len, shapes)) + 1):
        sizes = {shape[-at] for shape in shapes if at <= len(shape)} - {1}
        if len(sizes) > 1:
            return None
        result.insert(0, sizes.pop() if sizes else 1)
    return tuple(result)


def _reduce(name: str, tensors: list[TensorArgument], scalars: list[str]) -> ShapeWork | None:
    """The input read once; what is left of it is taken as one value per row."""
    if not tensors:
        return None
    first = tensors[0]
    rows = first.numel // (first.dims[-1] or 1)
    return _moved(name, tensors[:1], first.bytes + rows * first.size, float(first.numel))


def _softmax(name: str, tensors: list[TensorArgument], scalars: list[str]) -> ShapeWork | None:
    return _moved(name, tensors[:1], 2 * tensors[0].bytes, 5.0 * tensors[0].numel) if tensors else None


def _cat(name: str, tensors: list[TensorArgument], scalars: list[str]) -> ShapeWork | None:
    return _moved(name, tensors, 2 * sum(tensor.bytes for tensor in tensors), 0.0) if tensors else None


def _lookup(name: str, tensors: list[TensorArgument], scalars: list[str]) -> ShapeWork | None:
    """A row of the table read and written for each index."""
    integers = [tensor for tensor in tensors if tensor.dtype in ("int64", "int32")]
    tables = [tensor for tensor in tensors if tensor.dtype not in ("int64", "int32") and len(tensor.dims) >= 2]
    if not integers or not tables:
        return None
    table, rows = tables[0], integers[-1].numel
    moved = 2 * rows * math.prod(table.dims[1:]) * table.size + integers[-1].bytes
    return _moved(name, tensors, moved, 0.0)


def _pointwise(tensors: list[TensorArgument], scalars: list[str]) -> ShapeWork | None:
    """A compiled pointwise kernel: each tensor moved once, if none is larger than what the kernel runs over."""
    numbers = [int(value) for value in scalars if re.fullmatch(r"\d{1,15}", value)]
    if not numbers or not tensors:
        return None
    limit = math.prod(numbers)
    if any(tensor.numel > limit for tensor in tensors):
        return None
    return _moved("pointwise", tensors, sum(tensor.bytes for tensor in tensors), float(limit))


def _moved(name: str, tensors: list[TensorArgument], size: float, flops: float) -> ShapeWork:
    shapes = ", ".join(str(list(tensor.dims)) for tensor in tensors[:3])
    return ShapeWork("elementwise", flops, float(size), "fp32", f"{name} of {shapes}, each moved once")


def _in_tf32(work: ShapeWork, kernel: str) -> ShapeWork:
    return replace(work, dtype="tf32") if work.dtype == "fp32" and "tf32" in kernel.lower() else work


COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "logical_not", "isnan", "isfinite"})
ELEMENTWISE = (
    r"^(add|sub|rsub|mul|div|pow|neg|abs|exp|log|sqrt|rsqrt|sin|cos|tanh|sigmoid|silu|gelu|relu|clamp|where|"
    r"masked_fill|eq|ne|lt|le|gt|ge|logical_not|maximum|minimum|fill|zero|copy|_copy|_to_copy|clone|reciprocal)_?$"
)
Reader = Callable[[str, list[TensorArgument], list[str]], ShapeWork | None]
READERS: tuple[tuple[str, Reader], ...] = (
    (r"^(mm|addmm|bmm|baddbmm|linear|matmul|_scaled_mm|_int_mm)$", _gemm),
    (r"^(rocm_)?unquantized_gemm|^(cutlass_)?scaled_mm$", _gemm),
    (r"attention", _attention),
    (r"rms_?norm|layer_?norm", _norm),
    (r"^(mean|sum|amax|amin|max|min|argmax|argmin|all|any|norm|prod|cumsum)$", _reduce),
    (r"^_?(log_)?softmax$", _softmax),
    (r"^(cat|stack)$", _cat),
    (r"^(index_select|embedding)$", _lookup),
    (ELEMENTWISE, _elementwise),
)
"""Op's name -> how its shapes are read; the first that fits counts."""
