"""What a kernel's name says: one frozen record, with null for everything the name does not contain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

FAMILY_OF_KIND: dict[str, str] = {
    "gemm": "gemm",
    "gemm_helper": "gemm",
    "attention": "attention",
    "ssm": "ssm",
    "norm": "norm",
    "rope": "rope",
    "kv_write": "kv_cache",
    "activation": "activation",
    "quantize": "quantize",
    "moe_routing": "moe",
    "moe_combine": "moe",
    "communication": "communication",
    "memory": "memory",
    "index": "memory",
    "view": "view",
    "elementwise": "elementwise",
    "reduction": "reduction",
    "scan": "reduction",
    "sort": "sort",
    "sampling": "sampling",
    "embedding": "embedding",
    "metadata": "metadata",
    "unknown": "unknown",
}
"""Every kind, with the coarse family it falls in unless the scheme knows better (an expert GEMM: moe_gemm)."""

KINDS = frozenset(FAMILY_OF_KIND)
FAMILIES = frozenset(FAMILY_OF_KIND.values()) | {"moe_gemm"}

ROLE_OF_KIND: dict[str, str] = {
    "attention": "attention",
    "norm": "norm",
    "rope": "rope",
    "kv_write": "kv_write",
    "activation": "activation",
    "quantize": "quantize",
    "moe_routing": "moe_routing",
    "moe_combine": "moe_combine",
    "communication": "communication",
    "memory": "copy",
    "sampling": "sampler",
    "embedding": "embedding",
    "ssm": "other",
    "metadata": "other",
    "view": "other",
}
"""Roles that the kind settles wherever the kernel stands; a kind that is absent needs the position."""


@dataclass(frozen=True)
class Dtypes:
    """Element types of a matrix product; null where the name does not tell."""

    output: str | None = None
    activation: str | None = None
    weight: str | None = None


@dataclass(frozen=True)
class KernelName:
    """The reading of one kernel name.

    `block_m`, `block_n`, `block_k` are the tile of one thread block in elements, in the order of the name;
    `ambiguous` says so where that order may not be the model's. `split_k` is the number of parts of the
    reduction axis, `stages` the depth of the software pipeline, `num_warps` the warps (wavefronts) of a
    thread block, `cluster` the shape of the thread-block cluster. `role` is what `role_hint` answers.
    """

    name: str
    scheme: str | None
    family: str
    kind: str
    block_m: int | None = None
    block_n: int | None = None
    block_k: int | None = None
    split_k: int | None = None
    stages: int | None = None
    num_warps: int | None = None
    cluster: tuple[int, ...] | None = None
    dtypes: Dtypes = Dtypes()
    epilogue: str | None = None
    retunable: bool = False
    knob: str | None = None
    ambiguous: str | None = None
    library: str | None = None
    fused_ops: str | None = None
    role: str | None = None

    @property
    def tile(self) -> tuple[int | None, int | None, int | None] | None:
        """(block_m, block_n, block_k), or null where the name gives none of them."""
        tile = (self.block_m, self.block_n, self.block_k)
        return None if tile == (None, None, None) else tile

    def to_dict(self) -> dict[str, Any]:
        """The keys of `traceanalyzer name --json` (schema traceanalyzer/names/1), plus role and library."""
        return {
            "name": self.name,
            "scheme": self.scheme,
            "family": self.family,
            "kind": self.kind,
            "block_m": self.block_m,
            "block_n": self.block_n,
            "block_k": self.block_k,
            "split_k": self.split_k,
            "stages": self.stages,
            "num_warps": self.num_warps,
            "cluster": None if self.cluster is None else list(self.cluster),
            "dtypes": {
                "output": self.dtypes.output,
                "activation": self.dtypes.activation,
                "weight": self.dtypes.weight,
            },
            "epilogue": self.epilogue,
            "retunable": self.retunable,
            "knob": self.knob,
            "ambiguous": self.ambiguous,
            "library": self.library,
            "fused_ops": self.fused_ops,
            "role": self.role,
        }


def role_hint(kernel: KernelName) -> str | None:
    """The role that the name settles on its own, or null where the kernel's position must decide."""
    return kernel.role
