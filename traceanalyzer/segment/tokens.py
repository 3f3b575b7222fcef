"""Kernel names as numbers: one token a distinct normalised name, and what each token is in a transformer.

Everything after this module works on small integer arrays, so that its cost does not depend on name lengths.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from traceanalyzer import names
from traceanalyzer.segment.unfused import SoftmaxContext, activating_squash, attending_softmax

IntArray = npt.NDArray[np.int64]
ByteArray = npt.NDArray[np.int8]
BoolArray = npt.NDArray[np.bool_]

OTHER, NORM, GEMM, EXPERT, MIXER, POSITION, ROUTE, COMBINE, COMM, SAMPLE, EMBED, VIEW, ACT, CONV = range(14)
"""Classes of kernels. MIXER mixes tokens (attention, state space), POSITION serves it (rope, KV write), VIEW does no
work (aliases and allocations of CPU traces), CONV convolves pixels or samples (short convolutions of a state space are
MIXER)."""

_CLASS_OF_KIND = {
    "norm": NORM,
    "gemm": GEMM,
    "attention": MIXER,
    "ssm": MIXER,
    "rope": POSITION,
    "attention_prelude": POSITION,
    "kv_write": POSITION,
    "moe_routing": ROUTE,
    "moe_combine": COMBINE,
    "communication": COMM,
    "sampling": SAMPLE,
    "embedding": EMBED,
    "index": EMBED,
    "activation": ACT,
    "view": VIEW,
    "convolution": CONV,
}
_OTHER_NORM = re.compile(r"(?i)(batch|group|instance)_?norm|\bbn_|group_?normalization")
"""Norms of convolutional networks: no block of a transformer begins with one."""
_FUSED_NORM = (
    "rmsnorm",
    "_rms",
    "layernorm",
    "layer_norm",
    "rms_norm",
    "norm_quant",
    "rsqrt",
    "allreduce_fusion",
    "ar_norm",
)
_FUSED_ACTIVATION = re.compile(r"swiglu|silu|gelu|relu", re.IGNORECASE)
_NO_WORK = re.compile(
    r"aten::(empty|empty_strided|new_empty|view|as_strided|slice|narrow|select|detach|alias|result_type"
    r"|lift_fresh|resolve_conj|resolve_neg|expand|reshape|permute|transpose|t|unsqueeze|squeeze|flatten|unflatten"
    r"|split|split_with_sizes|chunk|unbind|_unsafe_view|_reshape_alias|movedim|to|item|_local_scalar_dense)$"
)
_LINEAR = re.compile(
    r"delta|gdn|kda|gla|lightning|linear_att|wkv|retention|_fwd_(?:none_)?diag_|_fwd_kv_", re.IGNORECASE
)
_ADDS = re.compile(r"(?i)functor_?add|aten::add_?\b|_add_|add_kernel")
_SQUASHES = re.compile(r"(?i)sigmoid|tanh|erf_")
_PARTING = (NORM, ROUTE, SAMPLE, COMM, EXPERT, COMBINE, MIXER)
"""Classes that no attention has between its two products."""


@dataclass(frozen=True)
class KernelVocabulary:
    """What is known of each token.

    Attributes:
        names: normalised name.
        roles: role that the name settles, or None.
        mixers: what mixes tokens in it (``attention``, ``mamba``, ``linear``), or None.
        classes: one of the classes above.
        activates: whether it applies the feed-forward's activation (fused into a GEMM or not).
        bare_norm: whether it is the heart of a norm made of several elementwise kernels.
        unfused: whether it is the softmax of attention that nothing fuses, between its two products.
        helpers: whether it finishes the GEMM before it (adds up its split-K parts).
        adds: whether it is an elementwise addition (a residual, in a model that fuses nothing).
        sorts: whether it sorts a tensor or picks its largest values (of a router, in a model that fuses nothing).
        backward, optimizer, convolution, split_kv_reduce, paged_decode, varlen_prefill, argmax, topk,
            sampling_random, softmax: what the name alone proves; see `names.Traits`.
        unknown: whether its name tells nothing of what it does.
    """

    names: tuple[str, ...]
    roles: tuple[str | None, ...]
    mixers: tuple[str | None, ...]
    classes: ByteArray
    activates: BoolArray
    bare_norm: BoolArray
    unfused: BoolArray
    helpers: BoolArray
    adds: BoolArray
    sorts: BoolArray
    backward: BoolArray
    optimizer: BoolArray
    convolution: BoolArray
    split_kv_reduce: BoolArray
    paged_decode: BoolArray
    varlen_prefill: BoolArray
    argmax: BoolArray
    topk: BoolArray
    sampling_random: BoolArray
    softmax: BoolArray
    unknown: BoolArray


@dataclass(frozen=True)
class _Word:
    role: str | None
    mixer: str | None
    kind: int
    activates: bool
    bare_norm: bool
    helper: bool
    adds: bool
    sorts: bool
    picks: bool
    unknown: bool
    elementwise: bool
    squashes: bool
    traits: names.Traits


@lru_cache(maxsize=65_536)
def _read(name: str) -> _Word:
    kernel = names.parse(name)
    role = names.role_hint(kernel)
    kind = _class(name, kernel, role)
    fused = f"{kernel.epilogue or ''} {kernel.fused_ops or ''}"
    elementwise = kernel.kind == "elementwise"
    return _Word(
        role=role,
        mixer=_mixer(name, kernel) if kind == MIXER else None,
        kind=kind,
        activates=kind == ACT or (kind in (GEMM, EXPERT) and bool(_FUSED_ACTIVATION.search(fused))),
        bare_norm=kind == NORM and _is_bare_norm(name, kernel, role),
        helper=kernel.kind == "gemm_helper",
        adds=elementwise and bool(_ADDS.search(name)),
        sorts=kernel.kind == "sort",
        picks=kernel.kind in ("sort", "reduction", "scan", "loss"),
        unknown=kernel.kind == "unknown" and kind == OTHER,
        elementwise=elementwise,
        squashes=elementwise and kind == OTHER and bool(_SQUASHES.search(name)),
        traits=names.read_traits(kernel),
    )


def _plain_class(kernel: names.KernelName, role: str | None) -> int:
    """The class by the kernel's kind alone; a mixture of experts' kernels are told by family and role."""
    kind = _CLASS_OF_KIND.get(kernel.kind, OTHER)
    if kind == GEMM and kernel.family == "moe_gemm":
        return EXPERT
    return COMBINE if kind == OTHER and role == "moe_combine" else kind


def _class(name: str, kernel: names.KernelName, role: str | None) -> int:
    kind = _plain_class(kernel, role)
    if kind == NORM and _OTHER_NORM.search(name):
        return OTHER
    # Norms are fused into collectives, rope, activations and whatever a compiler joins: a border lies at them all.
    if kind in (COMM, OTHER, POSITION, ACT) and _has_norm(name.lower()):
        return NORM
    # A compiled kernel that indexes something is not a lookup of embeddings.
    if kind == EMBED and kernel.kind == "index" and name.startswith("triton_"):
        kind = OTHER
    return VIEW if kind in (OTHER, EMBED) and _NO_WORK.fullmatch(name) else kind


def _has_norm(lower: str) -> bool:
    return any(mark in lower for mark in _FUSED_NORM)


def _is_bare_norm(name: str, kernel: names.KernelName, role: str | None) -> bool:
    heart = _plain_class(kernel, role) == OTHER and "rsqrt" in name.lower()
    return heart and not name.startswith("triton_")


def _mixer(name: str, kernel: names.KernelName) -> str:
    if kernel.kind == "attention":
        return "attention"
    return "linear" if _LINEAR.search(name) else "mamba"


def _with_unfused(tokens: IntArray, words: list[_Word]) -> tuple[IntArray, list[_Word], list[int]]:
    """Make mixers of the softmaxes that are attention by their place, where no fused attention is in the trace.

    One kernel may serve a router and an attention: then those in attention get a token of their own.

    Returns:
        The tokens, the words, and for each word added the token whose name it shares.
    """

    def flags(test: Callable[[_Word], bool]) -> BoolArray:
        return np.array([test(word) for word in words], dtype=np.bool_)[tokens]

    softmax = flags(lambda word: word.traits.softmax)
    if any(word.mixer == "attention" for word in words) or not softmax.any():
        return tokens, words, []
    attends = attending_softmax(
        SoftmaxContext(
            softmax=softmax,
            product=flags(lambda word: word.kind == GEMM),
            parting=flags(lambda word: word.kind in _PARTING or word.sorts),
            picking=flags(lambda word: word.picks or word.kind == EMBED),
            idle=flags(lambda word: word.kind == VIEW),
        )
    )
    return _promoted(tokens, words, attends, {"kind": MIXER, "mixer": "attention", "role": "attention"})


def _with_activations(tokens: IntArray, words: list[_Word]) -> tuple[IntArray, list[_Word], list[int]]:
    """Make activations of what squashes between a feed-forward's products among other elementwise kernels."""

    def flags(test: Callable[[_Word], bool]) -> BoolArray:
        return np.array([test(word) for word in words], dtype=np.bool_)[tokens]

    squash = flags(lambda word: word.squashes)
    if not squash.any():
        return tokens, words, []
    activates = activating_squash(
        squash,
        flags(lambda word: word.kind == GEMM),
        flags(lambda word: word.elementwise),
        flags(lambda word: word.kind == VIEW),
    )
    return _promoted(tokens, words, activates, {"kind": ACT, "activates": True, "role": "activation"})


