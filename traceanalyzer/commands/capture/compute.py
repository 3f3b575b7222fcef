"""One capture from beginning to end, and what it recorded of the batch that was asked for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from traceanalyzer.commands.capture.http import Client
from traceanalyzer.commands.capture.load import RequestLoad, RequestOutcome, drive, warm_up
from traceanalyzer.commands.capture.profile_files import copy, rename, snapshot, wait_for_new
from traceanalyzer.commands.capture.profiler import CaptureWish, profiling
from traceanalyzer.commands.capture.server import Server, identify, running_requests
from traceanalyzer.problems import TraceError, TraceWarning
from traceanalyzer.segment import segment
from traceanalyzer.trace import Trace

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
LONGEST_MODEL = 60
"""Characters of a model's name in the name of a run."""


@dataclass(frozen=True)
class Capture:
    """What was recorded.

    Attributes:
        name: what the run is called; file names begin with it.
        server, load: what was profiled, and under which load.
        outcomes: one per request.
        files: the new traces; empty when the server's directory cannot be seen from here.
        location: where the files are, in words, when ``files`` is empty; else None.
        warnings: of the server, the requests and the files.
    """

    name: str
    server: Server
    load: RequestLoad
    outcomes: tuple[RequestOutcome, ...]
    files: tuple[Path, ...]
    location: str | None
    warnings: tuple[TraceWarning, ...]


def default_name(model: str, load: RequestLoad) -> str:
    """Name a run after its model, batch and lengths."""
    short = re.sub(r"[^A-Za-z0-9.-]+", "-", model.rstrip("/").rpartition("/")[2]).strip("-.")[:LONGEST_MODEL] or "model"
    return f"{short}_bs{load.concurrency}_in{load.input_tokens}_out{load.output_tokens}"


def capture(
    client: Client, load: RequestLoad, wish: CaptureWish, tell: Callable[[str], None] = lambda _: None
) -> Capture:
    """Record a trace of a running server under a load of ``load.concurrency`` requests.

    Raises:
        TraceError: the server cannot be used, refuses to profile, or left no trace.
    """
    server = identify(client, wish.model)
    _fits(client, server, load)
    title = wish.name or default_name(server.model, load)
    if NAME.fullmatch(title) is None:
        raise TraceError(title, "a name has letters, digits, '.', '_' and '-', and begins with a letter or digit")
    engine = " ".join(filter(None, (server.engine, server.version)))
    tell(f"{engine} serves {server.model}; warming up")
    warm_up(client, server.model, load, timeout=wish.limits.load)
    warnings = _busy(client)
    folder = wish.profile_dir
    # Only a server on this machine may be told to create the directory; elsewhere it has to be mounted.
    seen = folder is not None and (folder.is_dir() or client.endpoint.loopback)
    with profiling(client, server, wish, title, tell):
        # Not before: a session that was taken over has left its files by now.
        before = snapshot(folder) if folder is not None else {}
        outcomes = drive(client, server.model, load, timeout=wish.limits.load, tell=tell)
    warnings += _short(outcomes, load)
    if not seen or folder is None:
        where = _location(client, server, title, folder)
        return Capture(title, server, load, outcomes, (), where, tuple(warnings))
    new = wait_for_new(folder, before, timeout=wish.limits.files)
    files, unnamed = _named(new, title, server, folder, wish.output)
    return Capture(title, server, load, outcomes, files, None, (*warnings, *unnamed))


def _fits(client: Client, server: Server, load: RequestLoad) -> None:
    needed = load.input_tokens + load.output_tokens
    if server.longest is not None and needed > server.longest:
        raise TraceError(
            str(client.endpoint),
            f"{load.input_tokens} + {load.output_tokens} tokens exceed the server's limit of {server.longest} "
            "(max_model_len)",
        )


