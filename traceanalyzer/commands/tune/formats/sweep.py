"""Sweep files of ours: a JSON object on each line, for one round of one candidate. All that was tried is kept."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from traceanalyzer.commands.tune.formats.sweep_source import SweepSource
from traceanalyzer.commands.tune.tile_config import TileConfig, Value
from traceanalyzer.files import written_whole
from traceanalyzer.problems import TraceWarning

NAME = "traceanalyzer"
TITLE = "a sweep file of traceanalyzer (JSON lines)"

SCHEMA = "traceanalyzer/sweep/1"
_FAMILY = SCHEMA.rpartition("/")[0] + "/"
_FIRST_LINES = 20
"""Lines that are asked for the schema: a torn first line is passed over. Chosen."""


@dataclass(frozen=True)
class SweepPoint:
    """Everything measured of one configuration on one problem.

    Attributes:
        kernel: its name; ``None`` where the source does not say.
        m: rows; ``None`` where unknown.
        concurrency: requests (tokens) in the batch; ``None`` where unknown.
        shape: further keys of the problem (n, k, dtype, experts, top_k), as far as known.
        config: meta-parameters; ``None`` where the source does not say.
        rounds: samples in milliseconds, one tuple per round, in the order measured.
        reason: why it failed; ``None`` for a point with samples.
        backend: whose kernel ran; ``None`` where unknown.
        routing: how rows were spread over experts; ``None`` where it does not apply or is unknown.
        device: name and architecture, as far as known.
        versions: of the software, as far as known.
        measured: false when nothing was timed on a GPU (interpreter).
    """

    kernel: str | None
    m: int | None
    concurrency: int | None
    config: TileConfig
    rounds: tuple[tuple[float, ...], ...] = ()
    shape: Mapping[str, Value] = field(default_factory=dict)
    reason: str | None = None
    backend: str | None = None
    routing: str | None = None
    device: Mapping[str, str | None] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    measured: bool = True

    @property
    def samples_ms(self) -> tuple[float, ...]:
        """Every sample."""
        return tuple(sample for samples in self.rounds for sample in samples)

    @property
    def median_ms(self) -> float | None:
        """The median of all samples; ``None`` without any."""
        return median(self.samples_ms) if self.samples_ms else None

    @property
    def key(self) -> tuple[str, ...]:
        """What tells points apart: everything but the samples."""
        names = (self.kernel, self.m, self.concurrency, self.backend, self.routing)
        return _key(names, (self.shape, self.config, self.device, self.versions))

    @property
    def problem(self) -> tuple[str, ...]:
        """What was measured, whatever the rows and the configuration: points of one problem are made into one rule."""
        shape = {key: value for key, value in self.shape.items() if value is not None}
        return _key((self.kernel, self.backend, self.routing), (shape, self.device, self.versions))

    @property
    def known_config(self) -> TileConfig:
        """The parameters whose value is known."""
        return self.config.known


def _key(names: Iterable[object], parts: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    return (*map(repr, names), *(json.dumps(dict(part), sort_keys=True) for part in parts))


@dataclass(frozen=True)
class Sweep:
    """What a file held.

    Attributes:
        points: one per configuration and problem, in the file's order.
        warnings: what was skipped, counted.
        source: the file as the user gave it.
        format: which kind of file it was.
    """

    points: tuple[SweepPoint, ...]
    warnings: tuple[TraceWarning, ...] = ()
    source: str = ""
    format: str = NAME


Candidates = dict[tuple[str, ...], dict[int, SweepPoint]]
"""``SweepPoint.key`` -> round -> what that round gave."""


def write_sweep(path: Path, points: Iterable[SweepPoint]) -> None:
    """Write points as a sweep file; nothing is left half-written.

    Raises:
        TraceError: the file cannot be written.
    """
    with written_whole(path) as file:
        for point in points:
            for number, samples in enumerate(point.rounds or ((),)):
                file.write(line_of(point, number, samples).encode())


def line_of(point: SweepPoint, round_number: int, samples: Iterable[float]) -> str:
    """Return one line of a sweep file: what one round of a candidate gave, or why it failed."""
    document = {
        "schema": SCHEMA,
        "kernel": point.kernel,
        "backend": point.backend,
        "shape": {"m": point.m, **point.shape},
        "concurrency": point.concurrency,
        "routing": point.routing,
        "config": dict(point.config),
        "round": round_number,
        "samples_ms": list(samples),
        "reason": point.reason,
        "measured": point.measured,
        "device": dict(point.device),
        "versions": dict(point.versions),
    }
    return json.dumps(document, allow_nan=False) + "\n"


def recognises(source: SweepSource) -> bool:
    """Return whether one of the first lines names the schema, of whatever version."""
    return any(_schema(line).startswith(_FAMILY) for line in source.text.split("\n", _FIRST_LINES)[:_FIRST_LINES])


def read(source: SweepSource) -> tuple[tuple[SweepPoint, ...], tuple[TraceWarning, ...]]:
    """Return every usable point; rows follow from the concurrency where only that is known.

    Raises:
        TraceError: the file is of another version of the format.
    """
    schema = next(s for line in source.text.split("\n") if (s := _schema(line)).startswith(_FAMILY))
    if schema != SCHEMA:
        raise source.error(f"is of schema {schema}; this version reads {SCHEMA}")
    rounds, warnings = parse_rounds(source.text, source.path)
    return tuple(_with_rows(_merge(of_one), source.top_k) for of_one in rounds.values()), warnings


def _schema(line: str) -> str:
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    return str(value.get("schema")) if isinstance(value, dict) else ""


def _with_rows(point: SweepPoint, top_k: int | None) -> SweepPoint:
    if point.m is not None or top_k is None or point.concurrency is None:
        return point
    return replace(point, m=point.concurrency * top_k, shape={**point.shape, "top_k": top_k})


def parse_rounds(text: str, source: str) -> tuple[Candidates, tuple[TraceWarning, ...]]:
    """Read lines of a sweep file, round by round; what is unusable is counted."""
    candidates: Candidates = {}
    skipped: dict[str, list[int]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            round_number, point = _parse(line)
        except ValueError as error:
            skipped.setdefault(str(error), []).append(number)
            continue
        rounds = candidates.setdefault(point.key, {})
        if round_number in rounds:
            skipped.setdefault("the same round of the same configuration appears twice", []).append(number)
        else:
            rounds[round_number] = point
    return candidates, _skip_warnings(skipped, source)


def _skip_warnings(skipped: Mapping[str, list[int]], source: str) -> tuple[TraceWarning, ...]:
    """Return one warning per kind of unusable line, with its count and the first place."""
    return tuple(
        TraceWarning("sweep_lines_skipped", f"line skipped: {reason}", source, len(lines), line=lines[0])
        for reason, lines in skipped.items()
    )


def _checked_samples(samples: Any) -> tuple[float, ...]:
    """Return samples as numbers.

    Raises:
        ValueError: they are not a list of positive, finite numbers.
    """
    if not isinstance(samples, list) or not all(isinstance(x, int | float) for x in samples):
        raise ValueError("the samples are not a list of numbers")
    try:
        times = tuple(float(sample) for sample in samples)
    except OverflowError:
        raise ValueError("a sample is larger than any time can be") from None
    if not all(math.isfinite(time) and time > 0 for time in times):
        raise ValueError("a sample is not a positive number")
    return times


def _parse(line: str) -> tuple[int, SweepPoint]:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("not JSON") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f"not of schema {SCHEMA}")
    _check(document)
    shape, samples, reason = document["shape"], _checked_samples(document.get("samples_ms")), document.get("reason")
    if not samples and not reason and document.get("measured", True):
        raise ValueError("neither samples nor a reason")
    point = SweepPoint(
        kernel=document.get("kernel"),
        m=shape.get("m"),
        concurrency=document.get("concurrency"),
        config=TileConfig(document["config"]),
        rounds=(samples,) if samples else (),
        shape={key: value for key, value in shape.items() if key != "m"},
        reason=reason,
        backend=document.get("backend"),
        routing=document.get("routing"),
        device=document.get("device") or {},
        versions=document.get("versions") or {},
        measured=bool(document.get("measured", True)),
    )
    return document["round"], point


def _check(document: Mapping[str, Any]) -> None:
    """Check what a point is made of.

    Raises:
        ValueError: a part is missing, or holds a value that no sweep has.
    """
    shape, config = document.get("shape"), document.get("config")
    if not isinstance(shape, dict) or not isinstance(config, dict) or not isinstance(document.get("round"), int):
        raise ValueError("shape, config or round is missing")
    for values in (shape, config):
        if not all(isinstance(value, int | float | str | None) for value in values.values()):
            raise ValueError("shape or config holds more than plain values")
    for rows in (shape.get("m"), document.get("concurrency")):
        if rows is not None and (not isinstance(rows, int) or isinstance(rows, bool) or rows < 1):
            raise ValueError("m or concurrency is not a positive whole number")
    for key in ("device", "versions"):
        if not isinstance(document.get(key) or {}, dict):
            raise ValueError(f"{key} is not an object")


def _merge(rounds: Mapping[int, SweepPoint]) -> SweepPoint:
    """One point from its rounds; a failure in any round makes it a failed point."""
    ordered = [rounds[number] for number in sorted(rounds)]
    reason = next((point.reason for point in ordered if point.reason), None)
    return replace(ordered[0], rounds=tuple(r for point in ordered for r in point.rounds), reason=reason)
