"""The line format of hand-written sweeps: ``conc=1 bm=16 bn=32 bk=128 sk=1 median=... ms samples=[...]``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from traceanalyzer.problems import TraceWarning
from traceanalyzer.tune.sweep import Point, checked_samples, skip_warnings

SHORT = {"bm": "block_m", "bn": "block_n", "bk": "block_k", "sk": "split_k"}
OTHER_SHORT = {"nw": "num_warps", "ns": "num_stages", "gm": "group_m"}
UNSAID = ("num_warps", "num_stages")


def point_line(point: Point) -> str | None:
    """Return a point as one line, parameters beyond the tile as ``nw=``, ``ns=``, ``gm=``; null without samples."""
    if not point.samples_ms:
        return None
    tile = " ".join(f"{short}={point.config.get(name)}" for short, name in SHORT.items())
    rest = "".join(f" {s}={point.config[n]}" for s, n in OTHER_SHORT.items() if point.config.get(n) is not None)
    head = f"conc={point.concurrency} {tile}{rest}"
    return f"{head} median={point.median_ms:.3f} ms samples={json.dumps(list(point.samples_ms))}"


def best_line(point: Point) -> str:
    """Return the ``BEST`` line that ends a batch size."""
    tile: dict[str, object] = {short: point.config.get(name) for short, name in SHORT.items()}
    return f"BEST {point.concurrency} {tile | {'median_ms': point.median_ms}}"


def looks_like_seed_lines(text: str) -> bool:
    """Return whether a text holds at least one line of this format."""
    return re.search(r"^\s*conc=\d+\s+bm=", text, re.MULTILINE) is not None


def parse_seed_lines(
    text: str, source: str, top_k: int | None = None
) -> tuple[tuple[Point, ...], tuple[TraceWarning, ...]]:
    """Read every point; ``BEST`` lines repeat one, and other text (a shell prompt) is no point.

    Args:
        text: the log.
        source: named in warnings.
        top_k: experts a token, from which rows follow (m = concurrency x top_k); null leaves m unknown.
    """
    found: dict[tuple[str, ...], Point] = {}
    skipped: dict[str, list[int]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith("conc="):
            continue
        try:
            point = _parse(line, top_k)
        except ValueError as error:
            skipped.setdefault(str(error), []).append(number)
            continue
        if point.key in found:
            skipped.setdefault("the same configuration is there twice", []).append(number)
        else:
            found[point.key] = point
    return tuple(found.values()), skip_warnings(skipped, source)


def _parse(line: str, top_k: int | None) -> Point:
    numbers: Mapping[str, str] = dict(re.findall(r"\b([a-z]+)=(\d+)(?=\s)", line))
    samples = re.search(r"samples=\[([^\]]*)\]", line)
    missing = [short for short in ("conc", *SHORT) if short not in numbers]
    if missing or not samples:
        raise ValueError(f"{missing[0] if missing else 'samples'} is missing or no number")
    try:
        values = [float(part) for part in samples.group(1).split(",") if part.strip()]
    except ValueError:
        raise ValueError("the samples are not a list of numbers") from None
    if not values:
        raise ValueError("there are no samples")
    config: dict[str, int | str | None] = {name: int(numbers[short]) for short, name in SHORT.items()}
    config |= dict.fromkeys(UNSAID)
    config |= {name: int(numbers[short]) for short, name in OTHER_SHORT.items() if short in numbers}
    concurrency = int(numbers["conc"])
    return Point(
        kernel=None,
        m=concurrency * top_k if top_k else None,
        concurrency=concurrency,
        config=config,
        rounds=(checked_samples(values),),
    )


def log_of(points: Iterable[Point]) -> str:
    """Return points as a log: every batch size's lines, then its best."""
    lines: list[str] = []
    by_concurrency: dict[int | None, list[Point]] = {}
    for point in points:
        if point.samples_ms and point.reason is None:
            by_concurrency.setdefault(point.concurrency, []).append(point)
    for group in by_concurrency.values():
        lines += [line for line in map(point_line, group) if line]
        lines.append(best_line(min(group, key=lambda point: point.median_ms or float("inf"))))
    return "\n".join(lines)
