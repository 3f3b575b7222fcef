"""How engines mark a step in a trace: one table of formats, text in, facts out."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Marker:
    """What one marker says. Counts are None where the format does not tell.

    Attributes:
        source: vllm, sglang, profiler_step or python.
        phase: decode, prefill, mixed, dummy or unknown.
        requests: sequences in the step.
        tokens: query tokens of the step.
        kv_tokens: keys attended to, summed over the sequences.
    """

    source: str
    phase: str = "unknown"
    requests: int | None = None
    tokens: int | None = None
    kv_tokens: int | None = None


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
    "MIXED": "mixed",
    "IDLE": "dummy",
    "DUMMY": "dummy",
}


def _sglang(match: re.Match[str]) -> Marker:
    requests = int(match["bs"]) if match["bs"] else None
    phase = _SGLANG_PHASES.get(match["mode"].upper(), "unknown")
    tokens = (
        int(match["toks"]) if match["toks"] else requests if phase == "decode" and "VERIFY" not in match[0] else None
    )
    return Marker("sglang", phase, requests, tokens)


_COUNT = r"\d{1,12}(?!\d)"
"""A longer number counts neither requests nor tokens, and would not fit into a column."""
_SUMS = rf"({_COUNT})\(sq\d+sk({_COUNT})sqsq\d+sqsk\d+\)"
_SIZED = rf"({_COUNT})\((?:tokens_)?({_COUNT})\)"
_FORMATS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Marker]], ...] = (
    (re.compile(rf"^execute_({_COUNT})_context_{_SUMS}_generation_{_SUMS}"), _detailed),
    (re.compile(rf"^execute_context_{_SIZED}_generation_{_SIZED}"), _native),
    (re.compile(rf"^execute_new_({_COUNT})_cached_({_COUNT})"), _cached),
    (re.compile(r"^_dummy_run\b"), lambda match: Marker("vllm", "dummy")),
    (re.compile(rf"^step\[(?P<mode>\w+)(?: +bs=(?P<bs>{_COUNT}))?(?: +toks=(?P<toks>{_COUNT}))?"), _sglang),
    (re.compile(r"^ProfilerStep#\d+"), lambda match: Marker("profiler_step")),
)
_RUNNER = re.compile(r"model_runner[^/\\]*\.py\(\d+\): (?:execute_model|forward)$")
_WORKER = re.compile(r"\.py\(\d+\): execute_model$")

ANNOTATION_PATTERN = r"^(execute_\w*(context|new)_|_dummy_run\b|step\[|ProfilerStep#\d)"
"""What the name of an annotation must fit before it is worth reading."""

PYTHON_PATTERN = r"\.py\(\d+\): (execute_model|forward)$"
"""The same for Python frames."""


def read_marker(name: str) -> Marker | None:
    """Return what an annotation says about a step, or None where it marks none."""
    for pattern, read in _FORMATS:
        match = pattern.match(name)
        if match:
            return read(match)
    return None


def python_rank(name: str) -> int | None:
    """Return how close a Python frame is to the model: 0 the model runner, 1 a worker; None for any other."""
    if _RUNNER.search(name):
        return 0 if name.endswith("execute_model") else 2
    return 1 if _WORKER.search(name) else None
