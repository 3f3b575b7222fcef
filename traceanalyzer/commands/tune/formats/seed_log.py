"""Logs of a hand-written sweep script: one measurement a line, as ``key=value`` words.

    conc=1 bm=16 bn=32 bk=128 sk=1 median=10.101 ms samples=[10.1007]

Lines of a prompt (``$``), ``BEST`` and comments are passed over; other lines that hold no measurement are counted.
"""

from __future__ import annotations

import json
import re
from statistics import median

from traceanalyzer.commands.tune.formats.point_collector import (
    Gatherer,
    number,
    positive,
    whole,
)
from traceanalyzer.commands.tune.formats.sweep import Point, Value
from traceanalyzer.commands.tune.formats.sweep_source import Source

NAME = "log"
TITLE = "a log of lines such as 'conc=1 bm=16 bn=32 bk=128 sk=1 median=10.1 ms samples=[10.1]'"

_SHAPE = {
    "conc": "concurrency",
    "concurrency": "concurrency",
    "batch": "concurrency",
    "bs": "concurrency",
    "m": "m",
    "n": "n",
    "k": "k",
    "top_k": "top_k",
    "topk": "top_k",
    "experts": "experts",
    "e": "experts",
    "dtype": "dtype",
}
_CONFIG = {
    "bm": "block_m",
    "bn": "block_n",
    "bk": "block_k",
    "sk": "split_k",
    "gm": "group_m",
    "nw": "num_warps",
    "warps": "num_warps",
    "ns": "num_stages",
    "stages": "num_stages",
}
UNSAID = ("num_warps", "num_stages")
"""Parameters that decide about the time and that such logs tend to leave out; null where they do."""

_TO_MS = {"s": 1e3, "ms": 1.0, "us": 1e-3, "µs": 1e-3, "ns": 1e-6}

_WORD = re.compile(r"([A-Za-z_]\w*)=(\[[^\]]*\]?|\S+)")
_UNIT = re.compile(r"\bmedian=\S+?\s*(ns|us|µs|ms|s)\b")
_PASSED_OVER = re.compile(r"\s*(\$|#|BEST\b|$)", re.IGNORECASE)
_TIMES = ("median", "samples", "mean", "min", "max", "std", "time")
_FIRST_LINES = 50


def recognises(source: Source) -> bool:
    """Return whether one of the first lines is a measurement."""
    return any(
        {"median", "samples"} & set(words) and _config(words)
        for line in source.text.split("\n", _FIRST_LINES)[:_FIRST_LINES]
        if (words := dict(_WORD.findall(line)))
    )


def read(source: Source, into: Gatherer) -> None:
    """Add every measurement of the log."""
    for number_, line in enumerate(source.text.split("\n"), start=1):
        if _PASSED_OVER.match(line):
            continue
        words = dict(_WORD.findall(line))
        config = _config(words)
        if not config or not any(key.lower() in _SHAPE for key in words):
            into.malformed("no 'key=value' measurement", number_)
            continue
        _measurement(line, words, config, source, into, number_)


def _measurement(
    line: str, words: dict[str, str], config: dict[str, Value], source: Source, into: Gatherer, number_: int
) -> None:
    """Add one line, or count it."""
    shape = _shape(words, source.top_k)
    rows = [shape[key] for key in ("m", "concurrency") if key in shape]
    if any(not isinstance(value, int) or value < 1 for value in rows) or any(
        not isinstance(value, int) for key, value in config.items() if key in _CONFIG.values()
    ):
        into.malformed("a shape or block that is not a whole number", number_)
        return
    unit = _UNIT.search(line)
    scale = _TO_MS[unit.group(1)] if unit else 1.0
    stated = _time(words.get("median"))
    samples = _samples(words.get("samples"))
    if samples is None or (stated is None and not samples and "median" in words):
        into.malformed("timings that cannot be read", number_)
        return
    if not samples and stated is None:
        reason = _WORD.sub("", line).strip(" :-") or "no timing"
        into.add(_point(shape, config, reason), [], number_)
        return
    good = [value for value in map(positive, samples) if value is not None]
    if good and stated is not None and abs(median(good) - stated) > 0.01 * stated + 0.001:
        into.count("inconsistent_median", f"{stated:g} for samples with median {median(good):g}", number_)
    values = samples or [stated]
    into.add(_point(shape, config), [v * scale if isinstance(v, float) else v for v in values], number_)


def _point(shape: dict[str, Value], config: dict[str, Value], reason: str | None = None) -> Point:
    rest = {key: value for key, value in shape.items() if key not in ("m", "concurrency")}
    return Point(
        kernel=None,
        m=whole(shape.get("m")),
        concurrency=whole(shape.get("concurrency")),
        config={**config, **{name: config.get(name) for name in UNSAID}},
        shape=rest,
        reason=reason,
    )


def _shape(words: dict[str, str], top_k: int | None) -> dict[str, Value]:
    shape = {_SHAPE[key.lower()]: number(text) for key, text in words.items() if key.lower() in _SHAPE}
    if top_k is not None:
        shape["top_k"] = top_k
    concurrency, experts_a_token = whole(shape.get("concurrency")), whole(shape.get("top_k"))
    if "m" not in shape and concurrency is not None and experts_a_token is not None:
        shape["m"] = concurrency * experts_a_token
    return shape


def _config(words: dict[str, str]) -> dict[str, Value]:
    """Return the words that are neither shape nor time, under the names that sweeps use."""
    return {
        _CONFIG.get(key.lower(), key): number(text)
        for key, text in words.items()
        if key.lower() not in _SHAPE and key.lower() not in _TIMES
    }


def _time(text: str | None) -> float | None:
    value = number(re.sub(r"(ns|us|µs|ms|s)$", "", text)) if text else None
    return float(value) if isinstance(value, int | float) else None


def _samples(text: str | None) -> list[object] | None:
    """Return the list as it stands (``nan`` stays as text); null when it is torn."""
    if text is None:
        return []
    if not text.startswith("[") or not text.endswith("]"):
        return None
    body = re.sub(r"\b(nan|inf)\b", '"\\1"', text, flags=re.IGNORECASE)
    try:
        values = json.loads(body)
    except ValueError:
        return None
    return [float(value) if isinstance(value, int) else value for value in values]
