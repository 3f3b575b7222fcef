"""What was captured, as a JSON document and as text."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.capture.compute import Capture, Recorded
from traceanalyzer.commands.capture.result import AnsweredRequests, CaptureDocument
from traceanalyzer.commands.ingest.result import SummaryDocument
from traceanalyzer.problems import TraceWarning
from traceanalyzer.wording import plural, visible


def document(
    capture: Capture, recorded: Recorded | None, summary: SummaryDocument | None, warnings: Sequence[TraceWarning]
) -> CaptureDocument:
    """Return the JSON document of ``capture``; ``summary`` is that of ``ingest``, None without files."""
    good = [outcome for outcome in capture.outcomes if not outcome.error]
    first = [outcome.first_token_s for outcome in good if outcome.first_token_s is not None]
    return CaptureDocument(
        status="warning" if warnings else "ok",
        name=capture.name,
        engine=capture.server.engine,
        version=capture.server.version,
        model=capture.server.model,
        concurrency=capture.load.concurrency,
        input_tokens=capture.load.input_tokens,
        output_tokens=capture.load.output_tokens,
        requests=AnsweredRequests(
            completed=len(good),
            failed=len(capture.outcomes) - len(good),
            tokens=sum(outcome.tokens for outcome in good),
            mean_ttft_ms=fmean(first) * 1000 if first else None,
        ),
        files=[str(path) for path in capture.files],
        location=capture.location,
        decode_steps=None if recorded is None else recorded.decode_steps,
        decode_steps_of_batch=None if recorded is None else recorded.of_batch,
        summary=summary,
        warnings=list(warnings),
    )


def render(capture: Capture, recorded: Recorded | None) -> Group:
    """Return the heading above the summary of the trace."""
    good = sum(not outcome.error for outcome in capture.outcomes)
    load = capture.load
    lines = [
        Text(f"captured {visible(capture.name)}", style="bold"),
        Text(
            f"  {visible(capture.server.model)}: {plural(good, 'request')} at once, {load.input_tokens} tokens in, "
            f"{load.output_tokens} out"
        ),
        *(Text(f"  {visible(str(path))}") for path in capture.files),
    ]
    if capture.location is not None:
        lines += [
            Text(f"  the trace is in {visible(capture.location)}"),
            Text("  bring it here and run: traceanalyzer ingest PATH"),
        ]
    if recorded is not None:
        share = f"{recorded.of_batch} of {plural(recorded.decode_steps, 'complete decode step')}"
        lines.append(Text(f"  {share} {'has' if recorded.of_batch == 1 else 'have'} batch {load.concurrency}"))
    return Group(*lines, Text())
