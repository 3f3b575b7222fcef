"""What a step's kernels tell of its phase: how attention runs, how many rows products have, what is sampled."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from traceanalyzer import names
from traceanalyzer.segment.tokens import EMBED, EXPERT, GEMM, MIXER, SAMPLE, BoolArray, IntArray, KernelVocabulary

_ONE_QUERY = re.compile(
    r"mla_(stage|reduce)|fmhafwdsplitkv|flash_attn_ext_vec|conv1d_update|scan_update|delta_rule_update|paged_attention_2d",
    re.IGNORECASE,
)
"""Kernels that mix tokens where each sequence has one query or few, beyond those whose traits say so."""
_MANY_QUERIES = re.compile(r"fmha_fwd_hd|fmhafwdkernel|flash_fprop|fmhasm\w*context", re.IGNORECASE)
"""The same where a sequence has many queries."""
_EITHER = re.compile(r"flashinfer\w*::.*batchprefillwithpaged", re.IGNORECASE)
"""FlashInfer decodes with its paged prefill kernel where heads are grouped."""
_IDLES_ALONG = re.compile(r"kernel_paged_attention_2d", re.IGNORECASE)
"""vLLM on ROCm launches it after the prompts' attention, too, where it finds no decoding sequence to work on."""
_TRAITS = r"<.*?_traits<[^<>]*(?:<[^<>]*>[^<>]*)*>\s*,\s*"
_CAUSAL = re.compile(
    rf"flash_fwd_kernel{_TRAITS}(?:true|false)\s*,\s*true\b|flash_fwd_splitkv_kernel{_TRAITS}true\b", re.IGNORECASE
)
"""FlashAttention 2 that masks later tokens: its arguments after the traits are dropout and causal, or causal first."""
_CACHED = re.compile(r"paged|reshape_and_cache|store_?kv|kv_?cache|concat_and_cache|set_kv", re.IGNORECASE)
_FEW_ROWS = re.compile(r"gemv|wvsplitk|llgemm|mul_mat_vec|skinny|splitkreduce|gemvx|dot_kernel", re.IGNORECASE)
"""Products that libraries choose for a handful of rows."""
_QUANTIZED_MANY = re.compile(r"mul_mat_q|quantize_mmq", re.IGNORECASE)
_FAST_EXCHANGE = re.compile(r"low_latency|internode_ll", re.IGNORECASE)
_BULK_EXCHANGE = re.compile(
    r"get_dispatch_layout|(intra|inter)node::(cached_)?(notify_)?(dispatch|combine)", re.IGNORECASE
)
"""How DeepEP sends tokens to experts: the one for few tokens per rank, and the one for many."""
_ROW_BLOCKS = re.compile(
    r"fused_add_rms_norm_kernel|act_and_mul_kernel|reshape_and_cache_flash_kernel|fusedaddrmsnormkernel", re.IGNORECASE
)
"""Kernels that engines start with one thread block per row: the first dimension of their grid counts tokens."""

QUERIES_FEW, QUERIES_MANY = 1, 2
_LOOKED_AT = 2000
"""Characters of a name that are searched; bounds the work on names that are no names. Chosen, not fitted."""


@dataclass(frozen=True)
class _Told:
    queries: int
    causal: bool
    cached: bool
    few_rows: bool
    many_rows: bool
    exchange: int
    trains: bool
    idles_along: bool
    tile: int | None


@lru_cache(maxsize=65_536)
def _told(name: str) -> _Told:
    kernel = names.parse(name)
    name = name[:_LOOKED_AT]
    traits = names.read_traits(kernel)
    few = traits.paged_decode or traits.split_kv_reduce or bool(_ONE_QUERY.search(name))
    many = not few and (traits.varlen_prefill or bool(_MANY_QUERIES.search(name)))
    one_phase = not _EITHER.search(name)
    sizes = [size for size in (kernel.block_m, kernel.block_n) if size]
    bulk, fast = bool(_BULK_EXCHANGE.search(name)), bool(_FAST_EXCHANGE.search(name))
    return _Told(
        queries=(QUERIES_FEW if few else QUERIES_MANY if many else 0) if one_phase else 0,
        causal=bool(_CAUSAL.search(name)),
        cached=bool(_CACHED.search(name)),
        few_rows=bool(_FEW_ROWS.search(name)),
        many_rows=bool(_QUANTIZED_MANY.search(name)),
        exchange=0 if bulk == fast else QUERIES_MANY if bulk else QUERIES_FEW,
        trains=traits.backward,
        idles_along=bool(_IDLES_ALONG.search(name)),
        tile=min(sizes) if len(sizes) == 2 else None,
    )


