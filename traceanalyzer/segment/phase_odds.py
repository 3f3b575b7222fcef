"""How likely a step decodes, as log-odds by kinds of signs, and what they come to.

Two questions are asked of a step. Does it generate tokens (a cache of keys and values, a sampler, an engine's frames)?
Without a sign of that it is neither decode nor prefill. And how many tokens does a sequence have in it? One is decode,
more are a prefill:

    kind        decode                                   prefill
    shapes      as many tokens as sequences              more of them
    attention   split over the keys, paged decode        masked, varlen prefill, chunked scans
    launch      one graph, or pieces                     eager, beside steps of graphs
    rows        tiles and kernels for a few rows         large tiles, many rows by grid
    repetition  many near-equal steps                    a lone longer one beside them

Shapes and attention may decide alone; of the others two kinds must agree. Where strong signs contradict each other, or
where the signs are few, the phase stays unknown.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import exp

from traceanalyzer.segment.host_signs import StepHostSigns
from traceanalyzer.segment.kernel_signs import QUERIES_FEW, StepKernelSigns
from traceanalyzer.words import Phase

_CLAIMED = 2.0
"""Log-odds from which on a phase is claimed. Chosen: odds of 7 to 1."""
_STRONG = 3.0
"""Log-odds of one kind that may decide alone. Chosen, not fitted."""
_COUNTS = 0.7
"""Log-odds of one kind that count as a sign. Chosen, not fitted."""
_DRAFTED = 16
"""Tokens per sequence that a step may verify and still be a decode step. Chosen, not fitted."""
_ALWAYS = 3
"""Steps of as many tokens per sequence, more than one, that verify drafts. Chosen, not fitted."""
_MOST_LAYERS = 0.5
"""Share of the layers in which a kernel must run to tell of the step. Chosen, not fitted."""
_BOTH = 0.85
"""Confidence that a step with both kinds of attention is mixed. Chosen, not fitted."""
_MOST_SURE = 0.98
"""Confidence that an inference never exceeds. Chosen: a marker is better."""


@dataclass(frozen=True, eq=False)
class AlikeSteps:
    """Steps of nearly equal kernels, launches and length.

    Attributes:
        numbers: which steps.
        content: how often each token occurs in the first of them.
        signs: what its kernels tell.
        launch: graph, piecewise or eager.
        time: its kernel time in ns.
    """

    numbers: list[int]
    content: Counter[int]
    signs: StepKernelSigns
    launch: str
    time: float


@dataclass(frozen=True)
class PhaseVerdict:
    """A phase and how likely it is right, 0 to 1; `generates` is how likely the step generates tokens at all."""

    phase: Phase
    confidence: float
    generates: float


def judge(
    group: AlikeSteps, groups: list[AlikeSteps], shapes: StepHostSigns, alike: int, *, loop: bool
) -> PhaseVerdict:
    """Weigh the signs of a step.

    Args:
        group, groups: the step's group, and all of them: a step differs from others of its model.
        shapes: what the host tells of the step.
        alike: steps of the group with as many tokens per sequence.
        loop: whether the host was seen to run a loop that generates tokens.
    """
    signs = group.signs
    generates = _generation(signs, shapes, loop=loop)
    unknown = PhaseVerdict("unknown", 0.0, generates)
    if signs.trains or not (signs.mixers or shapes.query or shapes.sequences):
        return PhaseVerdict("unknown", 0.0, 0.0)
    peers = [one for one in groups if one is not group and _of_one_model(one, group)]
    kinds = [
        _by_shapes(shapes, alike),
        _by_attention(signs, peers),
        _by_launch(group, peers),
        _by_rows(group, peers, shapes),
        _by_repetition(group, peers),
    ]
    if min(signs.few, signs.many) >= _MOST_LAYERS:
        # A decode kernel that is launched with prompts alone, too, does not tell whether anything decodes.
        return unknown if signs.idles_along else PhaseVerdict("mixed", _BOTH, generates)
    score = sum(kinds)
    if not _settled(kinds, score):
        return unknown
    if score > 0 and generates < 0.5:
        return unknown
    return PhaseVerdict("decode" if score > 0 else "prefill", min(1 / (1 + exp(-abs(score))), _MOST_SURE), generates)


def _settled(kinds: list[float], score: float) -> bool:
    """Whether the signs suffice: a strong one of shapes or attention, or two kinds that agree, and none against."""
    if abs(kinds[0]) < 2 * _STRONG and min(kinds) <= -_CLAIMED and max(kinds) >= _CLAIMED:
        return False
    along = [one if score > 0 else -one for one in kinds]
    agree = sum(one >= _COUNTS for one in along)
    return abs(score) >= _CLAIMED and (agree >= 2 or max(along[:2]) >= _STRONG)


def _of_one_model(one: AlikeSteps, two: AlikeSteps) -> bool:
    """Whether two groups run about as many mixers, as steps of one model do (a split one adds a kernel per layer)."""
    few, many = sorted((one.signs.mixers, two.signs.mixers))
    return few > 0 and many <= 2 * few + 1


def _generation(signs: StepKernelSigns, shapes: StepHostSigns, *, loop: bool) -> float:
    """How likely a step generates tokens. A sampler alone may be a classifier's; cache or loop are an engine's."""
    missing = 1.0
    for seen, certainty in (
        (signs.caches or shapes.caches, 0.95),
        (loop, 0.95),
        (signs.few >= _MOST_LAYERS or signs.exchange == QUERIES_FEW, 0.9),
        (signs.samples or shapes.samples, 0.6),
    ):
        missing *= 1 - certainty * seen
    return 1 - missing


def _by_shapes(shapes: StepHostSigns, alike: int) -> float:
    """Log-odds of decode by the tokens per sequence; `alike` steps of the group have as many."""
    if shapes.query is not None:
        return _by_queries(shapes, shapes.query)
    apart, sure = (shapes.sequences, 6.0) if shapes.sequences is not None else (shapes.heads, 3.0)
    if shapes.tokens is None or apart is None:
        return 0.0
    if shapes.tokens <= apart:
        return sure
    verifies = shapes.tokens % apart == 0 and shapes.tokens // apart <= _DRAFTED and alike >= _ALWAYS
    return 1.0 if verifies else -4.0


def _by_queries(shapes: StepHostSigns, query: int) -> float:
    """The same where the attention sees sequences apart, each with so many queries."""
    if query == 1:
        return 6.0 if shapes.keys is None or shapes.keys > 1 or shapes.padded else 0.0
    verifies = query <= _DRAFTED and shapes.keys is not None and shapes.keys > query
    return 0.0 if verifies else -6.0


def _by_attention(signs: StepKernelSigns, peers: list[AlikeSteps]) -> float:
    if signs.few >= _MOST_LAYERS:
        return 3.5
    if signs.many >= _MOST_LAYERS or signs.causal >= _MOST_LAYERS:
        return -3.5
    return -1.5 if any(one.signs.few >= _MOST_LAYERS for one in peers) else 0.0


def _by_launch(group: AlikeSteps, peers: list[AlikeSteps]) -> float:
    """Engines capture graphs of decode steps; pieces also of small prefills."""
    if group.launch == "eager":
        return -2.0 if any(one.launch != "eager" for one in peers) else 0.0
    return 2.0 if group.launch == "graph" else 1.2


def _by_rows(group: AlikeSteps, peers: list[AlikeSteps], shapes: StepHostSigns) -> float:
    """Libraries pick kernels and tiles for the rows that there are; many take longer."""
    signs = group.signs
    odds = 1.5 * (signs.few_rows >= 0.5) - 2.0 * (signs.many_rows >= 0.5)
    if signs.exchange:
        odds += 1.5 if signs.exchange == QUERIES_FEW else -1.5
    if signs.tile is not None:
        odds += 1.0 if signs.tile <= 16 else 0.7 if signs.tile <= 32 else -1.0 if signs.tile >= 128 else 0.0
    if shapes.tokens is not None:
        odds += 1.0 if shapes.tokens <= 4 else -2.0 if shapes.tokens > 1024 else 0.0
    usual = max(peers, key=lambda one: len(one.numbers), default=None)
    if usual is not None and len(usual.numbers) > 2 * len(group.numbers):
        odds -= 2.0 if group.time > 4 * usual.time else 1.0 if group.time > 2 * usual.time else 0.0
    return max(min(odds, 2.5), -2.5)


def _by_repetition(group: AlikeSteps, peers: list[AlikeSteps]) -> float:
    """A sequence is prefilled once and decoded many times."""
    count = len(group.numbers)
    most = max((len(one.numbers) for one in peers), default=0)
    if count >= 3:
        return 1.5 if count >= 8 else 1.0
    return -1.0 if most >= 3 and count * 3 <= most else 0.0
