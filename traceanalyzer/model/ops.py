"""Every operation of one step of a model, in order, with its FLOP and bytes on one GPU."""

from __future__ import annotations

from typing import Any

from traceanalyzer.model.architecture import Architecture, Layer
from traceanalyzer.model.attention import attention_ops
from traceanalyzer.model.communication import after_part, collective, expert_exchange, stage_border
from traceanalyzer.model.ffn import ffn_ops
from traceanalyzer.model.op import Op
from traceanalyzer.model.routing import Routing
from traceanalyzer.model.step import FP32_BYTES, Execution, Step
from traceanalyzer.model.workload import Parallel, Workload


def ops(
    architecture: Architecture,
    workload: Workload,
    parallel: Parallel | None = None,
    routing: Routing | None = None,
    execution: Execution | None = None,
    *,
    stage: int | None = None,
) -> list[Op]:
    """Return the ops of one step on one GPU, in the order of the model.

    FLOP and bytes are what the result needs: every weight, activation and cached value moved once. Formulas:
    docs/performance-model.md.

    Args:
        architecture: the model.
        workload: the step, as one data-parallel rank sees it.
        parallel: the layout; one GPU by default.
        routing: how tokens spread over experts; uniformly by default.
        execution: how the engine carries it out, such as tiles.
        stage: only this pipeline stage, from 0; all stages, with the sends between them, by default.

    Raises:
        ModelError: the layout does not fit the model.
    """
    step = Step(architecture, workload, parallel or Parallel(), routing or Routing(), execution or Execution())
    borders = stage_starts(len(architecture.layers), step.parallel.pp)
    found: list[Op] = []
    for number, (first, end) in enumerate(zip(borders, [*borders[1:], len(architecture.layers)], strict=True)):
        if stage not in (None, number):
            continue
        found += _prologue(step) if number == 0 else []
        for layer in range(first, end):
            found += layer_ops(step, layer)
        found += _epilogue(step) if end == len(architecture.layers) else [stage_border(step, end - 1)]
    return found


def stage_starts(layers: int, stages: int) -> list[int]:
    """Return the first layer of each pipeline stage; layers that are left over go to the first ones."""
    size, left = divmod(layers, stages)
    return [stage * size + min(stage, left) for stage in range(stages)]


def layer_ops(step: Step, number: int) -> list[Op]:
    """Return the ops of one transformer block."""
    a = step.architecture
    layer = a.layers[number]
    place: dict[str, Any] = {"layer": number, "kind": a.kind_of(number)}
    found: list[Op] = []
    if layer.attention:
        found.append(_norm(step, "input_norm", residual=number > 0, **place))
        found += attention_ops(step, layer, **place)
        if not a.parallel_block:
            found += after_part(step, "attention", **place)
        found += [_norm(step, "post_attention_norm", residual=False, **place)] if a.norms_after else []
    if layer.ffn:
        if not (a.parallel_block and layer.attention):
            found.append(_norm(step, "ffn_norm", residual=number > 0 or layer.attention is not None, **place))
        found += _ffn(step, layer, **place)
        found += [_norm(step, "post_ffn_norm", residual=False, **place)] if a.norms_after else []
    return found


def _ffn(step: Step, block: Layer, **place: Any) -> list[Op]:
    computed = ffn_ops(step, block, **place)
    if block.ffn != "moe":
        return [*computed, *after_part(step, "ffn", **place)]
    there, back = expert_exchange(step, **place)
    first = next(
        i for i, op in enumerate(computed) if op.role in ("moe_gate_up", "quantize") and op.name.startswith("moe")
    )
    last = next(i for i, op in enumerate(computed) if op.role == "moe_combine") + 1
    moved = [*computed[:first], *there, *computed[first:last], *back, *computed[last:]]
    return [*moved, *after_part(step, "ffn", **place)]


def _norm(step: Step, name: str, *, residual: bool, **place: Any) -> Op:
    """4 T d b_a bytes with the residual add fused in (input and residual read and written), else 2 T d b_a."""
    values = step.tokens * step.architecture.hidden * (2 if residual else 1)
    notes = ("residual add fused in",) if residual else ()
    return step.elementwise(name, "norm", values, values, notes=notes, **place)


def _prologue(step: Step) -> list[Op]:
    """Embedding: a row for each token, T d (b_w + b_a) bytes."""
    a, t = step.architecture, step.tokens
    read = t * a.hidden * a.weights.embedding.bytes
    written = t * a.hidden * step.width
    found = [Op("embedding", "embedding", weight_bytes=read, activation_bytes=written)]
    if step.parallel.tp > 1:
        found.append(collective("embedding_all_reduce", "all_reduce", written, step.parallel.tp))
    return found


def _epilogue(step: Step) -> list[Op]:
    """Final norm over all tokens; lm_head and sampler over the sequences that draw a token."""
    a, b = step.architecture, step.workload.sampled
    found = [_norm(step, "final_norm", residual=True)]
    if not b:
        return found
    found += step.linear("lm_head", "lm_head", a.weights.lm_head, b, a.hidden, step.share(a.vocab))
    if step.parallel.tp > 1:
        found.append(collective("logits_all_gather", "all_gather", b * a.vocab * step.width, step.parallel.tp))
    logits = b * a.vocab
    notes = ("logits widened to fp32, then read once; sampling with top-k or top-p reads them more often",)
    moved = logits * (step.width + 2 * FP32_BYTES)
    return [*found, Op("sampler", "sampler", activation_bytes=moved, kernels=None, notes=notes)]


def rope_table_cast(architecture: Architecture) -> Op | None:
    """Return a cast of the whole table of rotary cosines and sines from fp32: positions times rotary_dim values.

    No model needs it in a step; engines have been seen to repeat it in every layer. Null where the model's
    positions are unknown. Not part of ``ops``.
    """
    if architecture.max_positions is None:
        return None
    values = architecture.max_positions * architecture.rotary_dim
    moved = values * (FP32_BYTES + architecture.activation.bytes)
    notes = ("redundant: the table is the same in every layer and step",)
    return Op("rope_table_cast", "other", activation_bytes=moved, notes=notes)