def _promoted(
    tokens: IntArray, words: list[_Word], chosen: BoolArray, more: dict[str, Any]
) -> tuple[IntArray, list[_Word], list[int]]:
    """Change what the words at chosen events are; those that play another part elsewhere get a token of their own."""
    words, tokens = list(words), tokens.copy()
    shared: list[int] = []
    for token in np.unique(tokens[chosen]).tolist():
        changed = replace(words[token], **more)
        own = tokens == token
        if chosen[own].all():
            words[token] = changed
        else:
            tokens[own & chosen] = len(words)
            words.append(changed)
            shared.append(token)
    return tokens, words, shared


def encode(column: pl.Series) -> tuple[IntArray, KernelVocabulary]:
    """Return the token of each name in a column, and the vocabulary.

    Args:
        column: kernel names, strings or categorical.
    """
    text = column.cast(pl.String).fill_null("")
    distinct = text.unique(maintain_order=True).to_list()
    normal: dict[str, int] = {}
    first: list[str] = []
    token_of = []
    for name in distinct:
        key = names.normalise(name)
        if key not in normal:
            normal[key] = len(first)
            first.append(name)
        token_of.append(normal[key])
    words = [_read(name) for name in first]
    mapping = pl.DataFrame({"name": pl.Series(distinct, dtype=pl.String), "token": pl.Series(token_of, dtype=pl.Int64)})
    column_tokens = text.to_frame("name").join(mapping, on="name", how="left", maintain_order="left")["token"]
    tokens = column_tokens.to_numpy().astype(np.int64, copy=False)
    known = list(normal)
    for promote in (_with_unfused, _with_activations):
        tokens, words, shared = promote(tokens, words)
        known += [known[token] for token in shared]
    return tokens, _vocabulary(tuple(known), words)


def _vocabulary(normal: tuple[str, ...], words: list[_Word]) -> KernelVocabulary:
    def flags(attribute: str) -> BoolArray:
        return np.array([getattr(word, attribute) for word in words], dtype=np.bool_)

    return KernelVocabulary(
        names=normal,
        roles=tuple(word.role for word in words),
        mixers=tuple(word.mixer for word in words),
        classes=np.array([word.kind for word in words], dtype=np.int8),
        activates=flags("activates"),
        bare_norm=flags("bare_norm"),
        unfused=np.array([word.traits.softmax and word.kind == MIXER for word in words], dtype=np.bool_),
        helpers=flags("helper"),
        adds=flags("adds"),
        sorts=flags("sorts"),
        unknown=flags("unknown"),
        **{
            trait.name: np.array([getattr(word.traits, trait.name) for word in words], dtype=np.bool_)
            for trait in fields(names.Traits)
        },
    )
