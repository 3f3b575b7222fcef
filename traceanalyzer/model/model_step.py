"""One step of one model on one GPU of a layout: what every part of the op list is derived from."""

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
"""Role -> FLOP for each value read: rough, and never what bounds these ops."""


@dataclass(frozen=True)
class Execution:
    """How an engine carries a model out, where that changes the work.

    Attributes:
        gemm_block_m: rows of a tile of the dense matrix products; None where unknown.
        moe_block_m: rows of a tile of the experts' matrix products; None where unknown.
        fused_moe_activation: whether the activation runs inside the gate_up kernel of the experts; None leaves it to
            the model's usual engine.
        moe_input_width: width that the experts' input is padded to; None for no padding kernel.
        moe_hidden_width: inner size that the experts' matrix products run with; None for the model's own.
        moe_ffn_width: width of an expert that they run with; None for the model's own.
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
    """What an op list is derived from; sizes are those of one GPU."""

    architecture: Architecture
    workload: Workload
    parallel: Parallel = field(default_factory=Parallel)
    routing: ExpertRouting = field(default_factory=ExpertRouting)
    execution: Execution = field(default_factory=Execution)

    def __post_init__(self) -> None:
        a, tp = self.architecture, self.parallel.tp
        if a.heads % tp:
            raise ModelError(f"tp = {tp} does not divide the {a.heads} attention heads")
        if self.parallel.pp > len(a.layers):
            raise ModelError(f"pp = {self.parallel.pp} exceeds the {len(a.layers)} layers")
        if a.moe and a.moe.experts % self.parallel.ep:
            raise ModelError(f"ep = {self.parallel.ep} does not divide the {a.moe.experts} experts")

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
        """Key and value heads on this GPU; repeated where there are fewer than GPUs."""
        return math.ceil(self.architecture.kv_heads / self.parallel.tp)

    def share(self, size: int) -> int:
        """Return this GPU's share of a dimension that tensor parallelism splits."""
        return math.ceil(size / self.parallel.tp)

    def linear(self, name: str, role: str, stored: Format, m: int, k: int, n: int, **more: Any) -> list[Op]:
        """Return y = x W of [m, k] x [k, n]: 2 m k n FLOP; k n weights, m (k + n) activations.

        A format that narrows its inputs brings the kernel that quantises them.
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
        """Return the kernel that narrows the input of a matrix product."""
        notes = (*more.pop("notes", ()), "often fused into the kernel before it")
        moved = values * (self.width + stored.activation_bytes)
        return Op(name=f"{name}_quantize", role="quantize", activation_bytes=moved, notes=notes, **more)

    def elementwise(self, name: str, role: str, read: float, written: float, **more: Any) -> Op:
        """Return an op that moves this many activation values, with a few FLOP for each on vector units."""
        flops = FLOP_PER_VALUE.get(role, 0) * max(read, written)
        moved = (read + written) * self.width
        return Op(name=name, role=role, dtype="fp32", flops=flops, activation_bytes=moved, **more)
