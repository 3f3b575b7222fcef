"""Results as ``vllm bench serve`` and SGLang's ``bench_serving`` print them on the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceanalyzer.serving.metrics import column, direction
from traceanalyzer.serving.records import from_row
from traceanalyzer.serving.serving_result import ServingResult, as_number

TITLE = re.compile(r"=+ *Serving Benchmark Result *=+")
END = re.compile(r"={20,}\s*$")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
LINE = re.compile(r"(?P<label>[A-Za-z][A-Za-z0-9 .()/%-]*?(?: \([^()]*\))?):\s+(?P<value>\S.*?)\s*$")

NAMES = {
    "backend": "backend",
    "traffic request rate": "request_rate",
    "request rate configured (rps)": "request_rate",
    "burstiness factor": "burstiness",
    "maximum request concurrency": "max_concurrency",
    "max request concurrency": "max_concurrency",
    "max reqeuest concurrency": "max_concurrency",
    "successful requests": "completed",
    "failed requests": "failed",
    "total input tokens": "total_input_tokens",
    "total generated tokens": "total_output_tokens",
}
"""Label of a setting or count -> its key in result files."""

SETTINGS = frozenset(list(NAMES)[:7])
"""Labels that may be printed before the result that they are settings of."""


def holds_console_result(text: str) -> bool:
    """Whether the text contains a printed result."""
    return TITLE.search(text) is not None


def from_console(text: str, source: str) -> list[ServingResult]:
    """Read every printed result; settings printed before a result belong to it."""
    blocks = [block for block in _blocks(text) if block[1]]
    many = len(blocks) > 1
    results = [_result(lines, source, f"line {number}" if many else None) for number, lines in blocks]
    return [result for result in results if result is not None]


def _blocks(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line number of each title with the lines of its block and those before it."""
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


def _result(lines: dict[str, str], source: str, place: str | None) -> ServingResult | None:
    row: dict[str, str] = {}
    for label, value in lines.items():
        target = column(label)
        if label in NAMES:
            row[NAMES[label]] = value.partition(" (")[0]
        elif target is not None and direction(target.key) is not None:
            row[label] = value
    sent = [as_number(row.get(key)) for key in ("completed", "failed")]
    if None not in sent:
        row["num_prompts"] = str(sum(count for count in sent if count is not None))
    return from_row(row, source, place)
