"""What a kernel's name says: one record, ``None`` for everything that the name does not contain."""

from __future__ import annotations

from typing import Annotated

from traceanalyzer.declare import Part, told

NOT_SAID = "not in the name"

FAMILY_OF_KIND: dict[str, str] = {
    "gemm": "gemm",
    "gemm_helper": "gemm",
    "attention": "attention",
    "attention_prelude": "attention",
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
    "softmax": "softmax",
    "convolution": "convolution",
    "fft": "fft",
    "pooling": "pooling",
    "resize": "resize",
    "loss": "loss",
    "optimizer": "optimizer",
    "random": "random",
    "rnn": "rnn",
    "sort": "sort",
    "sampling": "sampling",
    "embedding": "embedding",
    "metadata": "metadata",
    "unknown": "unknown",
}
"""Every kind -> its family, unless the scheme knows better (an expert GEMM: moe_gemm)."""

KINDS = frozenset(FAMILY_OF_KIND)
FAMILIES = frozenset(FAMILY_OF_KIND.values()) | {"moe_gemm"}

ROLE_OF_KIND: dict[str, str] = {
    "attention": "attention",
    "attention_prelude": "attention",
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
    "convolution": "other",
    "fft": "other",
    "pooling": "other",
    "resize": "other",
    "loss": "other",
    "optimizer": "other",
    "rnn": "other",
    "view": "other",
}
"""Roles that the kind settles wherever the kernel stands; any other kind needs the position."""


class Dtypes(Part):
    """Element types of a matrix product."""

    output: Annotated[str | None, told("Of the result.", null=NOT_SAID)] = None
    activation: Annotated[str | None, told("Of the activations.", null=NOT_SAID)] = None
    weight: Annotated[str | None, told("Of the weights.", null=NOT_SAID)] = None


class KernelName(Part):
    """What one kernel name says.

    The tile's sides stand in the order of the name; ``ambiguous`` says so where that order may not be the model's.
    """

    name: Annotated[str, told("As given.")]
    scheme: Annotated[
        str | None,
        told("Naming scheme: triton, cutlass, cublas, ck, tensile, ...", null="the name follows no known scheme"),
    ]
    family: Annotated[str, told("Kernels of one origin and purpose.")]
    kind: Annotated[str, told("gemm, attention, norm, communication, ...")]
    block_m: Annotated[int | None, told("Rows of a thread block's tile.", null=NOT_SAID)] = None
    block_n: Annotated[int | None, told("Columns of the tile.", null=NOT_SAID)] = None
    block_k: Annotated[int | None, told("How much of the reduction one iteration does.", null=NOT_SAID)] = None
    split_k: Annotated[int | None, told("Parts that the reduction is split into.", null=NOT_SAID)] = None
    stages: Annotated[int | None, told("Depth of the software pipeline.", null=NOT_SAID)] = None
    num_warps: Annotated[int | None, told("Warps (wavefronts) of a thread block.", null=NOT_SAID)] = None
    cluster: Annotated[
        tuple[int, ...] | None, told("Shape of the thread-block cluster.", null=NOT_SAID, frame=None)
    ] = None
    dtypes: Annotated[Dtypes, told("Element types.", frame=None)] = Dtypes()
    epilogue: Annotated[str | None, told("What is done to the result before it is stored.", null=NOT_SAID)] = None
    retunable: Annotated[bool, told("Whether users can choose another tile.")] = False
    knob: Annotated[str | None, told("Where users choose the tile.", null="not retunable")] = None
    ambiguous: Annotated[str | None, told("What the name leaves open.", null="nothing")] = None
    library: Annotated[str | None, told("Who wrote the kernel.", null="unknown")] = None
    fused_ops: Annotated[str | None, told("Ops that a compiler fused, as in the name.", null="none")] = None
    direction: Annotated[
        str | None, told("forward, or backward (gradients), as a name says it.", null="products hardly ever tell")
    ] = None
    role: Annotated[str | None, told("Role that the name alone settles.", null="the position decides")] = None

    @property
    def tile(self) -> tuple[int | None, int | None, int | None] | None:
        """(block_m, block_n, block_k); ``None`` where the name gives none of them."""
        tile = (self.block_m, self.block_n, self.block_k)
        return None if tile == (None, None, None) else tile


def role_hint(kernel: KernelName) -> str | None:
    """Return the role that the name alone settles; ``None`` where the kernel's position must decide."""
    return kernel.role
