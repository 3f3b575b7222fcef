"""One operation of a step: its FLOP, bytes, shape and assumptions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

ROLES = frozenset(
    {"norm", "qkv_proj", "rope", "kv_write", "attention", "o_proj", "router", "moe_routing", "moe_gate_up"}
    | {"moe_down", "moe_combine", "gate_up", "down", "activation", "quantize", "communication", "copy"}
    | {"embedding", "lm_head", "sampler", "other"}
)
"""The roles by which kernels and ops are joined."""


@dataclass(frozen=True)
class Op:
    """One operation on one GPU.

    Attributes:
        name: what it is, finer than its role, such as ``q_norm`` or ``shared_gate_up``.
        role: one of ROLES.
        layer: number of its layer; None before the first and after the last.
        kind: the words that set its layer apart from the others; None if there are none.
        dtype: data type whose peak limits its arithmetic.
        flops: operations that the result takes; None where unknown.
        weight_bytes: weights read.
        activation_bytes: activations read and written.
        kv_bytes: KV cache (or recurrent state) read and written; None where unknown.
        m: rows of a GEMM, over all experts for MoE.
        n: its columns.
        k: its inner size.
        kernels: kernels that usually run it; None where that depends on the engine.
        experts: routed experts on this GPU.
        top_k: experts per token.
        distinct_experts: how many of ``experts`` get a token.
        executed_flops: operations that tiles compute, padding included; None where no tile is known.
        collective: ``all_reduce``, ``all_gather``, ``reduce_scatter``, ``all_to_all`` or ``send``; None otherwise.
        ranks: GPUs of the collective.
        payload_bytes: the whole tensor that it moves.
        wire_bytes: minimum that each GPU sends (ring for the first three).
        notes: assumptions.
    """

    name: str
    role: str
    layer: int | None = None
    kind: str | None = None
    dtype: str = "bf16"
    flops: float | None = 0.0
    weight_bytes: float = 0.0
    activation_bytes: float = 0.0
    kv_bytes: float | None = 0.0
    m: int | None = None
    n: int | None = None
    k: int | None = None
    kernels: int | None = 1
    experts: int | None = None
    top_k: int | None = None
    distinct_experts: float | None = None
    executed_flops: float | None = None
    collective: str | None = None
    ranks: int | None = None
    payload_bytes: float | None = None
    wire_bytes: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def bytes(self) -> float | None:
        """Bytes of device memory read and written; None where a part is unknown."""
        return None if self.kv_bytes is None else self.weight_bytes + self.activation_bytes + self.kv_bytes

    @property
    def intensity(self) -> float | None:
        """FLOP per byte; None without bytes."""
        return self.flops / self.bytes if self.flops is not None and self.bytes else None

    def compute_ns(self, tflops: float) -> float | None:
        """Return the time of its arithmetic at so many 10^12 operations per second."""
        return None if self.flops is None else self.flops / tflops / 1e3

    def memory_ns(self, gbps: float) -> float | None:
        """Return the time of its memory accesses at so many GB/s."""
        return None if self.bytes is None else self.bytes / gbps

    def floor_ns(self, tflops: float, gbps: float) -> float | None:
        """Return the minimum time under both roofs, the larger of the two; None where either is unknown."""
        compute, memory = self.compute_ns(tflops), self.memory_ns(gbps)
        return None if compute is None or memory is None else max(compute, memory)


def gemm(
    m: int,
    n: int,
    k: int,
    *,
    element_bytes: tuple[float, float, float] = (2.0, 2.0, 2.0),
    dtype: str = "bf16",
    role: str = "other",
    name: str = "gemm",
) -> Op:
    """Return a GEMM [m, k] x [k, n] whose operands are moved once.

    ``element_bytes`` are those of the [k, n] weights, the [m, k] activations and the [m, n] result.
    """
    weights, activations, outputs = element_bytes
    return Op(
        name=name,
        role=role,
        dtype=dtype,
        flops=2.0 * m * n * k,
        weight_bytes=k * n * weights,
        activation_bytes=m * k * activations + m * n * outputs,
        m=m,
        n=n,
        k=k,
    )


@dataclass(frozen=True)
class Total:
    """Count, FLOP and bytes of some ops; None where a part is unknown."""

    count: int
    flops: float | None
    bytes: float | None


def total(ops: Iterable[Op]) -> Total:
    """Sum FLOP and bytes."""
    summed = list(ops)
    flops = [op.flops for op in summed]
    sizes = [op.bytes for op in summed]
    return Total(
        count=len(summed),
        flops=None if None in flops else sum(value for value in flops if value is not None),
        bytes=None if None in sizes else sum(value for value in sizes if value is not None),
    )
