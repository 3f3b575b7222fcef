"""What `traceanalyzer name` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar

from traceanalyzer.declare import Document, Part, told


class NamesDtype(Part):
    """Element types."""

    output: Annotated[str | None, told("Of the result.", null="not in the name")]
    activation: Annotated[str | None, told("Of the activations.", null="not in the name")]
    weight: Annotated[str | None, told("Of the weights.", null="not in the name")]


class NamesName(Part):
    """TODO"""

    name: Annotated[str, told("As given.")]
    scheme: Annotated[
        str | None,
        told(
            "Who builds such names: triton, cutlass, cublas, ck, tensile, ...", null="the name follows no known scheme"
        ),
    ]
    family: Annotated[str, told("Kernels of one origin and purpose.")]
    kind: Annotated[str, told("gemm, attention, norm, communication, ...")]
    block_m: Annotated[int | None, told("Rows of the tile of a thread block.", null="not in the name")]
    block_n: Annotated[int | None, told("Columns of the tile.", null="not in the name")]
    block_k: Annotated[int | None, told("Reduction of one iteration.", null="not in the name")]
    split_k: Annotated[int | None, told("Parts of the reduction.", null="not in the name")]
    stages: Annotated[int | None, told("Depth of the software pipeline.", null="not in the name")]
    num_warps: Annotated[int | None, told("Warps of a thread block.", null="not in the name")]
    cluster: Annotated[list[int] | None, told("Shape of the thread-block cluster.", null="not in the name")]
    dtypes: Annotated[NamesDtype, told("Element types.")]
    epilogue: Annotated[str | None, told("What is done to the result before it is stored.", null="not in the name")]
    retunable: Annotated[bool, told("Whether users can choose another tile.")]
    knob: Annotated[str | None, told("Through what.", null="not retunable")]
    ambiguous: Annotated[str | None, told("What the name leaves open.", null="nothing")]
    library: Annotated[str | None, told("Who wrote the kernel.", null="not known")]
    fused_ops: Annotated[str | None, told("Ops that a compiler joined, as in the name.", null="none")]
    role: Annotated[str | None, told("Role that the name alone suggests.", null="none")]


class NamesDocument(Document, tag="traceanalyzer/names/1"):
    """What kernel names say. Everything that a name does not hold is null."""

    command: ClassVar[str] = "name"

    names: Annotated[list[NamesName], told("In the order given.")]