@dataclass(frozen=True)
class StepKernelSigns:
    """What the kernels of one step tell.

    Attributes:
        mixers: kernels that mix tokens.
        few, many: shares of them that run where sequences have one query or few, and where they have many.
        causal: share of them that mask later tokens, which takes several queries.
        caches: whether keys and values are written to a cache or read from one.
        samples: whether a token is picked after the last mixing.
        embeds: whether something is looked up before the first.
        few_rows, many_rows: shares of the products' time in kernels made for a handful of rows, and for many.
        tile: the smaller side of the products' tiles, median by time; None where names tell none.
        exchange: QUERIES_FEW or QUERIES_MANY by the way tokens are sent to experts, else 0.
        trains: whether gradients are computed or weights updated.
        idles_along: whether a decode kernel runs that is launched with prompts alone, too.
    """

    mixers: int
    few: float
    many: float
    causal: float
    caches: bool
    samples: bool
    embeds: bool
    few_rows: float
    many_rows: float
    tile: int | None
    exchange: int
    trains: bool
    idles_along: bool


def kernel_signs(tokens: IntArray, durations: IntArray, vocabulary: KernelVocabulary) -> StepKernelSigns:
    """Return what a step's kernels tell.

    Args:
        tokens, durations: of each event of the step, in order of start; durations in ns.
        vocabulary: what the tokens are.
    """
    distinct, inverse, counts = np.unique(tokens, return_inverse=True, return_counts=True)
    listed = distinct.tolist()
    told = [_told(vocabulary.names[token]) for token in listed]
    kinds = vocabulary.classes[distinct]
    time = np.bincount(inverse, weights=durations, minlength=len(distinct)).astype(np.float64)
    blocks = max(int(counts[kinds == MIXER].max(initial=0)), 1)
    of_products = time * np.isin(kinds, (GEMM, EXPERT))
    exchange = {one.exchange for one in told} - {0}

    def layers(wanted: list[bool]) -> float:
        """Share of the layers in which such a kernel runs; of two per layer one is enough."""
        return min(float(counts[np.array(wanted, dtype=np.bool_)].max(initial=0)) / blocks, 1.0)

    def products(wanted: list[bool]) -> float:
        return float(of_products[np.array(wanted, dtype=np.bool_)].sum() / max(of_products.sum(), 1))

    classes = vocabulary.classes[tokens]
    mixing = np.flatnonzero(classes == MIXER)
    first, last = (mixing[0], mixing[-1]) if len(mixing) else (0, len(tokens))
    return StepKernelSigns(
        mixers=len(mixing),
        few=layers([one.queries == QUERIES_FEW for one in told]),
        many=layers([one.queries == QUERIES_MANY for one in told]),
        causal=layers([one.causal for one in told]),
        caches=any(one.cached for one in told) or "kv_write" in {vocabulary.roles[token] for token in listed},
        samples=bool((classes[last + 1 :] == SAMPLE).any()),
        embeds=bool((classes[:first] == EMBED).any()),
        few_rows=products([one.few_rows for one in told]),
        many_rows=products([one.many_rows for one in told]),
        tile=_median_tile(told, kinds == GEMM, time),
        exchange=exchange.pop() if len(exchange) == 1 else 0,
        trains=any(one.trains for one in told),
        idles_along=any(one.idles_along for one in told),
    )


def _median_tile(told: list[_Told], products: BoolArray, time: npt.NDArray[np.float64]) -> int | None:
    sizes = sorted((one.tile, t) for one, own, t in zip(told, products, time, strict=True) if own and one.tile)
    if not sizes:
        return None
    total, reached = sum(t for _, t in sizes), 0.0
    for size, t in sizes:
        reached += t
        if reached * 2 >= total:
            return size
    return sizes[-1][0]


def row_blocks(name: str) -> str | None:
    """Return what a kernel that runs one thread block per row is, or None for any other."""
    match = _ROW_BLOCKS.search(name)
    return match[0].lower() if match else None


def rows_by_grids(pairs: Sequence[tuple[str, str]]) -> int | None:
    """Return the rows of a step, where kernels of different kinds that run one thread block per row agree.

    Args:
        pairs: normalised name and grid (JSON text) of such kernels.
    """
    by_kind: dict[str, set[int]] = {}
    for name, grid in pairs:
        kind, size = row_blocks(name), re.match(r"\[\s*(\d{1,9})\s*,", grid)
        if kind is not None and size:
            by_kind.setdefault(kind, set()).add(int(size[1]))
    common = set.intersection(*by_kind.values()) if len(by_kind) > 1 else set()
    return common.pop() if len(common) == 1 else None