def _busy(client: Client) -> list[TraceWarning]:
    running = running_requests(client)
    if not running:
        return []
    message = f"{running} other requests are running; recorded steps will include them"
    return [TraceWarning("busy_server", message, str(client.endpoint), count=running)]


def _short(outcomes: tuple[RequestOutcome, ...], load: RequestLoad) -> list[TraceWarning]:
    warnings = []
    failed = [outcome for outcome in outcomes if outcome.error]
    if failed:
        message = (
            f"{len(failed)} of {len(outcomes)} requests failed ({failed[0].error}); batches were smaller than asked for"
        )
        warnings.append(TraceWarning("failed_requests", message, count=len(failed)))
    short = sum(not o.error and o.tokens < load.output_tokens for o in outcomes)
    if short:
        message = f"{short} answers ended before {load.output_tokens} tokens; the server did not honour ignore_eos"
        warnings.append(TraceWarning("short_answers", message, count=short))
    return warnings


def _named(
    files: tuple[Path, ...], title: str, server: Server, profile_dir: Path, output: Path | None
) -> tuple[tuple[Path, ...], list[TraceWarning]]:
    """Copy new traces to ``output``, or rename them where they are, so that their names begin with ``title``."""
    # Both engines join a prefix to the name in their own way, by which ranks are read from names.
    separator = "-" if server.engine == "sglang" else "_"
    if output is not None:
        return copy(files, output, title, separator), []
    renamed, problem = rename(files, title, separator)
    return renamed, [TraceWarning("not_renamed", problem, str(profile_dir))] if problem else []


def _location(client: Client, server: Server, title: str, profile_dir: Path | None) -> str:
    host = "this machine" if client.endpoint.loopback else client.endpoint.host
    if profile_dir is not None:
        where = f"{profile_dir} on {host}, which is not visible here"
    elif server.engine == "sglang":
        where = f"SGLANG_TORCH_PROFILER_DIR of the server, or its /tmp, on {host}"
    else:
        where = f"the server's torch_profiler_dir (or VLLM_TORCH_PROFILER_DIR) on {host}"
    return f"{where}; names begin with {title} where the server's version supports that"


@dataclass(frozen=True)
class Recorded:
    """Complete decode steps, of the trace that has the fewest of the batch asked for.

    Attributes:
        decode_steps: how many.
        of_batch: those with as many requests as were sent at once.
        batches: decode steps by their number of requests; None is a step that does not state it.
    """

    decode_steps: int
    of_batch: int
    batches: dict[int | None, int]


def decode_steps(traces: Iterable[Trace], concurrency: int) -> Recorded:
    """Count the decode steps of each rank; the rank with the fewest of the asked batch counts."""
    ranks = [_of_rank(trace, concurrency) for trace in traces]
    return min(ranks, key=lambda recorded: recorded.of_batch, default=Recorded(0, 0, {}))


def shortfall(recorded: Recorded, concurrency: int) -> TraceWarning | None:
    """Say why the trace lacks decode steps of the batch asked for; None when it has some."""
    if recorded.of_batch:
        return None
    if not recorded.decode_steps:
        message = "no complete decode step was recorded"
    elif set(recorded.batches) == {None}:
        message = "the steps do not state their batch sizes (older versions do not mark steps)"
    else:
        known = sorted((batch, steps) for batch, steps in recorded.batches.items() if batch)
        batches = ", ".join(f"{steps} of batch {batch}" for batch, steps in known)
        message = (
            f"no decode step of batch {concurrency} was recorded, but {batches}; raise --output-tokens, or the "
            "server's limits (--max-num-seqs, KV cache) are below the batch, or data-parallel ranks share it"
        )
    return TraceWarning("batch_not_reached", message)


def _of_rank(trace: Trace, concurrency: int) -> Recorded:
    steps = segment(trace).steps.filter("complete", pl.col("phase") == "decode")
    batches: Counter[int | None] = Counter(steps["requests"].to_list())
    return Recorded(steps.height, batches[concurrency], dict(batches))
