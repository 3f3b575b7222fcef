"""What `traceanalyzer gpus` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from traceanalyzer.declare import Document, Part, told


class GpusGpu(Part):
    """TODO"""

    name: Annotated[str, told("Short name of the product.")]
    vendor: Annotated[str | None, told("nvidia or amd; as written in --gpu-file.", null="not stated")]
    architecture: Annotated[str | None, told("The vendor's name of the generation.", null="not known")]
    compute_capability: Annotated[str | None, told("major.minor as the profiler writes it.", null="not known")]
    target: Annotated[str | None, told("Compiler target, such as sm_90 or gfx942.", null="not known")]
    warp_size: Annotated[int | None, told("Threads of a warp.", null="not known")]
    compute_units: Annotated[int | None, told("SMs or CUs.", null="not known")]
    clock_mhz: Annotated[
        float | None, told("Boost clock that the peaks are figured with.", null="not known", unit="MHz")
    ]
    memory_gb: Annotated[float | None, told("Device memory, nominal.", null="not known", unit="GB")]
    bandwidth_gbps: Annotated[float, told("Peak memory bandwidth.")]
    l2_mb: Annotated[float | None, told("L2 cache.", null="not known", unit="MB")]
    last_level_cache_mb: Annotated[float | None, told("Cache behind L2.", null="none, or not known", unit="MB")]
    peak_tflops: Annotated[
        dict[str, float], told("Dense peak by data type; absent where the GPU lacks the type or it is not known.")
    ]
    link: Annotated[str | None, told("What joins GPUs of a node.", null="not known")]
    link_gbps: Annotated[float | None, told("A GPU's links together, one direction.", null="not known")]
    pcie: Annotated[str | None, told("Generation and lanes.", null="not known")]
    measured_bf16_tflops: Annotated[
        float | None, told("Best bf16 matrix product that somebody measured.", null="nobody did")
    ]
    measured_bandwidth_gbps: Annotated[float | None, told("Best bandwidth that somebody measured.", null="nobody did")]
    device_names: Annotated[list[str], told("Names under which drivers report it.")]
    source: Annotated[str, told("Where the figures are from.")]
    confidence: Annotated[
        Literal["A", "B", "C", "user"],
        told(
            "A: vendor figures, or two sources that agree; B: one second-hand source; C: derived, or a single weak source; user: of --gpu-file."
        ),
    ]
    note: Annotated[str | None, told("What to know about the figures.", null="nothing")]
    achievable_tflops: Annotated[dict[str, float], told("What good kernels reach, by data type.")]
    achievable_gbps: Annotated[float | None, told("Bandwidth that good kernels reach.", null="no peak is known")]
    achievable_basis: Annotated[list[str], told("What the achievable figures rest on.")]


class GpusDocument(Document, tag="traceanalyzer/gpus/1"):
    """GPUs whose limits are known. Peaks are dense."""

    command: ClassVar[str] = "gpus"

    gpus: Annotated[list[GpusGpu], told("In the order of the table.")]
