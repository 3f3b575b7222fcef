"""Compilation targets and their limits."""

from __future__ import annotations

import re
from dataclasses import dataclass

KIB = 1024

# Shared memory one program may use. NVIDIA: CUDA C++ Programming Guide, "Technical specifications per compute
# capability" (maximum per thread block). AMD: LDS per workgroup, CDNA 3/4 and RDNA 3/4 instruction set documents.
SHARED_LIMIT = {
    "sm_75": 64 * KIB,
    "sm_80": 163 * KIB,
    "sm_86": 99 * KIB,
    "sm_87": 163 * KIB,
    "sm_89": 99 * KIB,
    "sm_90": 227 * KIB,
    "sm_100": 227 * KIB,
    "sm_103": 227 * KIB,
    "sm_120": 99 * KIB,
    "sm_121": 99 * KIB,
    "gfx90a": 64 * KIB,
    "gfx942": 64 * KIB,
    "gfx950": 160 * KIB,
    "gfx1100": 64 * KIB,
    "gfx1101": 64 * KIB,
    "gfx1151": 64 * KIB,
    "gfx1200": 64 * KIB,
    "gfx1201": 64 * KIB,
}


@dataclass(frozen=True)
class Target:
    """One GPU architecture as compilers name it.

    Attributes:
        name: ``sm_90``, ``gfx942``.
        vendor: ``nvidia`` or ``amd``.
        warp_size: threads of a warp (wavefront).
        shared_limit: bytes of shared memory (LDS) a program may use.
    """

    name: str
    vendor: str
    warp_size: int
    shared_limit: int

    @property
    def backend(self) -> str:
        """Triton's name of the vendor."""
        return "cuda" if self.vendor == "nvidia" else "hip"

    @property
    def arch(self) -> int | str:
        """The architecture as Triton's GPUTarget takes it: 90 or ``gfx942``."""
        return int(self.name[3:]) if self.vendor == "nvidia" else self.name

    @property
    def fp8_storage(self) -> str:
        """How fp8 weights are read: ``e4m3fn`` or ``e4m3fnuz`` where the hardware has it, else ``bytes``."""
        if self.name == "gfx942":
            return "e4m3fnuz"
        if self.vendor == "nvidia":
            return "e4m3fn" if int(self.name[3:]) >= 89 else "bytes"
        return "e4m3fn" if self.name == "gfx950" or self.name.startswith("gfx12") else "bytes"


INTERPRETER = Target("interpreter", "none", 32, 1 << 30)
"""Triton's interpreter on a CPU: no vendor, nothing to run out of."""


def find_target(name: str) -> Target:
    """Return a target by its compiler name; ``sm90``, ``90`` and ``SM_90`` are taken for ``sm_90``.

    Raises:
        ValueError: the architecture is unknown.
    """
    text = name.strip().lower().partition(":")[0]
    nvidia = re.fullmatch(r"(?:sm_?)?(\d{2,3})a?", text)
    key = f"sm_{nvidia.group(1)}" if nvidia else text
    if key not in SHARED_LIMIT:
        raise ValueError(f"unknown architecture {name!r} (known: {', '.join(SHARED_LIMIT)})")
    vendor = "nvidia" if key.startswith("sm_") else "amd"
    warp_size = 64 if key.startswith("gfx9") else 32
    return Target(key, vendor, warp_size, SHARED_LIMIT[key])
