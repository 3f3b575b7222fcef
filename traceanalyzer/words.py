"""The product's fixed words: phases, sections, roles, groupings. Imports only typing."""

from __future__ import annotations

from typing import Literal, get_args

Phase = Literal["decode", "prefill", "mixed", "dummy", "forward", "training", "unknown"]
PHASES: tuple[Phase, ...] = get_args(Phase)
"""What a step does; ``forward``: a pass of a model that generates no tokens, such as an encoder's."""

PhaseSource = Literal["marker", "inferred"]
PHASE_SOURCES: tuple[PhaseSource, ...] = get_args(PhaseSource)
"""How a step's phase is known: its marker says it, or its kernels and their launches do."""

PassKind = Literal["main", "draft", "micro_batch"]
PASS_KINDS: tuple[PassKind, ...] = get_args(PassKind)
"""What goes through layers once: the model, a draft model, or a part of the batch beside another part."""

WorkloadKind = Literal[
    "llm_serving",  # a server's steps
    "llm",  # a language model outside a server
    "encoder",  # passes without a KV cache: text or image encoders, embedding models
    "diffusion",  # denoising steps, and what decodes their result
    "training",  # forward and backward passes, optimizers
    "graph_capture",  # a graph being recorded; next to nothing ran
    "other",  # nothing of a transformer
    "unknown",  # nothing tells
]
"""What a trace was recorded of."""

Section = Literal["prologue", "block", "epilogue"]
SECTIONS: tuple[Section, ...] = get_args(Section)
"""Parts of a step: before its transformer blocks, within one, after them."""

Method = Literal["modules", "pattern"]
"""What blocks are found by: ``nn.Module`` events, or the pattern of kernel names."""

Grouping = Literal["kernel", "role", "family"]
GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)
"""What a row of a ranking is."""

Role = Literal[
    "norm",  # layer norm or RMS norm, with the residual addition fused into it
    "qkv_proj",  # projection to queries, keys and values
    "rope",  # rotary position embedding
    "kv_write",  # writes keys and values to the cache
    "attention",  # mixes tokens: attention or a state-space scan
    "o_proj",  # projection of the attention's output
    "router",  # product that scores the experts
    "moe_routing",  # picks experts and sorts tokens by them
    "moe_gate_up",  # first product of the experts
    "moe_down",  # second product of the experts
    "moe_combine",  # adds up the experts' outputs
    "gate_up",  # first product of the feed-forward
    "down",  # second product of the feed-forward
    "activation",  # between gate_up and down
    "quantize",  # converts activations to a narrower type
    "communication",  # collectives
    "copy",  # copies and memsets
    "embedding",  # looks up token embeddings
    "lm_head",  # product to the logits
    "sampler",  # from logits to tokens
    "other",  # no rule covers it
]
ROLES: tuple[Role, ...] = get_args(Role)
"""What a kernel does in the model. The order is that of CSV columns; ``other`` is last."""

LEAST_CERTAIN = 0.3
"""Confidence from which blocks count as found; of less certain ones it is said that they are doubtful. Chosen, not
fitted: how often others reach it is measured (docs/benchmarks.md)."""
