"""One step of a model on one GPU of a layout, from which its ops are derived."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from traceanalyzer.model.architecture import Architecture, ModelError
from traceanalyzer.model.expert_routing import ExpertRouting
from traceanalyzer.model.formats import Format
from traceanalyzer.model.op import Op
from traceanalyzer.model.workload import Parallel, Workload

FP32_BYTES = 4

FLOP_PER_VALUE = {"norm": 2, "rope": 6, "activation": 3, "moe_combine": 1}
"""Role -> FLOP per value read; chosen, not fitted: memory limits these ops by far."""


def stage_layers(layers: int, stages: int, stage: int | None) -> range:
    """Return the layers of a pipeline stage; all of them where the stage is None."""
    if stage is None:
        return range(layers)
    starts = [*stage_starts(layers, stages), layers]
    return range(starts[stage], starts[stage + 1])


def stage_starts(layers: int, stages: int) -> list[int]:
    """Return the first layer of each pipeline stage, as vLLM splits a model.

    Left-over layers go to the stages before the last, the later ones first: the last stage also has the final norm and
    lm_head, the first one the embedding.
    """
    size, left = divmod(layers, stages)
    first_larger = stages - 1 - left
    return [stage * size + max(min(stage, stages - 1) - first_larger, 0) for stage in range(stages)]


@dataclass(frozen=True)
class Execution:
    """How an engine runs a model, where that changes the work.

    Attributes:
        gemm_block_m: rows of a tile of the dense GEMMs; None where unknown.
        moe_block_m: rows of a tile of the expert GEMMs; None where unknown.
        fused_moe_activation: whether the activation runs inside the experts' gate_up kernel; None for what the model's
            usual engine does.
        moe_input_width: width to which the experts' input is padded; None for no padding kernel.
        moe_hidden_width: inner size of the expert GEMMs; None for the model's own.
        moe_ffn_width: width of an expert in the expert GEMMs; None for the model's own.
        moe_exchange: how expert-parallel ranks exchange tokens: ``all_gather`` (and reduce-scatter) or ``all_to_all``.
    """

    gemm_block_m: int | None = None
    moe_block_m: int | None = None
    fused_moe_activation: bool | None = None
    moe_input_width: int | None = None
    moe_hidden_width: int | None = None
    moe_ffn_width: int | None = None
    moe_exchange: str = "all_gather"

    def __post_init__(self) -> None:
        if self.moe_exchange not in ("all_gather", "all_to_all"):
            raise ModelError(f"moe_exchange must be all_gather or all_to_all, not {self.moe_exchange!r}")
        for name, value in vars(self).items():
            if isinstance(value, int) and not isinstance(value, bool) and value < 1:
                raise ModelError(f"{name} must be 1 or more, not {value}")


@dataclass(frozen=True)
class Step:
    """One step; sizes are those of one GPU, of one pipeline stage or, where that is None, of all."""

    architecture: Architecture
    workload: Workload
    parallel: Parallel = field(default_factory=Parallel)
    routing: ExpertRouting = field(default_factory=ExpertRouting)
    execution: Execution = field(default_factory=Execution)
    stage: int | None = None

    def __post_init__(self) -> None:
        a, tp = self.architecture, self.parallel.tp
        if a.heads % tp:
            raise ModelError(f"tp = {tp} does not divide the {a.heads} attention heads")
        if self.parallel.pp > len(a.layers):
            raise ModelError(f"pp = {self.parallel.pp} exceeds the {len(a.layers)} layers")
        if a.moe and a.moe.experts % self.parallel.ep:
            raise ModelError(f"ep = {self.parallel.ep} does not divide the {a.moe.experts} experts")
        if self.stage is not None and not 0 <= self.stage < self.parallel.pp:
            raise ModelError(f"stage must be 0 to {self.parallel.pp - 1}, not {self.stage}")

    @property
    def layers(self) -> range:
        """Numbers of its layers."""
        return stage_layers(len(self.architecture.layers), self.parallel.pp, self.stage)

    @property
    def is_first(self) -> bool:
        """Whether it starts with the embedding."""
        return self.stage in (None, 0)

    @property
    def is_last(self) -> bool:
        """Whether it ends with lm_head."""
        return self.stage in (None, self.parallel.pp - 1)

    @property
    def tokens(self) -> int:
        """New tokens, T."""
        return self.workload.tokens

    @property
    def width(self) -> float:
        """Bytes of an activation."""
        return self.architecture.activation.bytes

    @property
    def heads(self) -> int:
        """Query heads on this GPU."""
        return self.architecture.heads // self.parallel.tp

    @property
    def kv_heads(self) -> int:
        """Key and value heads on this GPU; replicated where there are fewer than GPUs."""
        return math.ceil(self.architecture.kv_heads / self.parallel.tp)

    def share(self, size: int) -> int:
        """Return this GPU's part of a dimension that tensor parallelism splits."""
        return math.ceil(size / self.parallel.tp)

    def linear(self, name: str, role: str, stored: Format, m: int, k: int, n: int, **more: Any) -> list[Op]:
        """Return y = x W of [m, k] x [k, n]: 2 m k n FLOP; k n weights, m (k + n) activations.

        A format with narrower inputs adds the kernel that quantises them.
        """
        narrow = stored.activation_bytes < self.width
        block = self.execution.gemm_block_m
        product = Op(
            name=name,
            role=role,
            dtype=stored.compute,
            flops=2.0 * m * k * n,
            weight_bytes=k * n * stored.bytes,
            activation_bytes=m * k * min(stored.activation_bytes, self.width) + m * n * self.width,
            m=m,
            n=n,
            k=k,
            executed_flops=2.0 * math.ceil(m / block) * block * k * n if block else None,
            **more,
        )
        return [*([self.quantize(name, m * k, stored, **more)] if narrow else []), product]

    def quantize(self, name: str, values: float, stored: Format, **more: Any) -> Op:
        """Return the kernel that quantises the input of a GEMM."""
        notes = (*more.pop("notes", ()), "often fused into the kernel before it")
        moved = values * (self.width + stored.activation_bytes)
        return Op(name=f"{name}_quantize", role="quantize", activation_bytes=moved, notes=notes, **more)

    def elementwise(self, name: str, role: str, read: float, written: float, **more: Any) -> Op:
        """Return an op that reads and writes this many activation values, with a few FLOP each on vector units."""
        flops = FLOP_PER_VALUE.get(role, 0) * max(read, written)
        moved = (read + written) * self.width
        return Op(name=name, role=role, dtype="fp32", flops=flops, activation_bytes=moved, **more)
