"""The work of one step: sequences, new tokens, the context that they attend to, and the layout over GPUs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from traceanalyzer.model.architecture import ModelError

Counter = Callable[[float, float], tuple[float, float]]
"""(new tokens, past tokens) of a sequence -> (pairs, tokens read)."""


@dataclass(frozen=True)
class Attended:
    """What attention of one kind computes and reads.

    Attributes:
        pairs: (query token, visible token) pairs; None where the context is unknown.
        kv_tokens: tokens whose keys and values are read, summed over sequences; None likewise.
        exact: false if it assumes equal lengths.
    """

    pairs: float | None
    kv_tokens: float | None
    exact: bool = True


@dataclass(frozen=True)
class Group:
    """Sequences of a step that are in the same phase.

    Attributes:
        requests: sequences, B.
        tokens: new tokens of all of them, sum of q.
        kv_tokens: tokens of all contexts, the new ones included, sum of p + q; None where unknown.
        pairs: causal pairs under full attention, sum of q p + q (q + 1) / 2; None where unknown.
        decode: whether they generate; else they read their prompt.
        lengths: (q, p + q) of each sequence where known.
    """

    requests: int
    tokens: int
    kv_tokens: int | None
    pairs: float | None
    decode: bool
    lengths: tuple[tuple[int, int], ...] | None = None

    def full(self) -> Attended:
        """Return the work of full attention."""
        return Attended(self.pairs, self.kv_tokens)

    def sliding(self, window: int) -> Attended:
        """Return the work of attention to the last ``window`` tokens, the query's own included."""
        return self._limited(lambda q, p: (window_pairs(q, p, window), min(p + q, window + q - 1)))

    def chunked(self, chunk: int) -> Attended:
        """Return the work of attention within aligned chunks of ``chunk`` tokens."""
        return self._limited(lambda q, p: (chunk_pairs(q, p, chunk), q + p % chunk))

    def _limited(self, count: Counter) -> Attended:
        if self.kv_tokens is None or not self.requests:
            return Attended(None if self.requests else 0.0, None if self.requests else 0.0)
        if self.lengths is not None:
            counted = [count(q, context - q) for q, context in self.lengths]
            return Attended(sum(pairs for pairs, _ in counted), sum(kv for _, kv in counted))
        q = self.tokens / self.requests
        pairs, kv = count(q, self.kv_tokens / self.requests - q)
        limit = self.pairs if self.pairs is not None else pairs * self.requests
        return Attended(min(pairs * self.requests, limit), kv * self.requests, exact=self.requests == 1)


def full_pairs(q: float, p: float) -> float:
    """Return the causal pairs of q new tokens after p past ones."""
    return q * p + q * (q + 1) / 2


def window_pairs(q: float, p: float, window: int) -> float:
    """Return the pairs if each token sees at most ``window`` tokens, itself included."""
    growing = min(max(window - p, 0), q)
    return growing * p + growing * (growing + 1) / 2 + (q - growing) * window


def chunk_pairs(q: float, p: float, chunk: int) -> float:
    """Return the pairs if each token sees those before it in its chunk, itself included."""
    total, start, left = 0.0, p % chunk, q
    while left > 0:
        here = min(left, chunk - start)
        total += full_pairs(here, start)
        left, start = left - here, 0
    return total


@dataclass(frozen=True)
class Workload:
    """The work of one step on one data-parallel rank.

    Attributes:
        groups: its sequences by phase.
        sampled: positions for which a token is sampled: rows of lm_head.
        basis: where the numbers come from.
    """

    groups: tuple[Group, ...]
    sampled: int
    basis: tuple[str, ...] = ()

    @property
    def sequences(self) -> int:
        """Sequences of the step, B."""
        return sum(group.requests for group in self.groups)

    @property
    def tokens(self) -> int:
        """New tokens of the step, T."""
        return sum(group.tokens for group in self.groups)

    @property
    def kv_tokens(self) -> int | None:
        """Tokens of all contexts, the new ones included; None where unknown."""
        known = [group.kv_tokens for group in self.groups if group.kv_tokens is not None]
        return sum(known) if len(known) == len(self.groups) else None


def from_lengths(lengths: Iterable[tuple[int, int]], *, sampled: int | None = None) -> Workload:
    """Describe a step by its sequences.

    Args:
        lengths: (new tokens, tokens in the cache before) of each sequence.
        sampled: sequences for which a token is sampled; all by default.

    Raises:
        ModelError: a length is absurd, or there is no sequence.
    """
    pairs = list(lengths)
    if not pairs:
        raise ModelError("a step needs at least one sequence")
    for new, past in pairs:
        if new < 1 or past < 0:
            raise ModelError(f"a sequence needs 1 new token or more and 0 past ones or more, not {new} and {past}")
    decode = [(q, p) for q, p in pairs if q == 1 and p > 0]
    context = [(q, p) for q, p in pairs if not (q == 1 and p > 0)]
    groups = tuple(
        group_of(members, decode=decodes) for members, decodes in ((context, False), (decode, True)) if members
    )
    return Workload(groups, len(pairs) if sampled is None else sampled, ("from the lengths of the sequences",))


