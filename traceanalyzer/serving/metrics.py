"""The metrics of a serving benchmark: their keys, whether higher or lower is better, and how files spell them."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Direction = Literal["higher", "lower"]

HIGHER = (
    "request_throughput",
    "request_goodput",
    "output_throughput",
    "total_token_throughput",
    "input_throughput",
    "max_output_tokens_per_s",
    "requests_per_second",
    "tokens_per_second",
    "input_sequence_throughput",
    "rtfx",
    "spec_decode_acceptance_rate",
    "spec_decode_acceptance_length",
    "accept_length",
    "diffusion_committed_throughput",
)
LOWER = ("duration", "elapsed_time", "avg_latency")

STATISTIC = re.compile(r"(mean|median|std|min|max|p\d{1,2}(?:\.\d+)?|p100)_([a-z0-9_]+)_ms")
LATENCY_PERCENTILE = re.compile(r"p\d{1,2}(?:\.\d+)?_latency")

# What is counted or configured: neither better nor worse.
FACTS = re.compile(
    r"(total|spec_decode|diffusion|probe|steady_state)_.*|max_concurrent_requests|concurrency|completed|failed|"
    r"num_requests|peak_.*|rps_change_events"
)

END_TO_END = re.compile(r"(?<![a-z0-9_])(mean|median|std|min|max|p[0-9.]+)_(?:e2e_latency|e2e|latency)_ms$")
"""Spellings of end-to-end latency."""

RENAMED = {
    "request_goodput:": "request_goodput",
    "total_throughput": "total_token_throughput",
    "input_token_throughput": "input_throughput",
    "output_token_throughput": "output_throughput",
}

ORDER = (
    "output_throughput",
    "total_token_throughput",
    "request_throughput",
    "request_goodput",
    "requests_per_second",
    "tokens_per_second",
    "input_throughput",
    "max_output_tokens_per_s",
    "duration",
    "elapsed_time",
    "avg_latency",
)
QUANTITIES = ("ttft", "tpot", "itl", "e2el")
STATISTICS = ("mean", "median", "std", "min", "max")


def canonical(key: str) -> str:
    """Return the key that the current ``vllm bench`` uses for one that an older version or SGLang wrote."""
    key = key.strip()
    return RENAMED.get(key, END_TO_END.sub(r"\1_e2el_ms", key))


def direction(metric: str) -> Direction | None:
    """Return whether higher or lower is better; None for a key that is not a metric."""
    if metric in HIGHER:
        return "higher"
    if metric in LOWER or STATISTIC.fullmatch(metric) or LATENCY_PERCENTILE.fullmatch(metric):
        return "lower"
    return None


def is_fact(key: str) -> bool:
    """Whether a key tells what happened without being a metric or a setting."""
    return FACTS.fullmatch(key) is not None


def sort_key(metric: str) -> tuple[int, int, int, float, str]:
    """Sort throughput first, then TTFT, TPOT, ITL and end-to-end latency, mean before percentiles."""
    if metric in ORDER:
        return (0, ORDER.index(metric), 0, 0.0, metric)
    parts = STATISTIC.fullmatch(metric)
    if parts is None:
        return (2, 0, 0, 0.0, metric)
    statistic, quantity = parts.groups()
    rank = QUANTITIES.index(quantity) if quantity in QUANTITIES else len(QUANTITIES)
    if statistic in STATISTICS:
        return (1, rank, STATISTICS.index(statistic), 0.0, metric)
    return (1, rank, len(STATISTICS), float(statistic[1:]), metric)


class TableMetric(NamedTuple):
    """The key of what a column of a table holds, and the factor to the key's unit."""

    key: str
    factor: float


PLAIN_HEADINGS = {
    **dict.fromkeys(("rps", "qps", "requests s", "requests throughput"), "request_throughput"),
    **dict.fromkeys(("tps", "tokens s", "output tokens s", "output throughput"), "output_throughput"),
    **dict.fromkeys(("gen tokens s", "generated tokens s", "output tokens throughput"), "output_throughput"),
    **dict.fromkeys(("total tokens s", "total throughput", "total tokens throughput"), "total_token_throughput"),
    **dict.fromkeys(("input tokens s", "input tokens throughput"), "input_throughput"),
    **dict.fromkeys(("goodput", "requests goodput"), "request_goodput"),
    "peak output tokens throughput": "max_output_tokens_per_s",
    **dict.fromkeys(("concurrency", "conc", "max concurrency", "max requests concurrency"), "max_concurrency"),
    **dict.fromkeys(("parallel", "parallelism"), "max_concurrency"),
    **dict.fromkeys(("duration s", "benchmark duration s"), "duration"),
    **dict.fromkeys(("success", "success rate"), "success_rate"),
    "requests": "num_prompts",
}
"""Headings of tables, their words spelled as by ``WORDS`` -> key."""

WORDS = (
    (re.compile(r"\b(?:tok|toks|token)\b"), "tokens"),
    (re.compile(r"\b(?:req|reqs|request)\b"), "requests"),
    (re.compile(r"\bper (?:second|s)\b"), "s"),
    (re.compile(r"\b(throughput|goodput) (?:tokens|requests) s$"), r"\1"),
)
"""Spellings of a heading's words -> the one of ``PLAIN_HEADINGS``; a throughput needs no unit."""

STATISTIC_WORDS = {"avg": "mean", "average": "mean", "mean": "mean", "median": "median", "std": "std"}
QUANTITY_WORDS = {
    "ttft": "ttft",
    "tpot": "tpot",
    "itl": "itl",
    "e2el": "e2el",
    "e2e": "e2el",
    "lat": "e2el",
    "latency": "e2el",
    "e2e latency": "e2el",
    "e2e lat": "e2el",
}
UNIT_FACTORS = {"s": 1000.0, "sec": 1000.0, "ms": 1.0}
TIME_HEADING = re.compile(
    r"(?:(avg|average|mean|median|std|min|max|p\d{1,2}(?: \d+)?) )?"
    r"(ttft|tpot|itl|e2el|e2e latency|e2e lat|e2e|latency|lat)(?: (s|sec|ms))?"
)


def column(heading: str) -> TableMetric | None:
    """Read a heading of a table such as ``Avg TTFT(s)``, ``p99_tpot_ms``, ``Gen. toks/s`` or ``rps``; None if unknown.

    A latency without a unit is unknown, one without a statistic a mean.
    """
    key = canonical(heading.strip().strip('"'))
    if direction(key) is not None:
        return TableMetric(key, 1.0)
    words = re.sub(r"[^a-z0-9%]+", " ", heading.lower()).strip()
    plain = words
    for spelling, word in WORDS:
        plain = spelling.sub(word, plain)
    if plain in PLAIN_HEADINGS:
        return TableMetric(PLAIN_HEADINGS[plain], 1.0)
    time = TIME_HEADING.fullmatch(words)
    if time is None or time.group(3) is None:
        return None
    statistic, quantity, unit = time.groups()
    name = STATISTIC_WORDS.get(statistic or "mean", (statistic or "").replace(" ", "."))
    return TableMetric(f"{name}_{QUANTITY_WORDS[quantity]}_ms", UNIT_FACTORS[unit])
