"""Number formats: the bits of a weight with its scales, and the data type whose peak limits its GEMM."""

from __future__ import annotations

from dataclasses import dataclass

SCALE_BITS = 16
"""Bits of one group's scale in the int4 formats."""


@dataclass(frozen=True)
class Format:
    """How the values of one kind of tensor are stored and multiplied.

    Attributes:
        name: such as ``bf16``, ``fp8_block`` or ``mxfp4``.
        bits: stored bits of a value, with its share of the scales.
        compute: data type whose peak limits the GEMM: that of both operands in the matrix unit, so ``bf16`` for
            weight-only formats, which are widened before.
        activation_bytes: bytes of an activation that enters the GEMM.
    """

    name: str
    bits: float
    compute: str
    activation_bytes: float

    @property
    def bytes(self) -> float:
        """Stored bytes of a value."""
        return self.bits / 8


FORMATS: dict[str, Format] = {
    entry.name: entry
    for entry in (
        Format("fp32", 32, "fp32", 4),
        Format("bf16", 16, "bf16", 2),
        Format("fp16", 16, "fp16", 2),
        Format("fp8", 8, "fp8", 1),
        # One 4-byte scale for each 128x128 block.
        Format("fp8_block", 8 + 32 / (128 * 128), "fp8", 1),
        Format("fp8_weight", 8, "bf16", 2),
        Format("int8", 8, "int8", 1),
        Format("int8_weight", 8, "bf16", 2),
        Format("int4", 4 + SCALE_BITS / 128, "bf16", 2),
        Format("int4_zero_point", 4 + 2 * SCALE_BITS / 128, "bf16", 2),
        # One 8-bit scale for 32 values. The activations stay in bf16 unless the engine narrows them too.
        Format("mxfp4", 4 + 8 / 32, "bf16", 2),
        Format("mxfp4_w4a4", 4 + 8 / 32, "fp4", (4 + 8 / 32) / 8),
        # One 8-bit scale for 16 values, weights and activations alike.
        Format("nvfp4", 4 + 8 / 16, "fp4", (4 + 8 / 16) / 8),
        Format("nvfp4_weight", 4 + 8 / 16, "bf16", 2),
    )
}
"""The formats in which models are published. Source of the bits: the formats' definitions."""

ALIASES = {
    "bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32",
    "float8": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "float8_e4m3fn": "fp8", "float8_e5m2": "fp8",
    "w8a8": "int8", "awq": "int4_zero_point", "gptq": "int4", "fp4": "nvfp4",
}  # fmt: skip


def format_named(name: str) -> Format | None:
    """Return a format by its name or a usual alias, in any case; None for an unknown name."""
    folded = name.strip().lower().removeprefix("torch.").replace("-", "_")
    return FORMATS.get(ALIASES.get(folded, folded))


def int4(group_size: int, *, zero_point: bool = False) -> Format:
    """Return weight-only 4-bit integers with one scale per group and, if asked for, a zero point as wide.

    A group size of -1 is a whole row, whose scale does not count.
    """
    extra = 0.0 if group_size < 1 else SCALE_BITS * (2 if zero_point else 1) / group_size
    return Format("int4_zero_point" if zero_point else "int4", 4 + extra, "bf16", 2)


BF16 = FORMATS["bf16"]
