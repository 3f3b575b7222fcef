"""Recognise the built-in model of a trace from its kernels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from traceanalyzer.model.architecture import RECURRENT, Architecture
from traceanalyzer.model.known import known_names, named

ENOUGH = 3
"""Evidence that a candidate needs; chosen, not fitted: a layer count, alone or with one common trait, also fits models
that are not in the table."""

QUANTISED = frozenset({"fp8", "fp8_block", "int8", "int4", "int4_zero_point", "mxfp4", "nvfp4", "nvfp4_weight"})


@dataclass(frozen=True)
class TraceFacts:
    """What a trace tells of its model; None for what it does not.

    Attributes:
        layers: transformer blocks of a step over all pipeline stages.
        moe: whether blocks have expert kernels.
        period: blocks after which their variants repeat; 1 if all are alike.
        experts: routed experts.
        top_k: experts per token.
        hidden: width of the residual stream, from shapes or a norm's tile.
        hidden_limit: its upper bound, such as the width of a norm's tile.
        vocab: rows of lm_head.
        weight_formats: formats of weights seen in kernel names, such as ``mxfp4``.
        mla: whether there are MLA kernels.
        recurrent: whether there are state-space or linear-attention kernels.
        qk_norm: whether queries and keys are normalised.
    """

    layers: int | None = None
    moe: bool | None = None
    period: int | None = None
    experts: int | None = None
    top_k: int | None = None
    hidden: int | None = None
    hidden_limit: int | None = None
    vocab: int | None = None
    weight_formats: frozenset[str] = frozenset()
    mla: bool | None = None
    recurrent: bool | None = None
    qk_norm: bool | None = None


@dataclass(frozen=True)
class Candidate:
    """A built-in model that no fact contradicts.

    Attributes:
        architecture: the model.
        evidence: total weight of the facts that agree; see ``ENOUGH``.
        reasons: the facts that agree, in words.
        same_shape: other built-in models of the same shape, which no trace can tell apart.
    """

    architecture: Architecture
    evidence: int
    reasons: tuple[str, ...]
    same_shape: tuple[str, ...] = ()


def recognise_model(facts: TraceFacts, models: Iterable[Architecture] | None = None) -> Candidate | None:
    """Return the one model that fits, out of the built-in ones by default; None if several do or evidence is weak."""
    fitting = candidates(facts, models)
    return fitting[0] if len(fitting) == 1 and fitting[0].evidence >= ENOUGH else None


def candidates(facts: TraceFacts, models: Iterable[Architecture] | None = None) -> list[Candidate]:
    """Return the models that no fact contradicts, those with most evidence first; one per shape."""
    known = list(models) if models is not None else [named(name) for name in known_names()]
    fitting = [candidate for model in known if (candidate := _judge(facts, model))]
    shapes: dict[tuple[object, ...], list[Candidate]] = {}
    for candidate in fitting:
        shapes.setdefault(_shape(candidate.architecture), []).append(candidate)
    merged = [
        Candidate(first.architecture, first.evidence, first.reasons, tuple(c.architecture.name for c in rest))
        for first, *rest in shapes.values()
    ]
    return sorted(merged, key=lambda candidate: -candidate.evidence)


def _shape(a: Architecture) -> tuple[object, ...]:
    return (a.layers, a.hidden, a.heads, a.kv_heads, a.head_dim, a.vocab, a.tied, a.moe, a.mla, a.mixer, a.weights)


def _judge(facts: TraceFacts, model: Architecture) -> Candidate | None:
    """Weigh every fact; None as soon as one contradicts the model."""
    evidence, reasons = 0, []
    for seen, own, weight, text in _comparisons(facts, model):
        if seen is None:
            continue
        if seen != own:
            return None
        evidence += weight
        reasons += [text] if weight else []
    if facts.hidden_limit is not None and model.hidden > facts.hidden_limit:
        return None
    quantised = facts.weight_formats & QUANTISED
    if quantised:
        if not quantised & model.weights.names:
            # Any model can be quantised to fp8 or int4 later; only models published so have mxfp4 weights.
            if quantised & {"mxfp4"}:
                return None
        else:
            evidence += 1
            reasons.append(f"weights in {', '.join(sorted(quantised & model.weights.names))}")
    elif facts.weight_formats and model.weights.names & {"mxfp4"}:
        return None
    return Candidate(model, evidence, tuple(reasons)) if evidence else None


def _comparisons(facts: TraceFacts, model: Architecture) -> list[tuple[object, object, int, str]]:
    """Return (seen, the model's own, evidence if equal, in words).

    Weights are chosen, not fitted: 2 for sizes that few models share, 1 for traits, 0 for what most models have.
    """
    moe = model.moe
    recurrent = any(layer.attention in RECURRENT for layer in model.layers)
    period = model.period
    return [
        (facts.layers, len(model.layers), 1, f"{len(model.layers)} layers"),
        (facts.moe, moe is not None, 1 if moe else 0, "mixture of experts"),
        (_period_to_compare(facts, model), period, 1 if period > 1 else 0, f"layers alternate with period {period}"),
        (facts.experts, moe.experts if moe else None, 2, f"{moe.experts if moe else 0} experts"),
        (facts.top_k, moe.top_k if moe else None, 1, f"top {moe.top_k if moe else 0}"),
        (facts.hidden, model.hidden, 2, f"hidden size {model.hidden}"),
        (facts.vocab, model.vocab, 2, f"vocabulary of {model.vocab}"),
        (facts.mla, model.mla is not None, 1 if model.mla else 0, "MLA"),
        (facts.recurrent, recurrent, 1 if recurrent else 0, "recurrent layers"),
        (facts.qk_norm, model.qk_norm is not None, 1 if model.qk_norm else 0, "norms of queries and keys"),
    ]


def _period_to_compare(facts: TraceFacts, model: Architecture) -> int | None:
    """Return the period seen; None where it says nothing about this model.

    Layers that differ only in their window may look alike, and a model whose first layers are dense has no period.
    """
    if model.period == len(model.layers) or facts.period is None:
        return None
    only_windows = len({layer.ffn for layer in model.layers}) == 1 and all(
        layer.attention in ("full", "sliding", "chunked") for layer in model.layers
    )
    return None if only_windows and facts.period == 1 else facts.period
