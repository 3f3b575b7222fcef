"""A sweep: what was measured for which shape and configuration, and the file that keeps it.

A sweep file is UTF-8 text, one JSON object a line and point (``schema`` traceanalyzer/sweep/1):

    {"schema": "traceanalyzer/sweep/1", "kernel": "moe_mxfp4", "shape": {"m": 4, "n": 5760, "k": 2880},
     "config": {"block_m": 16, "block_n": 32, "num_warps": 2}, "samples_ms": [10.1, 10.2], "failure": null,
     "device": "AMD Radeon 8060S", "arch": "gfx1151", "versions": {"triton": "3.5.0"}}

Lines can be appended while a search runs; ``formats.read_sweep`` skips one that was torn by an interruption, and says so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from traceanalyzer.problems import TraceError, TraceWarning

SCHEMA = "traceanalyzer/sweep/1"

Value = int | float | str | bool | None
"""What a shape or a configuration may hold: a JSON scalar."""

ROW_KEYS = ("m", "concurrency")
"""The keys of a shape along which a rule is made; points that differ in nothing else belong to one problem."""

_KEYS = ("schema", "kernel", "shape", "config", "samples_ms", "failure", "device", "arch", "versions")


@dataclass(frozen=True)
class Point:
    """One configuration, measured for one shape.

    Attributes:
        shape: what is multiplied. Known keys: ``m`` (rows; in a mixture of experts tokens x top-k), ``n``, ``k``,
            ``dtype``, ``experts``, ``top_k``, ``concurrency`` (requests, or tokens, that make up the m rows).
        config: parameter -> value. Known keys: ``block_m``, ``block_n``, ``block_k``, ``split_k``, ``group_m``,
            ``num_warps``, ``num_stages``; other tuners' own parameters keep their names.
        samples_ms: every timing in milliseconds, finite and positive; empty where nothing was timed.
        kernel: which kernel ran, where that is known.
        failure: why the configuration could not run, in words; null when it ran or was never tried.
        device: the GPU's name.
        arch: its compilation target, such as ``gfx1151`` or ``sm90``.
        versions: package -> version.
        notes: whatever else a line holds; kept as it is.
    """

    shape: Mapping[str, Value]
    config: Mapping[str, Value]
    samples_ms: tuple[float, ...] = ()
    kernel: str | None = None
    failure: str | None = None
    device: str | None = None
    arch: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def m(self) -> int | None:
        """Rows of the product, where known."""
        return whole(self.shape.get("m"))

    @property
    def concurrency(self) -> int | None:
        """Concurrent requests (tokens) that the rows come from, where known."""
        return whole(self.shape.get("concurrency"))

    @property
    def median_ms(self) -> float | None:
        """Median of the samples; null where there are none."""
        return median(self.samples_ms) if self.samples_ms else None

    @property
    def config_key(self) -> str:
        """The configuration as text that is equal for equal configurations, whatever the order of the parameters."""
        return canonical(self.config)

    @property
    def problem_key(self) -> str:
        """What was measured apart from the rows: kernel, the rest of the shape, device, versions."""
        rest = {key: value for key, value in self.shape.items() if key not in ROW_KEYS and value is not None}
        return canonical([self.kernel, rest, self.device, self.arch, self.versions])

    @property
    def key(self) -> str:
        """What makes two points measurements of the same thing."""
        rows = {key: self.shape.get(key) for key in ROW_KEYS}
        return canonical([self.problem_key, rows, self.config])

    def to_dict(self) -> dict[str, Any]:
        """Return the object of a line in a sweep file."""
        return {
            "schema": SCHEMA,
            "kernel": self.kernel,
            "shape": dict(self.shape),
            "config": dict(self.config),
            "samples_ms": list(self.samples_ms),
            "failure": self.failure,
            "device": self.device,
            "arch": self.arch,
            "versions": dict(self.versions),
            **{key: value for key, value in self.notes.items() if key not in _KEYS},
        }


@dataclass(frozen=True)
class Sweep:
    """The points of one file.

    Attributes:
        points: in the order of the file, each configuration of a problem and m once.
        source: the file as the user gave it.
        format: which kind of file it was.
        warnings: what was skipped or pooled, counted.
    """

    points: tuple[Point, ...]
    source: str
    format: str
    warnings: tuple[TraceWarning, ...] = ()

    def problems(self) -> dict[str, tuple[Point, ...]]:
        """Return the points by what was measured apart from the rows, in the order of the file."""
        found: dict[str, list[Point]] = {}
        for point in self.points:
            found.setdefault(point.problem_key, []).append(point)
        return {key: tuple(points) for key, points in found.items()}


def canonical(value: Any) -> str:
    """Return JSON text that is equal for equal values; mappings are sorted by key."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=dict)


def whole(value: object) -> int | None:
    """Return an integer value as it is, and null for everything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def write_sweep(path: str | Path, points: Iterable[Point]) -> None:
    """Write a sweep file; nothing is left half-written.

    Raises:
        TraceError: the file cannot be written.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.writelines(_line(point) for point in points)
        temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise TraceError(str(path), f"cannot be written ({error.strerror or error})") from error


def append_point(path: str | Path, point: Point) -> None:
    """Add a point to a sweep file, which is created when it is not there.

    A file whose last line was torn by an interruption gets a line break first, so that only the torn line is lost.

    Raises:
        TraceError: the file cannot be written.
    """
    try:
        with Path(path).open("ab+") as file:
            torn = False
            if file.tell():
                file.seek(-1, os.SEEK_END)
                torn = file.read(1) != b"\n"
            file.write(("\n" if torn else "").encode() + _line(point).encode())
    except OSError as error:
        raise TraceError(str(path), f"cannot be written ({error.strerror or error})") from error


def _line(point: Point) -> str:
    return json.dumps(point.to_dict(), allow_nan=False) + "\n"
