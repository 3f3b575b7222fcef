"""What a kernel's name says about the step it runs in: backward, optimizer, decode, prefill, sampling.

Each trait is true only where the name alone proves it. ``flash_fwd_kernel`` runs in both phases, so it has neither
trait; ``paged_attention_v2_reduce_kernel`` exists for single query tokens only, so it has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.direction import LOOKED_AT
from traceanalyzer.names.kernel_name import KernelName

_MIXES = frozenset({"attention", "ssm"})
_REDUCES_SPLITS = re.compile(
    r"combine|reduce|merge_?states|stage_?2|(?:split|flash)\w*fixup|postprocess_?splits", re.IGNORECASE
)
_JOINS_CHUNKS = re.compile(r"merge_attn_states|stage1\w*stage2|_reduce_scatter|mla_(?:gemm|prefill)", re.IGNORECASE)
_DECODES = re.compile(
    r"paged_attention(?:_v[12])?_(?:kernel|ll4mi|reduce|v[12])|kernel_paged_attention|unified_attention_3d"
    r"|batch_?decode|single_?decode|batchdecodewith|singledecodewith|decode_(?:att|grouped|softmax|mla)|_decode_attention"
    r"|flash_?decod|flex_decoding|mla_?dec|dec_stage[12]|splitkv_mla|flash_?mla_?dec|paged_decode|_decode_fwd|fwd_(?:grouped_)?kernel_stage[12]"
    r"|masked_multihead_attention|\bmmha|xqa|forgen|paged_mqa_logits|pa_(?:bf16|fp16|fp8|a16|decode)|pa_fwd"
    r"|flash_attn_vec|attention_decode|selective_(?:scan|state)_update|causal_conv1d_update|fused_recurrent|recurrent_gated_delta|tokens_decode"
    r"|single_token|seqlen1_attn|kv_decode|fusedqkvdecode|decode_kernel",
    re.IGNORECASE,
)
_PREFILLS = re.compile(
    r"varlen(?!gth)|prefillwithragged|single_?prefill|prefill|contextattention|context_?attn|context_?attention|context_?fmha"
    r"|(?:persistent|static)context|extend_att|^_?fwd_kernel$|chunk_(?:scan|state|gated|fwd|kda|gla|o\b|h\b|local)|chunk_fwd"
    r"|chunked_prefill|state_passing|selective_scan_fwd|causal_conv1d_(?:fwd|varlen)|fp8_mqa_logits|solve_tril|recompute_w_u",
    re.IGNORECASE,
)
_BOTH_PHASES = re.compile(r"flashinfer::\w*batchprefillwithpaged|unified_attention_2d", re.IGNORECASE)
"""FlashInfer decodes with the paged prefill kernel where heads are grouped."""

_LARGEST = re.compile(r"top_?k", re.IGNORECASE)
_LARGEST_OF = frozenset({"sort", "sampling", "moe_routing"})
_ARGMAX = re.compile(r"arg_?max", re.IGNORECASE)
_DRAWS = re.compile(
    r"exponential|multinomial|gumbel|random_sample|sampling_?from|top_?k_?top_?p|top_?p_?sampl|min_?p_?sampl|uniform"
    r"|distribution_|philox|recovered_tokens|rejection|bernoulli|normal_and",
    re.IGNORECASE,
)
_LOG_SOFTMAX = re.compile(r"log_?soft_?max", re.IGNORECASE)
_WARP_SOFTMAX = re.compile(r"softmax_warp_\w+<(?:[^<>,]+,){4} ?(?:\(bool\))?(?:true|1)\b")
"""The fifth argument of PyTorch's ``softmax_warp_forward`` is whether it takes the logarithm."""


@dataclass(frozen=True)
class Traits:
    """What a name proves about the step.

    Attributes:
        backward: computes gradients (``dgrad``, ``wgrad``, ``bwd``, ``backward``); a product's name never tells.
        optimizer: updates weights (Adam, SGD, ``multi_tensor_apply``).
        convolution: convolves, in whichever direction.
        split_kv_reduce: adds up attention whose keys were split among thread blocks (flash decoding).
        paged_decode: mixes tokens for one query token (or a few) a sequence: a decode kernel, or a recurrent update.
        varlen_prefill: mixes tokens for many query tokens a sequence: a prefill kernel, or a chunked scan.
        argmax: picks the largest, as greedy sampling does.
        topk: picks the largest few.
        sampling_random: draws at random, as sampling does (so do weight initialisation and dropout).
        softmax: is a softmax of its own: of attention that nothing fuses, of a router, of a sampler, of a loss.
    """

    backward: bool = False
    optimizer: bool = False
    convolution: bool = False
    split_kv_reduce: bool = False
    paged_decode: bool = False
    varlen_prefill: bool = False
    argmax: bool = False
    topk: bool = False
    sampling_random: bool = False
    softmax: bool = False


_NOTHING = Traits()
_BACKWARD = Traits(backward=True)
_TELLING = _MIXES | _LARGEST_OF | {"optimizer", "convolution", "random", "softmax"}
"""Kinds whose names prove more than their direction."""


def read_traits(kernel: KernelName) -> Traits:
    """Return what a kernel's name proves about the step that it runs in."""
    if kernel.kind not in _TELLING:
        return _BACKWARD if kernel.direction == "backward" else _NOTHING
    view = NameView(kernel.name)
    head = view.lower[:LOOKED_AT]
    backward = kernel.direction == "backward"
    phase = _Phase() if backward or kernel.kind not in _MIXES else _phase(kernel.kind, view.identifier)
    return Traits(
        backward=backward,
        optimizer=kernel.kind == "optimizer",
        convolution=kernel.kind == "convolution",
        split_kv_reduce=phase.reduces,
        paged_decode=phase.decodes,
        varlen_prefill=phase.prefills,
        argmax=kernel.kind == "sampling" and _ARGMAX.search(head) is not None,
        topk=kernel.kind in _LARGEST_OF and _LARGEST.search(head) is not None,
        sampling_random=kernel.kind in ("sampling", "random") and _DRAWS.search(head) is not None,
        softmax=kernel.kind == "softmax" and not backward and not _takes_logarithm(view),
    )


@dataclass(frozen=True)
class _Phase:
    """What the name of a mixer proves; see Traits."""

    reduces: bool = False
    decodes: bool = False
    prefills: bool = False


def _phase(kind: str, text: str) -> _Phase:
    reduces = kind == "attention" and _REDUCES_SPLITS.search(text) is not None and _JOINS_CHUNKS.search(text) is None
    if _BOTH_PHASES.search(text):
        return _Phase(reduces)
    decodes = _DECODES.search(text) is not None
    return _Phase(reduces, decodes, not (decodes or reduces) and _PREFILLS.search(text) is not None)


def _takes_logarithm(view: NameView) -> bool:
    text = view.text[:LOOKED_AT]
    return _LOG_SOFTMAX.search(text) is not None or _WARP_SOFTMAX.search(text) is not None
