"""Logs of a hand-written sweep script: one measurement per line, as ``key=value`` words.

    conc=1 bm=16 bn=32 bk=128 sk=1 median=10.101 ms samples=[10.1007]

Lines of a prompt (``$``), ``BEST`` and comments are passed over; other lines that hold no measurement are counted.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from statistics import median

from traceanalyzer.commands.tune.formats.point_collector import TO_MS, PointCollector, number, positive, whole
from traceanalyzer.commands.tune.formats.sweep import SweepPoint
from traceanalyzer.commands.tune.formats.sweep_source import SweepSource
from traceanalyzer.commands.tune.tile_config import LOG, TILE, TileConfig, Value, from_log, to_log

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
UNSAID = ("num_warps", "num_stages")
"""Parameters that decide about the time and that such logs tend to leave out; ``None`` where they do."""

_WORD = re.compile(r"([A-Za-z_]\w*)=(\[[^\]]*\]?|\S+)")
_UNIT = re.compile(r"\bmedian=\S+?\s*(ns|us|µs|ms|s)\b")
_PASSED_OVER = re.compile(r"\s*(\$|#|BEST\b|$)", re.IGNORECASE)
_TIMES = ("median", "samples", "mean", "min", "max", "std", "time")
_FIRST_LINES = 50
"""Lines that are looked at for a measurement: such logs begin with a prompt and settings. Chosen."""


def recognises(source: SweepSource) -> bool:
    """Return whether one of the first lines is a measurement."""
    return any(
        {"median", "samples"} & set(words) and _config(words)
        for line in source.text.split("\n", _FIRST_LINES)[:_FIRST_LINES]
        if (words := dict(_WORD.findall(line)))
    )


def read(source: SweepSource, into: PointCollector) -> None:
    """Add every measurement of the log."""
    for line_number, line in enumerate(source.text.split("\n"), start=1):
        if _PASSED_OVER.match(line):
            continue
        words = dict(_WORD.findall(line))
        if not _config(words) or not any(key.lower() in _SHAPE for key in words):
            into.malformed("no 'key=value' measurement", line_number)
            continue
        _measurement(line, words, source, into, line_number)


@dataclass(frozen=True)
class _Timing:
    """What a line says of time.

    Attributes:
        samples: as they stand, in the line's unit.
        stated: the median that the line states; ``None`` where it states none.
    """

    samples: list[object]
    stated: float | None

    @property
    def contradicted(self) -> float | None:
        """The samples' own median, where the line states another by more than 1 % and 0.001: rounding gives less."""
        good = [value for value in map(positive, self.samples) if value is not None]
        if not good or self.stated is None:
            return None
        own = median(good)
        return own if abs(own - self.stated) > 0.01 * self.stated + 0.001 else None


def _measurement(line: str, words: dict[str, str], source: SweepSource, into: PointCollector, line_number: int) -> None:
    """Add one line, or count it."""
    shape, config = _shape(words, source.top_k), _config(words)
    if not _is_usable(shape, config):
        into.malformed("a shape or block that is not a whole number", line_number)
        return
    timing = _timing(words)
    if timing is None:
        into.malformed("timings that cannot be read", line_number)
        return
    if not timing.samples and timing.stated is None:
        reason = _WORD.sub("", line).strip(" :-") or "no timing"
        into.add(_point(shape, config, reason), [], line_number)
        return
    own = timing.contradicted
    if own is not None:
        into.count("inconsistent_median", f"{timing.stated:g} for samples with median {own:g}", line_number)
    unit = _UNIT.search(line)
    scale = TO_MS[unit.group(1)] if unit else 1.0
    values = timing.samples or [timing.stated]
    into.add(_point(shape, config), [v * scale if isinstance(v, float) else v for v in values], line_number)


def _is_usable(shape: dict[str, Value], config: TileConfig) -> bool:
    """Return whether rows are positive whole numbers, and parameters that we know whole numbers."""
    rows = [shape[key] for key in ("m", "concurrency") if key in shape]
    known = [config[key] for key in LOG if key in config]
    return all(isinstance(value, int) and value >= 1 for value in rows) and all(isinstance(v, int) for v in known)


def _timing(words: dict[str, str]) -> _Timing | None:
    """Return the times of a line, which may be none at all; ``None`` where they cannot be read."""
    stated, samples = _time(words.get("median")), _samples(words.get("samples"))
    if samples is None or (stated is None and not samples and "median" in words):
        return None
    return _Timing(samples, stated)


def _point(shape: dict[str, Value], config: TileConfig, reason: str | None = None) -> SweepPoint:
    rest = {key: value for key, value in shape.items() if key not in ("m", "concurrency")}
    return SweepPoint(
        kernel=None,
        m=whole(shape.get("m")),
        concurrency=whole(shape.get("concurrency")),
        config=TileConfig({**config, **{name: config.get(name) for name in UNSAID}}),
        shape=rest,
        reason=reason,
    )


def _shape(words: dict[str, str], top_k: int | None) -> dict[str, Value]:
    shape = {_SHAPE[key.lower()]: number(text) for key, text in words.items() if key.lower() in _SHAPE}
    if top_k is not None:
        shape["top_k"] = top_k
    concurrency, experts_per_token = whole(shape.get("concurrency")), whole(shape.get("top_k"))
    if "m" not in shape and concurrency is not None and experts_per_token is not None:
        shape["m"] = concurrency * experts_per_token
    return shape


def _config(words: dict[str, str]) -> TileConfig:
    """Return the words that are neither shape nor time, under the names that sweeps use."""
    return from_log(
        {key: number(text) for key, text in words.items() if key.lower() not in _SHAPE and key.lower() not in _TIMES}
    )


def _time(text: str | None) -> float | None:
    value = number(re.sub(r"(ns|us|µs|ms|s)$", "", text)) if text else None
    return float(value) if isinstance(value, int | float) else None


def _samples(text: str | None) -> list[object] | None:
    """Return the list as it stands (``nan`` stays as text); ``None`` when it is torn."""
    if text is None:
        return []
    if not text.startswith("[") or not text.endswith("]"):
        return None
    body = re.sub(r"\b(nan|inf)\b", '"\\1"', text, flags=re.IGNORECASE)
    try:
        values = json.loads(body)
        return [float(value) if isinstance(value, int) else value for value in values]
    except (ValueError, RecursionError, OverflowError):
        return None


def point_line(point: SweepPoint) -> str | None:
    """Return a point as a line of such a log; ``None`` without samples."""
    if not point.samples_ms:
        return None
    config = " ".join(f"{word}={value}" for word, value in to_log(point.config).items())
    samples = json.dumps(list(point.samples_ms))
    return f"conc={point.concurrency} {config} median={point.median_ms:.3f} ms samples={samples}"


def best_line(point: SweepPoint) -> str:
    """Return the ``BEST`` line that ends a batch size."""
    tile: dict[str, object] = {LOG[name]: point.config.get(name) for name in TILE}
    return f"BEST {point.concurrency} {tile | {'median_ms': point.median_ms}}"
