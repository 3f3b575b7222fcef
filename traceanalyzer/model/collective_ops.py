"""Collectives of a step: what each parallel degree moves, and the bytes a GPU has to send at least."""

from __future__ import annotations

from collections.abc import Callable

from traceanalyzer.model.model_step import Step
from traceanalyzer.model.op import Op

WIRE_SHARE: dict[str, Callable[[int], float]] = {
    # Ring algorithms; of a payload S, a GPU sends this share.
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
    "send": lambda n: 1.0,
}
"""Collective -> share of the payload that each of n GPUs sends."""


def collective(name: str, kind: str, payload_bytes: float, ranks: int) -> Op:
    """Return a collective over ``ranks`` GPUs that moves a tensor of ``payload_bytes``."""
    return Op(
        name=name,
        role="communication",
        collective=kind,
        ranks=ranks,
        payload_bytes=payload_bytes,
        wire_bytes=WIRE_SHARE[kind](ranks) * payload_bytes,
    )


def after_part(step: Step, name: str) -> list[Op]:
    """All-reduce over the tensor-parallel ranks that closes attention or FFN: T d b_a bytes."""
    if step.parallel.tp == 1:
        return []
    payload = step.tokens * step.architecture.hidden * step.width
    return [collective(f"{name}_all_reduce", "all_reduce", payload, step.parallel.tp)]


def expert_exchange(step: Step) -> tuple[list[Op], list[Op]]:
    """Return what brings tokens to experts on other data-parallel ranks, and what brings the results back.

    With one data-parallel rank every GPU has all tokens already, and the closing all-reduce sums the experts.
    """
    dp, moe = step.parallel.dp, step.architecture.moe
    if step.parallel.ep == 1 or dp == 1 or moe is None:
        return [], []
    if step.execution.moe_exchange == "all_to_all":
        payload = step.tokens * moe.top_k * step.architecture.hidden * step.width
        n = step.parallel.ep
        dispatch = collective("moe_dispatch", "all_to_all", payload, n)
        return [dispatch], [collective("moe_gather_back", "all_to_all", payload, n)]
    payload = step.tokens * dp * step.architecture.hidden * step.width
    gather = collective("moe_all_gather", "all_gather", payload, dp)
    return [gather], [collective("moe_reduce_scatter", "reduce_scatter", payload, dp)]


def stage_border(step: Step) -> Op:
    """Return the send of hidden state and residual to the next pipeline stage: 2 T d b_a bytes."""
    payload = 2 * step.tokens * step.architecture.hidden * step.width
    return collective("stage_send", "send", payload, 2)
