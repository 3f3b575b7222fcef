"""What was captured, as JSON and as text."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.capture.compute import Capture
from traceanalyzer.commands.capture.recorded import Recorded
from traceanalyzer.problems import TraceWarning
from traceanalyzer.wording import plural, visible

SCHEMA = "traceanalyzer/capture/1"


def document(
    found: Capture, recorded: Recorded | None, summary: dict[str, Any] | None, warnings: list[TraceWarning]
) -> dict[str, Any]:
    """Return the JSON document of ``capture``; ``summary`` is that of ``ingest``, null without files."""
    good = [outcome for outcome in found.outcomes if not outcome.error]
    first = [outcome.first_token_s for outcome in good if outcome.first_token_s is not None]
    return {
        "schema": SCHEMA,
        "status": "warning" if warnings else "ok",
        "name": found.name,
        "engine": found.server.engine,
        "version": found.server.version,
        "model": found.server.model,
        "concurrency": found.workload.concurrency,
        "input_tokens": found.workload.input_tokens,
        "output_tokens": found.workload.output_tokens,
        "requests": {
            "completed": len(good),
            "failed": len(found.outcomes) - len(good),
            "tokens": sum(outcome.tokens for outcome in good),
            "mean_ttft_ms": fmean(first) * 1000 if first else None,
        },
        "files": [str(path) for path in found.files],
        "location": found.location,
        "decode_steps": None if recorded is None else recorded.decode_steps,
        "decode_steps_of_batch": None if recorded is None else recorded.of_batch,
        "summary": summary,
        "warnings": [warning.to_dict() for warning in warnings],
    }


def render(found: Capture, recorded: Recorded | None) -> Group:
    """Return the heading above the summary of the trace."""
    good = sum(not outcome.error for outcome in found.outcomes)
    load = found.workload
    lines = [
        Text(f"captured {visible(found.name)}", style="bold"),
        Text(
            f"  {visible(found.server.model)}: {plural(good, 'request')} at once, {load.input_tokens} tokens in, "
            f"{load.output_tokens} out"
        ),
        *(Text(f"  {visible(str(path))}") for path in found.files),
    ]
    if found.location is not None:
        lines += [
            Text(f"  the trace is in {visible(found.location)}"),
            Text("  bring it here and run: traceanalyzer ingest PATH"),
        ]
    if recorded is not None:
        share = f"{recorded.of_batch} of {plural(recorded.decode_steps, 'complete decode step')}"
        lines.append(Text(f"  {share} have batch {load.concurrency}"))
    return Group(*lines, Text())
