"""Every operation of one step of a model, in order, with its FLOP and bytes on one GPU."""

from __future__ import annotations

from dataclasses import replace

from traceanalyzer.model.architecture import Architecture, Layer, ModelError
from traceanalyzer.model.attention_ops import attention_ops
from traceanalyzer.model.collective_ops import after_part, collective, expert_exchange, stage_border
from traceanalyzer.model.expert_routing import ExpertRouting
from traceanalyzer.model.ffn_ops import ffn_ops
from traceanalyzer.model.model_step import FP32_BYTES, Execution, Step
from traceanalyzer.model.op import Op
from traceanalyzer.model.workload import Parallel, Workload


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
    step = _step(architecture, workload, parallel, routing, execution, stage)
    starts = stage_starts(len(architecture.layers), step.parallel.pp)
    borders = frozenset(start - 1 for start in starts[1:])
    blocks = _blocks(step, stage)
    listed = _prologue(step) if stage in (None, 0) else []
    for layer in stage_layers(len(architecture.layers), step.parallel.pp, stage):
        kind = architecture.kind_of(layer)
        alike = blocks[architecture.layers[layer], layer == 0]
        listed += [replace(op, layer=layer, kind=kind) for op in alike]
        listed += [stage_border(step)] if layer in borders else []
    return listed + (_epilogue(step) if stage in (None, step.parallel.pp - 1) else [])


def counted_ops(
    architecture: Architecture,
    workload: Workload,
    parallel: Parallel | None = None,
    routing: ExpertRouting | None = None,
    execution: Execution | None = None,
    *,
    stage: int | None = None,
) -> list[tuple[Op, int]]:
    """Return the ops of ``ops`` without layer numbers, each once, with how often it occurs: much faster to sum.

    Arguments and errors are those of ``ops``; the kind is that of the first layer an op occurs in.
    """
    by_layers = ops_by_layers(architecture, workload, parallel, routing, execution, stage=stage)
    return [
        (replace(op, kind=architecture.kind_of(layers[0])), len(layers)) if layers else (op, 1)
        for op, layers in by_layers
    ]


def ops_by_layers(
    architecture: Architecture,
    workload: Workload,
    parallel: Parallel | None = None,
    routing: ExpertRouting | None = None,
    execution: Execution | None = None,
    *,
    stage: int | None = None,
) -> list[tuple[Op, tuple[int, ...]]]:
    """Return the ops of ``ops``, each once with the layers it occurs in; none for those outside of layers.

    Arguments and errors are those of ``ops``. Much faster where many steps are asked for.
    """
    step = _step(architecture, workload, parallel, routing, execution, stage)
    alike: dict[tuple[Layer, bool], list[int]] = {}
    for layer in stage_layers(len(architecture.layers), step.parallel.pp, stage):
        alike.setdefault((architecture.layers[layer], layer == 0), []).append(layer)
    by_layers: list[tuple[Op, tuple[int, ...]]] = []
    by_layers += [(op, ()) for op in (_prologue(step) if stage in (None, 0) else [])]
    for block, own in _blocks(step, stage).items():
        by_layers += [(op, tuple(alike[block])) for op in own]
    sends = step.parallel.pp - 1 if stage is None else int(stage < step.parallel.pp - 1)
    by_layers += [(stage_border(step), ())] * sends
    return by_layers + [(op, ()) for op in (_epilogue(step) if stage in (None, step.parallel.pp - 1) else [])]


def _step(
    architecture: Architecture,
    workload: Workload,
    parallel: Parallel | None,
    routing: ExpertRouting | None,
    execution: Execution | None,
    stage: int | None,
) -> Step:
    step = Step(architecture, workload, parallel or Parallel(), routing or ExpertRouting(), execution or Execution())
    if stage is not None and not 0 <= stage < step.parallel.pp:
        raise ModelError(f"stage must be 0 to {step.parallel.pp - 1}, not {stage}")
    return step


def _blocks(step: Step, stage: int | None) -> dict[tuple[Layer, bool], list[Op]]:
    """Return the ops of each distinct block; the first of the model is one of its own."""
    layers = step.architecture.layers
    chosen = stage_layers(len(layers), step.parallel.pp, stage)
    distinct = dict.fromkeys((layers[layer], layer == 0) for layer in chosen)
    return {(block, first): block_ops(step, block, first=first) for block, first in distinct}


