"""How engines mark a step in a trace: one table of formats, text in, facts out."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt

ENGINES = ("vllm", "sglang", "atom")
"""Sources whose markers say what a step does."""


@dataclass(frozen=True)
class Marker:
    """What one marker says. Counts are None where the format does not tell.

    Attributes:
        source: vllm, sglang, atom, profiler_step or python.
        phase: decode, prefill, mixed, dummy or unknown.
        requests: sequences in the step, without those that only pad a graph's batch.
        tokens: query tokens of the step.
        kv_tokens: keys attended to, summed over the sequences.
        verifies: whether the pass checks what a draft model proposed.
        drafts: whether it is a pass of the draft model, and no step of its own.
    """

    source: str
    phase: str = "unknown"
    requests: int | None = None
    tokens: int | None = None
    kv_tokens: int | None = None
    verifies: bool = False
    drafts: bool = False


def _phase(prefilling: int, decoding: int) -> str:
    if prefilling and decoding:
        return "mixed"
    if prefilling:
        return "prefill"
    return "decode" if decoding else "dummy"


def _native(match: re.Match[str]) -> Marker:
    context, context_tokens, generation, generation_tokens = (int(match[i]) for i in range(1, 5))
    tokens = context_tokens + generation_tokens
    return Marker("vllm", _phase(context, generation), context + generation, tokens)


def _detailed(match: re.Match[str]) -> Marker:
    context, context_kv, generation, generation_kv = (int(match[i]) for i in range(2, 6))
    return Marker("vllm", _phase(context, generation), context + generation, int(match[1]), context_kv + generation_kv)


def _cached(match: re.Match[str]) -> Marker:
    new, cached = int(match[1]), int(match[2])
    return Marker("vllm", _phase(new, cached), new + cached)


_SGLANG_PHASES = {
    "DECODE": "decode",
    "TARGET_VERIFY": "decode",
    "VERIFY": "decode",
    "EXTEND": "prefill",
    "PREFILL": "prefill",
    "SPLIT_PREFILL": "prefill",
    "DLLM_EXTEND": "prefill",
    "MIXED": "mixed",
    "IDLE": "dummy",
    "DUMMY": "dummy",
}


def _sglang(match: re.Match[str]) -> Marker:
    """`step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 ... g_sq=1 g_sk=12 ...]`: sums over context and generation requests.

    Older ones are in lower case, and say `ext` and `dec` (tokens of each kind) instead.
    """
    mode = match["mode"].upper()
    phase = _SGLANG_PHASES.get(mode, "unknown")
    values = _values(match["body"])
    requests = values.get("bs")
    if phase == "mixed" and {"c", "g"} <= values.keys():
        phase = _phase(values["c"], values["g"])
    tokens = _first(values.get("toks"), _sum(values, "c_sq", "g_sq"), _sum(values, "ext", "dec"))
    if tokens is None and phase == "decode":
        tokens = _uniform_tokens(requests, values.get("g_sqsq"), "VERIFY" in mode)
    return Marker(
        "sglang",
        phase,
        requests,
        tokens,
        _sum(values, "c_sk", "g_sk"),
        verifies="VERIFY" in mode,
        drafts=mode.startswith("DRAFT"),
    )


def _uniform_tokens(requests: int | None, squares: int | None, verifies: bool) -> int | None:
    """Query tokens of decode requests that all have as many: from the sum of their squares, else one each."""
    if requests and squares:
        width = isqrt(squares // requests)
        return requests * width if requests * width * width == squares else None
    return None if verifies else requests


def _atom(match: re.Match[str]) -> Marker:
    """`decode[bs=117/128 tok=384 p=2 d=115 spec=2 sqsq=... sqsk=... sk=...]`; p of the requests prefill.

    `ctx` lists what the requests hold, cut short where they are many: no sum is read from it.
    """
    values = _values(match["body"])
    requests = values.get("bs")
    phase = match["phase"]
    if phase == "decode" and values.get("p"):
        phase = "mixed" if values.get("d", 1) else "prefill"
    if requests == 0:
        phase = "dummy"
    verifies = bool(values.get("spec"))
    tokens = values.get("tok")
    if tokens is None and phase == "decode" and not verifies:
        tokens = requests
    return Marker("atom", phase, requests, tokens, values.get("sk"), verifies=verifies)


def _values(body: str) -> dict[str, int]:
    """Return the counts of `key=value` pairs: of `117/128` the first, of lists and whatever is no count none.

    Where the closing bracket is missing the text was cut, and its last number may have been, too.
    """
    whole = "]" in _LIST.sub("", body)
    pairs = [pair.groups() for pair in _PAIR.finditer(body) if whole or pair.end() < len(body)]
    return {key: int(count[1]) for key, value in pairs if (count := _COUNTED.fullmatch(value))}


def _sum(values: dict[str, int], one: str, other: str) -> int | None:
    """Return the sum of those of two counts that are there; None where neither is."""
    return values.get(one, 0) + values.get(other, 0) if one in values or other in values else None


def _first(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)


def _unreadable(source: str) -> Callable[[re.Match[str]], Marker]:
    """Return a reader of markers that an engine surely wrote, in a form that is not known here."""
    return lambda _match: Marker(source)


_LONGEST = 2_000
"""Characters of a marker that are read; the longest that an engine writes has some 300. Chosen, not fitted."""
_COUNT = r"\d{1,12}(?!\d)"
"""A longer number counts neither requests nor tokens, and would not fit into a column."""
_COUNTED = re.compile(rf"({_COUNT})(?:/\d+)?")
_PAIR = re.compile(r"(\w{1,40})=(\[[^\]]*\]?|[^\s\],]*)")
_LIST = re.compile(r"=\[[^\]]*\]")
_SUMS = rf"({_COUNT})\(sq\d+sk({_COUNT})sqsq\d+sqsk\d+\)"
_SIZED = rf"({_COUNT})\((?:tokens_)?({_COUNT})(?:_\d+)?\)"
"""Requests and tokens; forks add the sum of the squared query lengths."""
_FORMATS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Marker]], ...] = (
    (re.compile(rf"^execute_({_COUNT})_context_{_SUMS}_generation_{_SUMS}"), _detailed),
    (re.compile(rf"^execute_context_{_SIZED}_generation_{_SIZED}"), _native),
    (re.compile(rf"^execute_new_({_COUNT})_cached_({_COUNT})"), _cached),
    (re.compile(r"^_dummy_run\b"), lambda _match: Marker("vllm", "dummy")),
    (re.compile(r"^step\[ *(?P<mode>[A-Za-z_]\w*)(?P<body>.*)", re.DOTALL), _sglang),
    (re.compile(r"^(?:eager_)?(?P<phase>prefill|decode)\[(?P<body>.*\b(?:bs|tok|d|p)=.*)", re.DOTALL), _atom),
    (re.compile(r"^ProfilerStep#\d+"), lambda _match: Marker("profiler_step")),
    (re.compile(r"^execute_(?:\d+_)?(?:context|new)_\d"), _unreadable("vllm")),
    (re.compile(r"^step\[(?!-?\d+\])"), _unreadable("sglang")),
)
_RUNNER = re.compile(r"model_runner[^/\\]*\.py\(\d+\): (?:execute_model|forward)$")
_WORKER = re.compile(r"\.py\(\d+\): execute_model$")

ANNOTATION_PATTERN = r"^(execute_\w*(context|new)_|_dummy_run\b|step\[|(eager_)?(prefill|decode)\[|ProfilerStep#\d)"
"""What the name of an annotation must fit before it is worth reading."""

PYTHON_PATTERN = r"\.py\(\d+\): (execute_model|forward)$"
"""The same for Python frames."""


def read_marker(name: str) -> Marker | None:
    """Return what an annotation says about a step, or None where it marks none."""
    for pattern, read in _FORMATS:
        match = pattern.match(name[:_LONGEST])
        if match:
            return read(match)
    return None


def python_rank(name: str) -> int | None:
    """Return how close a Python frame is to the model: 0 the model runner, 1 a worker; None for any other."""
    if _RUNNER.search(name):
        return 0 if name.endswith("execute_model") else 2
    return 1 if _WORKER.search(name) else None
