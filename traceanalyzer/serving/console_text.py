"""The result that ``vllm bench serve`` and SGLang's ``bench_serving`` print on the terminal, pasted into a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from traceanalyzer.serving.metrics import column
from traceanalyzer.serving.records import half_unit
from traceanalyzer.serving.serving_result import UNLIMITED, ServingResult, Setting, as_number

TITLE = re.compile(r"=+ *Serving Benchmark Result *=+")
END = re.compile(r"={20,}\s*$")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
LINE = re.compile(r"(?P<label>[A-Za-z][A-Za-z0-9 .()/%-]*?(?: \([^()]*\))?):\s+(?P<value>\S.*?)\s*$")

COUNTS = {
    "successful requests": "completed",
    "failed requests": "failed",
    "total input tokens": "total_input_tokens",
    "total generated tokens": "total_output_tokens",
}
SETTINGS = {
    "backend": "backend",
    "traffic request rate": "request_rate",
    "request rate configured (rps)": "request_rate",
    "burstiness factor": "burstiness",
    "maximum request concurrency": "max_concurrency",
    "max request concurrency": "max_concurrency",
    "max reqeuest concurrency": "max_concurrency",
}


def holds_console_result(text: str) -> bool:
    """Whether the text contains a printed result."""
    return TITLE.search(text) is not None


def from_console(text: str, source: str) -> list[ServingResult]:
    """Read every printed result of the text; settings printed before a result count for it."""
    blocks = [block for block in _blocks(text) if block[1]]
    many = len(blocks) > 1
    return [_result(lines, source, f"line {number}" if many else None) for number, lines in blocks]


def _blocks(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line number of each title with the lines of its block, those printed before it included."""
    lines: dict[str, str] = {}
    title: int | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = ESCAPES.sub("", raw)
        if TITLE.search(line):
            if title is not None:
                yield title, lines
                lines = {}
            title = number
        elif title is not None and END.search(line):
            yield title, lines
            lines, title = {}, None
        elif (pair := LINE.search(line)) is not None:
            label = pair["label"].strip().lower()
            if title is not None or label in SETTINGS:
                lines[label] = pair["value"]
    if title is not None:
        yield title, lines


def _result(lines: dict[str, str], source: str, place: str | None) -> ServingResult:
    settings: dict[str, Setting] = {}
    counts: dict[str, float | None] = {}
    metrics: dict[str, float] = {}
    resolution: dict[str, float] = {}
    for label, value in lines.items():
        number = as_number(value)
        if label in SETTINGS:
            settings[SETTINGS[label]] = _setting(SETTINGS[label], value)
        elif label in COUNTS:
            counts[COUNTS[label]] = number
        elif (target := column(label)) is not None and number is not None:
            metrics[target.key] = number * target.factor
            resolution[target.key] = half_unit(value) * target.factor
    completed, failed = counts.get("completed"), counts.get("failed")
    known: dict[str, Any] = {
        "completed": None if completed is None else round(completed),
        "failed": None if failed is None else round(failed),
        "prompts": None if completed is None or failed is None else round(completed + failed),
    }
    return ServingResult(
        source=source,
        place=place,
        kind="serve",
        metrics=metrics,
        settings=settings,
        input_tokens=counts.get("total_input_tokens"),
        output_tokens=counts.get("total_output_tokens"),
        resolution=resolution,
        **known,
    )


def _setting(key: str, value: str) -> Setting:
    text = value.partition(" (")[0].strip()
    if key == "max_concurrency" and text.lower() in {"none", "not set", "unlimited"}:
        return UNLIMITED
    number = as_number(text)
    return number if number is not None else text