def stage_layers(layers: int, stages: int, stage: int | None) -> range:
    """Return the layers of a pipeline stage; all of them where the stage is None."""
    if stage is None:
        return range(layers)
    starts = [*stage_starts(layers, stages), layers]
    return range(starts[stage], starts[stage + 1])


def stage_starts(layers: int, stages: int) -> list[int]:
    """Return the first layer of each pipeline stage, as vLLM splits a model.

    Layers that are left over go one each to the stages ahead of the last, from behind: the last one has the final norm
    and lm_head besides, and the first one, as long as others are left, the embedding.
    """
    size, left = divmod(layers, stages)
    first_larger = stages - 1 - left
    return [stage * size + max(min(stage, stages - 1) - first_larger, 0) for stage in range(stages)]


def block_ops(step: Step, block: Layer, *, first: bool) -> list[Op]:
    """Return the ops of a block of this description, wherever it stands.

    Args:
        step: what the op list is derived from.
        block: the description.
        first: whether nothing has been added to the residual stream before.
    """
    a = step.architecture
    listed: list[Op] = []
    if block.attention:
        listed.append(_norm(step, "input_norm", residual=not first))
        listed += attention_ops(step, block)
        if not (a.parallel_block and block.ffn):
            listed += after_part(step, "attention")
        listed += [_norm(step, "post_attention_norm", residual=False)] if a.norms_after else []
    if block.ffn:
        if not (a.parallel_block and block.attention):
            listed.append(_norm(step, "ffn_norm", residual=not first or block.attention is not None))
        listed += _ffn(step, block)
        listed += [_norm(step, "post_ffn_norm", residual=False)] if a.norms_after else []
    return listed


def _ffn(step: Step, block: Layer) -> list[Op]:
    computed = ffn_ops(step, block)
    there, back = expert_exchange(step) if block.ffn == "moe" else ([], [])
    if there:
        roles = [op.role for op in computed]
        names = [op.name.removesuffix("_quantize") for op in computed]
        first, last = names.index("moe_gate_up"), roles.index("moe_combine") + 1
        computed = [*computed[:first], *there, *computed[first:last], *back, *computed[last:]]
    return [*computed, *after_part(step, "ffn")]


def _norm(step: Step, name: str, *, residual: bool) -> Op:
    """4 T d b_a bytes with the residual add fused in (input and residual read and written), else 2 T d b_a."""
    values = step.tokens * step.architecture.hidden * (2 if residual else 1)
    notes = ("residual add fused in",) if residual else ()
    return step.elementwise(name, "norm", values, values, notes=notes)


def _prologue(step: Step) -> list[Op]:
    """Embedding: a row for each token, T d (b_w + b_a) bytes."""
    a, t = step.architecture, step.tokens
    read = t * a.hidden * a.weights.embedding.bytes
    written = t * a.hidden * step.width
    listed = [Op("embedding", "embedding", weight_bytes=read, activation_bytes=written)]
    if step.parallel.tp > 1:
        listed.append(collective("embedding_all_reduce", "all_reduce", written, step.parallel.tp))
    return listed


def _epilogue(step: Step) -> list[Op]:
    """Final norm over all tokens; lm_head and sampler over the sequences that draw a token."""
    a, b = step.architecture, step.workload.sampled
    listed = [_norm(step, "final_norm", residual=True)]
    if not b:
        return listed
    listed += step.linear("lm_head", "lm_head", a.weights.lm_head, b, a.hidden, step.share(a.vocab))
    if step.parallel.tp > 1:
        listed.append(collective("logits_all_gather", "all_gather", b * a.vocab * step.width, step.parallel.tp))
    logits = b * a.vocab
    notes = ("logits widened to fp32, then read once; sampling with top-k or top-p reads them more often",)
    moved = logits * (step.width + 2 * FP32_BYTES)
    return [*listed, Op("sampler", "sampler", activation_bytes=moved, kernels=None, notes=notes)]


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
