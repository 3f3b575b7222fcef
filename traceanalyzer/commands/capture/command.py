"""``traceanalyzer capture``: record a trace of a running vLLM or SGLang server."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from traceanalyzer.cli.common import (
    FiniteRange,
    emit_json,
    json_option,
    no_cache_option,
    open_inputs,
    show_warnings,
    tell,
    warnings_of,
)

if TYPE_CHECKING:
    from traceanalyzer.commands.capture.compute import Capture

SECONDS = FiniteRange(min=0, min_open=True)


@click.command()
@click.argument("url")
@click.option(
    "--concurrency",
    type=click.IntRange(1, 4096),
    default=8,
    show_default=True,
    help="Requests sent at once: the batch.",
)
@click.option(
    "--input-tokens", type=click.IntRange(min=1), default=128, show_default=True, help="Tokens of each prompt."
)
@click.option(
    "--output-tokens", type=click.IntRange(min=2), default=32, show_default=True, help="Tokens of each answer."
)
@click.option(
    "--profile-dir",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="VLLM_TORCH_PROFILER_DIR",
    help="The directory the server writes traces to, as seen from here. Without it the traces are not looked at.",
)
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), help="Copy the traces to this directory."
)
@click.option("--name", help="Beginning of the traces' names.  [default: made of model, batch and lengths]")
@click.option("--model", help="The served model, where there are several.")
@click.option("--take-over", is_flag=True, help="Stop a profiling session that is active already.")
@click.option(
    "--api-key-env",
    default="VLLM_API_KEY",
    show_default=True,
    metavar="NAME",
    help="The environment variable that holds the API key, if the server wants one.",
)
@click.option("--timeout", type=SECONDS, default=600, show_default=True, help="Seconds to wait for the answers.")
@click.option(
    "--stop-timeout",
    type=SECONDS,
    default=600,
    show_default=True,
    help="Seconds to wait for the server to write the traces.",
)
@click.option(
    "--file-timeout",
    type=SECONDS,
    default=60,
    show_default=True,
    help="Seconds to wait for the traces to appear in --profile-dir.",
)
@json_option
@no_cache_option
def capture(
    url: str,
    concurrency: int,
    input_tokens: int,
    output_tokens: int,
    profile_dir: Path | None,
    output: Path | None,
    name: str | None,
    model: str | None,
    take_over: bool,
    api_key_env: str,
    timeout: float,
    stop_timeout: float,
    file_timeout: float,
    as_json: bool,
    no_cache: bool,
) -> None:
    """Record a trace of a running vLLM or SGLang server while it decodes a batch of a chosen size.

    Starts the server's profiler, sends --concurrency requests at once (random prompts, answers of fixed length), stops
    the profiler, waits for the traces and prints their overview. The profiler is stopped whatever happens. Requests go
    to URL only.
    """
    from traceanalyzer.commands.capture.compute import capture as record
    from traceanalyzer.commands.capture.http import Client, Endpoint
    from traceanalyzer.commands.capture.load import RequestLoad
    from traceanalyzer.commands.capture.profiler import CaptureWish, Limits

    client = Client(Endpoint.parse(url), os.environ.get(api_key_env) or None)
    if client.key and client.endpoint.scheme == "http" and not client.endpoint.loopback:
        click.echo("warning: the API key is sent without encryption; use https", err=True)
    limits = Limits(load=timeout, stop=stop_timeout, files=file_timeout)
    wish = CaptureWish(profile_dir, output, name, model, take_over, limits)
    with terminated_as_interrupted():
        captured = record(client, RequestLoad(concurrency, input_tokens, output_tokens), wish, _tell)
    _show(captured, as_json=as_json, no_cache=no_cache)


def _show(captured: Capture, *, as_json: bool, no_cache: bool) -> None:
    from traceanalyzer.commands.capture import view
    from traceanalyzer.show.terminal import console

    if not captured.files:
        show_warnings(captured.warnings)
        if as_json:
            emit_json(view.document(captured, None, None, captured.warnings))
        else:
            console().print(view.render(captured, None))
        return
    from traceanalyzer.commands.capture.compute import decode_steps, shortfall
    from traceanalyzer.commands.ingest import view as summary_view
    from traceanalyzer.commands.ingest.compute import engine_of, timelines

    traces = open_inputs([str(path) for path in captured.files], no_cache=no_cache)
    lines = [timeline for trace in traces for timeline in timelines(trace)]
    recorded = decode_steps(traces, captured.load.concurrency)
    of_trace = [*traces.warnings, *(warning for trace in traces for warning in warnings_of(trace))]
    lacking = shortfall(recorded, captured.load.concurrency)
    warnings = [*captured.warnings, *([lacking] if lacking else []), *of_trace]
    show_warnings(warnings)
    engine = engine_of(traces)
    if as_json:
        summary: Any = summary_view.document(traces, engine, lines, of_trace)
        emit_json(view.document(captured, recorded, summary, warnings))
        return
    screen = console()
    screen.print(view.render(captured, recorded))
    first = captured.files[0]
    together = str(first if len(captured.files) == 1 else first.parent / f"{captured.name}*")
    screen.print(summary_view.render(engine, lines, screen, next_path=together), crop=False)


def _tell(line: str) -> None:
    from traceanalyzer.wording import visible

    tell(visible(line))


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP like Ctrl-C, so that they too stop the profiler on the way out."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    # Only the main thread may set handlers; elsewhere the caller is in charge of signals.
    main = threading.current_thread() is threading.main_thread()
    kinds = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if main and hasattr(signal, name)]
    previous = {kind: signal.signal(kind, interrupt) for kind in kinds}
    try:
        yield
    finally:
        for kind, handler in previous.items():
            signal.signal(kind, handler)
