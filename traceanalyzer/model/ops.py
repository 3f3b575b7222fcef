"""Every operation of one step of a model, in order, with its FLOP and bytes on one GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from traceanalyzer.model.architecture import Architecture, Layer
from traceanalyzer.model.attention_ops import attention_ops
from traceanalyzer.model.expert_routing import ExpertRouting
from traceanalyzer.model.ffn_ops import ffn_ops
from traceanalyzer.model.model_step import FP32_BYTES, Execution, Step, stage_starts
from traceanalyzer.model.op import Op
from traceanalyzer.model.workload import Parallel, Workload

WIRE_SHARE: dict[str, Callable[[int], float]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
    "send": lambda n: 1.0,
}
"""Collective -> share of the payload that each of n GPUs sends, in ring algorithms."""


def ops(
    architecture: Architecture,
    workload: Workload,
    parallel: Parallel | None = None,
    routing: ExpertRouting | None = None,
    execution: Execution | None = None,
    *,
    stage: int | None = None,
) -> list[Op]:
    """Return the ops of one step on one GPU, in the order of the model.

    FLOP and bytes are the minimum that the result takes: every weight, activation and cached value moved once.
    Formulas: docs/performance-model.md.

    Args:
        architecture: the model.
        workload: the step, as one data-parallel rank sees it.
        parallel: the layout; one GPU by default.
        routing: how tokens spread over experts; uniformly by default.
        execution: how the engine runs it, such as tiles.
        stage: only this pipeline stage, from 0; all stages, with the sends between them, by default.

    Raises:
        ModelError: the layout does not fit the model.
    """
    step = Step(
        architecture, workload, parallel or Parallel(), routing or ExpertRouting(), execution or Execution(), stage
    )
    starts = stage_starts(len(architecture.layers), step.parallel.pp)
    borders = frozenset(start - 1 for start in starts[1:])
    blocks = _blocks(step)
    listed = _prologue(step)
    for layer in step.layers:
        kind = architecture.kind_of(layer)
        alike = blocks[architecture.layers[layer], layer == 0]
        listed += [replace(op, layer=layer, kind=kind) for op in alike]
        listed += [_stage_border(step)] if layer in borders else []
    return listed + _epilogue(step)


def counted_ops(step: Step) -> list[tuple[Op, int]]:
    """Return the ops of a step without layer numbers, each once, with how often it occurs: much faster to sum.

    The kind is that of the first layer in which an op occurs.
    """
    return [
        (replace(op, kind=step.architecture.kind_of(layers[0])), len(layers)) if layers else (op, 1)
        for op, layers in ops_by_layers(step)
    ]


def ops_by_layers(step: Step) -> list[tuple[Op, tuple[int, ...]]]:
    """Return the ops of a step, each once, with the layers in which it occurs; none for those outside of layers."""
    layers = step.architecture.layers
    alike: dict[tuple[Layer, bool], list[int]] = {}
    for layer in step.layers:
        alike.setdefault((layers[layer], layer == 0), []).append(layer)
    by_layers: list[tuple[Op, tuple[int, ...]]] = [(op, ()) for op in _prologue(step)]
    for block, own in _blocks(step).items():
        by_layers += [(op, tuple(alike[block])) for op in own]
    sends = step.parallel.pp - 1 if step.stage is None else int(not step.is_last)
    by_layers += [(_stage_border(step), ())] * sends
    return by_layers + [(op, ()) for op in _epilogue(step)]


def _blocks(step: Step) -> dict[tuple[Layer, bool], list[Op]]:
    """Return the ops of each distinct block; the first block of the model counts as distinct."""
    layers = step.architecture.layers
    distinct = dict.fromkeys((layers[layer], layer == 0) for layer in step.layers)
    return {(block, first): _block_ops(step, block, first=first) for block, first in distinct}


def _block_ops(step: Step, block: Layer, *, first: bool) -> list[Op]:
    """Return the ops of a block; before the ``first`` one, nothing has been added to the residual stream."""
    a = step.architecture
    listed: list[Op] = []
    if block.attention:
        listed.append(_norm(step, "input_norm", residual=not first))
        listed += attention_ops(step, block)
        if not (a.parallel_block and block.ffn):
            listed += _after_part(step, "attention")
        listed += [_norm(step, "post_attention_norm", residual=False)] if a.norms_after else []
    if block.ffn:
        if not (a.parallel_block and block.attention):
            listed.append(_norm(step, "ffn_norm", residual=not first or block.attention is not None))
        listed += _ffn(step, block)
        listed += [_norm(step, "post_ffn_norm", residual=False)] if a.norms_after else []
    return listed


def _ffn(step: Step, block: Layer) -> list[Op]:
    computed = ffn_ops(step, block)
    there, back = _expert_exchange(step) if block.ffn == "moe" else ([], [])
    if there:
        roles = [op.role for op in computed]
        names = [op.name.removesuffix("_quantize") for op in computed]
        first, last = names.index("moe_gate_up"), roles.index("moe_combine") + 1
        computed = [*computed[:first], *there, *computed[first:last], *back, *computed[last:]]
    return [*computed, *_after_part(step, "ffn")]


def _collective(name: str, kind: str, payload_bytes: float, ranks: int) -> Op:
    """Return a collective over ``ranks`` GPUs that moves a tensor of ``payload_bytes``."""
    return Op(
        name=name,
        role="communication",
        collective=kind,
        ranks=ranks,
        payload_bytes=payload_bytes,
        wire_bytes=WIRE_SHARE[kind](ranks) * payload_bytes,
    )


def _after_part(step: Step, name: str) -> list[Op]:
    """Return the all-reduce over tensor-parallel ranks after attention or FFN: T d b_a bytes."""
    if step.parallel.tp == 1:
        return []
    payload = step.tokens * step.architecture.hidden * step.width
    return [_collective(f"{name}_all_reduce", "all_reduce", payload, step.parallel.tp)]


def _expert_exchange(step: Step) -> tuple[list[Op], list[Op]]:
    """Return the collectives that bring tokens to experts on other data-parallel ranks, and the results back.

    With one data-parallel rank every GPU has all tokens, and the closing all-reduce sums over the experts.
    """
    dp, moe = step.parallel.dp, step.architecture.moe
    if step.parallel.ep == 1 or dp == 1 or moe is None:
        return [], []
    if step.execution.moe_exchange == "all_to_all":
        payload = step.tokens * moe.top_k * step.architecture.hidden * step.width
        n = step.parallel.ep
        dispatch = _collective("moe_dispatch", "all_to_all", payload, n)
        return [dispatch], [_collective("moe_gather_back", "all_to_all", payload, n)]
    payload = step.tokens * dp * step.architecture.hidden * step.width
    gather = _collective("moe_all_gather", "all_gather", payload, dp)
    return [gather], [_collective("moe_reduce_scatter", "reduce_scatter", payload, dp)]


def _stage_border(step: Step) -> Op:
    """Return the send of hidden state and residual to the next pipeline stage: 2 T d b_a bytes."""
    payload = 2 * step.tokens * step.architecture.hidden * step.width
    return _collective("stage_send", "send", payload, 2)


def _norm(step: Step, name: str, *, residual: bool) -> Op:
    """Return a norm: 4 T d b_a bytes with a fused residual add (both read and written), else 2 T d b_a."""
    values = step.tokens * step.architecture.hidden * (2 if residual else 1)
    notes = ("residual add fused in",) if residual else ()
    return step.elementwise(name, "norm", values, values, notes=notes)


def _prologue(step: Step) -> list[Op]:
    """Return the embedding of the first stage: a row per token, T d (b_w + b_a) bytes."""
    if not step.is_first:
        return []
    a, t = step.architecture, step.tokens
    read = t * a.hidden * a.weights.embedding.bytes
    written = t * a.hidden * step.width
    listed = [Op("embedding", "embedding", weight_bytes=read, activation_bytes=written)]
    if step.parallel.tp > 1:
        listed.append(_collective("embedding_all_reduce", "all_reduce", written, step.parallel.tp))
    return listed


def _epilogue(step: Step) -> list[Op]:
    """Return the last stage's final norm over all tokens, and lm_head and sampler over the sampled positions."""
    if not step.is_last:
        return []
    a, b = step.architecture, step.workload.sampled
    listed = [_norm(step, "final_norm", residual=True)]
    if not b:
        return listed
    listed += step.linear("lm_head", "lm_head", a.weights.lm_head, b, a.hidden, step.share(a.vocab))
    if step.parallel.tp > 1:
        listed.append(_collective("logits_all_gather", "all_gather", b * a.vocab * step.width, step.parallel.tp))
    logits = b * a.vocab
    notes = ("logits widened to fp32, then read once; sampling with top-k or top-p reads them more often",)
    moved = logits * (step.width + 2 * FP32_BYTES)
    return [*listed, Op("sampler", "sampler", activation_bytes=moved, kernels=None, notes=notes)]


def rope_table_cast(architecture: Architecture) -> Op | None:
    """Return a cast of the whole RoPE table from fp32: positions times rotary_dim values; None for unknown positions.

    It is not part of ``ops``: no step needs it, but engines have been seen to repeat it in every layer.
    """
    if architecture.max_positions is None:
        return None
    values = architecture.max_positions * architecture.rotary_dim
    moved = values * (FP32_BYTES + architecture.activation.bytes)
    notes = ("redundant: the table is the same in every layer and step",)
    return Op("rope_table_cast", "other", activation_bytes=moved, notes=notes)
