"""What a kernel multiplies (Problem) and how it does it (Config)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import Any

DTYPES = ("bf16", "fp16", "fp32", "fp8")
ELEMENT_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "fp8": 1}


@dataclass(frozen=True, order=True)
class Problem:
    """One matrix product, ``[m, k] x [k, n]``.

    Attributes:
        m: rows; in a mixture of experts tokens x top-k, spread over the experts.
        n: output columns of the product itself (before an activation halves them).
        k: the reduced dimension.
        dtype: of the activations, one of ``DTYPES``.
        experts: how many weight matrices there are; ``None`` for a dense product.
        top_k: experts per token; ``None`` for a dense product.
    """

    m: int
    n: int
    k: int
    dtype: str = "bf16"
    experts: int | None = None
    top_k: int | None = None

    def __post_init__(self) -> None:
        if min(self.m, self.n, self.k) < 1:
            raise ValueError(f"m, n and k must be positive, not {self.m}, {self.n}, {self.k}")
        if self.dtype not in DTYPES:
            raise ValueError(f"unknown data type {self.dtype!r} (known: {', '.join(DTYPES)})")
        if (self.experts is None) != (self.top_k is None):
            raise ValueError("experts and top_k are given together or not at all")
        if self.experts is not None and self.top_k is not None:
            if not 1 <= self.top_k <= self.experts:
                raise ValueError(f"top_k must lie between 1 and experts ({self.experts}), not {self.top_k}")
            if self.m % self.top_k:
                raise ValueError(f"m = {self.m} rows are not a whole number of tokens with top_k = {self.top_k}")

    @property
    def tokens(self) -> int:
        """Rows of the activations before they are spread over experts."""
        return self.m // (self.top_k or 1)

    @property
    def label(self) -> str:
        """The problem in words, such as ``m=4 n=5760 k=2880 bf16, top 4 of 32 experts``."""
        experts = f", top {self.top_k} of {self.experts} experts" if self.experts is not None else ""
        return f"m={self.m} n={self.n} k={self.k} {self.dtype}{experts}"

    def with_m(self, m: int) -> Problem:
        """Return the same product with other rows."""
        return replace(self, m=m)

    def to_dict(self) -> dict[str, int | str | None]:
        """Return the form that sweep files use."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Problem:
        """Read what ``to_dict`` wrote.

        Raises:
            ValueError: a key is missing, unknown or out of range.
        """
        return cls(**_checked(cls, values, text=("dtype",)))


@dataclass(frozen=True, order=True)
class Config:
    """The meta-parameters of one launch.

    Attributes:
        block_m: rows of the output tile of a program.
        block_n: columns of the tile.
        block_k: how much of k one iteration reduces.
        split_k: programs that share one tile, each reducing a part of k.
        group_m: row tiles that are visited before the next column tile, so that weights are reused from the L2 cache.
        num_warps: warps (wavefronts) per program.
        num_stages: depth of the software pipeline.
        waves_per_eu: AMD: wavefronts per SIMD that the register allocator aims at; ``None`` leaves it to the compiler.
        matrix_instr_nonkdim: AMD: the matrix instruction's rows, 16 or 32; ``None`` leaves it to the compiler.
    """

    block_m: int
    block_n: int
    block_k: int
    split_k: int = 1
    group_m: int = 1
    num_warps: int = 4
    num_stages: int = 2
    waves_per_eu: int | None = None
    matrix_instr_nonkdim: int | None = None

    def __post_init__(self) -> None:
        for name in ("block_m", "block_n", "block_k", "num_warps"):
            value = getattr(self, name)
            if value < 1 or value & (value - 1):
                raise ValueError(f"{name} must be a power of two, not {value}")
        for name in ("split_k", "group_m", "num_stages"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")

    @property
    def tile(self) -> str:
        """The tile as kernel names write it, such as ``16x128x128x1``."""
        return f"{self.block_m}x{self.block_n}x{self.block_k}x{self.split_k}"

    @property
    def label(self) -> str:
        """Every parameter that is not at its default, on one line."""
        amd = {"waves": self.waves_per_eu, "nonkdim": self.matrix_instr_nonkdim}
        extra = "".join(f" {key}={value}" for key, value in amd.items() if value is not None)
        return f"{self.tile} warps={self.num_warps} stages={self.num_stages} group={self.group_m}{extra}"

    @property
    def constants(self) -> dict[str, int]:
        """The parameters that every kernel takes as constants."""
        return {name: getattr(self, name) for name in ("block_m", "block_n", "block_k", "split_k", "group_m")}

    def options(self, vendor: str) -> dict[str, int]:
        """Return what the compiler takes beside the kernel's own constants.

        Args:
            vendor: ``nvidia`` or ``amd``; AMD's two extra parameters are unknown to NVIDIA's compiler.
        """
        chosen: dict[str, int] = {"num_warps": self.num_warps, "num_stages": self.num_stages}
        if vendor == "amd":
            amd = {"waves_per_eu": self.waves_per_eu, "matrix_instr_nonkdim": self.matrix_instr_nonkdim}
            chosen |= {key: value for key, value in amd.items() if value is not None}
        return chosen

    def to_dict(self) -> dict[str, int | None]:
        """Return the form that sweep files use."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Config:
        """Read what ``to_dict`` wrote.

        Raises:
            ValueError: a key is missing, unknown or out of range.
        """
        return cls(**_checked(cls, values))


def _checked(cls: type, values: Mapping[str, Any], text: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the values as arguments of a dataclass of integers (and the texts named)."""
    known = {field.name: field for field in fields(cls)}
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r} (known: {', '.join(known)})")
    for name, value in values.items():
        right = isinstance(value, str) if name in text else isinstance(value, int) and not isinstance(value, bool)
        if not right and not (value is None and "None" in str(known[name].type)):
            raise ValueError(f"{name} cannot be {value!r}")
    missing = [name for name, field in known.items() if field.default is MISSING and name not in values]
    if missing:
        raise ValueError(f"{missing[0]} is missing")
    return dict(values)