def group_of(members: Sequence[tuple[int, int]], *, decode: bool) -> Group:
    """Return the group of sequences of these (new tokens, tokens in the cache before)."""
    return Group(
        requests=len(members),
        tokens=sum(q for q, _ in members),
        kv_tokens=sum(q + p for q, p in members),
        pairs=sum(full_pairs(q, p) for q, p in members),
        decode=decode,
        lengths=tuple((q, q + p) for q, p in members),
    )


def decode_step(sequences: int, kv_tokens: int | None = None) -> Workload:
    """Describe a decode step; ``kv_tokens`` are those of all contexts, the new ones included, None where unknown."""
    return from_sums(generation=(sequences, sequences, kv_tokens))


def from_sums(
    *,
    context: tuple[int, int, int | None] = (0, 0, 0),
    generation: tuple[int, int, int | None] = (0, 0, 0),
    context_squares: tuple[int, int] | None = None,
    generation_squares: tuple[int, int] | None = None,
    basis: str = "from sums over the sequences",
) -> Workload:
    """Describe a step by sums over its sequences, as a detailed vLLM marker gives them.

    Args:
        context: (sequences, sum of q, sum of p + q) of those that read their prompt; the last may be None.
        generation: the same of those that generate.
        context_squares: (sum of q q, sum of q (p + q)) of the former; makes their pairs exact.
        generation_squares: the same of the latter.
        basis: where the sums come from.

    Raises:
        ModelError: the sums contradict each other, or there is no sequence.
    """
    parts = ((context, context_squares, False), (generation, generation_squares, True))
    groups = tuple(_group_of_sums(*part) for part in parts if part[0][0])
    if not groups:
        raise ModelError("a step needs at least one sequence")
    notes = [basis]
    if any(group.kv_tokens is None for group in groups):
        notes.append("context length unknown: attention is not modelled")
    # More than one new token per sequence is speculative decoding, which checks each of them with lm_head.
    sampled = sum(group.tokens if group.decode else group.requests for group in groups)
    return Workload(groups, sampled, tuple(notes))


def _group_of_sums(sums: tuple[int, int, int | None], squares: tuple[int, int] | None, decode: bool) -> Group:
    requests, tokens, kv_tokens = sums
    if requests < 1 or tokens < requests:
        raise ModelError(f"{requests} sequences cannot have {tokens} new tokens")
    if kv_tokens is not None and kv_tokens < tokens:
        raise ModelError(f"a context of {kv_tokens} tokens cannot hold {tokens} new ones")
    if squares is not None:
        # q p + q (q + 1) / 2 = q (p + q) - q q / 2 + q / 2
        pairs: float | None = squares[1] - squares[0] / 2 + tokens / 2
    elif kv_tokens is None:
        pairs = None
    elif tokens == requests:
        pairs = float(kv_tokens)
    else:
        pairs = requests * full_pairs(tokens / requests, (kv_tokens - tokens) / requests)
    return Group(requests, tokens, kv_tokens, pairs, decode)


_SUMS = r"(\d+)\(sq(\d+)sk(\d+)sqsq(\d+)sqsk(\d+)\)"
_DETAILED = re.compile(rf"^execute_\d+_context_{_SUMS}_generation_{_SUMS}")
_PLAIN = re.compile(r"^execute_context_(\d+)\((?:tokens_)?(\d+)\)_generation_(\d+)\((?:tokens_)?(\d+)\)")
_SGLANG = re.compile(r"^step\[(DECODE|EXTEND) bs=(\d+)(?: toks=(\d+))?")


def from_marker(label: str | None) -> Workload | None:
    """Read a step's marker, vLLM's plain or detailed or SGLang's; None if it does not tell the work."""
    text = (label or "").strip()
    try:
        if match := _DETAILED.match(text):
            n = [int(number) for number in match.groups()]
            return from_sums(
                context=(n[0], n[1], n[2]),
                context_squares=(n[3], n[4]),
                generation=(n[5], n[6], n[7]),
                generation_squares=(n[8], n[9]),
                basis="from the step's marker, with exact sums over the sequences",
            )
        if match := _PLAIN.match(text):
            n = [int(number) for number in match.groups()]
            return from_sums(context=(n[0], n[1], None), generation=(n[2], n[3], None), basis="from the step's marker")
        if match := _SGLANG.match(text):
            phase, batch, tokens = match[1], int(match[2]), match[3]
            if phase == "DECODE":
                return from_sums(generation=(batch, int(tokens or batch), None), basis="from the step's marker")
            if tokens:
                return from_sums(context=(batch, int(tokens), None), basis="from the step's marker")
    except ModelError:
        return None
    return None


@dataclass(frozen=True)
class Parallel:
    """The parallel layout of a model.

    Attributes:
        tp: tensor parallel: splits heads, FFN columns and vocabulary.
        pp: pipeline parallel: splits layers into stages.
        ep: expert parallel: spreads whole experts; 1, or tp times dp.
        dp: data parallel: copies of attention, each with its own sequences; without ``ep`` of the experts, too.
    """

    tp: int = 1
    pp: int = 1
    ep: int = 1
    dp: int = 1

    def __post_init__(self) -> None:
        for degree, value in vars(self).items():
            if value < 1:
                raise ModelError(f"{degree} must be 1 or more, not {value}")
        if self.ep not in (1, self.tp * self.dp):
            raise ModelError(f"ep must be 1 or tp x dp = {self.tp * self.dp}, not {self.ep}")

    @property
    def gpus(self) -> int:
        """All its GPUs."""
        return self.tp * self.pp * self.dp
