"""N streaming requests at once, of given lengths, so that the server decodes batches of N."""

from __future__ import annotations

import http.client
import json
import random
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from traceanalyzer.commands.capture.http import Client, Response, events_of
from traceanalyzer.problems import TraceError

COMPLETIONS = "/v1/completions"
WARM_UP_TOKENS = 4
"""Tokens of each warm-up answer: a prefill and a few decode steps. Chosen, not fitted."""

# Random token ids: their number is exact without a tokenizer, they never share a prefix that a cache could serve, and
# every vocabulary has these ids. Low ids are left out, where tokenizers keep control tokens.
TOKEN_IDS = (100, 1000)


@dataclass(frozen=True)
class RequestLoad:
    """What is sent.

    Attributes:
        concurrency: requests at once.
        input_tokens, output_tokens: of each; the end of the answer is not left to the model.
    """

    concurrency: int
    input_tokens: int
    output_tokens: int


@dataclass
class RequestOutcome:
    """How one request went.

    Attributes:
        tokens: received.
        first_token_s: seconds from the start of the load to the first; None where none came.
        error: why it failed; None where it did not.
    """

    tokens: int = 0
    first_token_s: float | None = None
    error: str | None = None


@dataclass
class _Job:
    """One request's thread, with what is needed to end it from outside."""

    outcome: RequestOutcome = field(default_factory=RequestOutcome)
    connection: http.client.HTTPConnection | None = None
    thread: threading.Thread = field(default_factory=threading.Thread)


def drive(
    client: Client, model: str, load: RequestLoad, *, timeout: float, tell: Callable[[str], None] | None = None
) -> tuple[RequestOutcome, ...]:
    """Send the requests at the same moment and wait for all answers.

    Connections are open before the first request is sent. Requests still running after ``timeout`` seconds, or when
    the caller is interrupted, are broken off, which makes the server drop them.

    Raises:
        TraceError: no request succeeded.
    """
    jobs = [_Job() for _ in range(load.concurrency)]
    gate = threading.Barrier(load.concurrency)
    start = time.monotonic()
    deadline = start + timeout
    rng = random.Random()
    for job in jobs:
        prompt = [rng.randrange(*TOKEN_IDS) for _ in range(load.input_tokens)]
        body = _body(model, prompt, load.output_tokens)
        arguments = (client, body, job, gate, start, timeout)
        job.thread = threading.Thread(target=_run, args=arguments, daemon=True, name="request")
        job.thread.start()
    try:
        _wait(jobs, deadline, tell)
    finally:
        _break_off(jobs, gate)
    outcomes = tuple(job.outcome for job in jobs)
    if all(outcome.error for outcome in outcomes):
        raise TraceError(str(client.endpoint), f"all {len(outcomes)} requests failed: {outcomes[0].error}")
    return outcomes


def warm_up(client: Client, model: str, load: RequestLoad, *, timeout: float) -> None:
    """Send the same prompts with short answers, so that compilation and graph capture are not what is recorded.

    Raises:
        TraceError: the server refuses such requests.
    """
    drive(
        client,
        model,
        RequestLoad(load.concurrency, load.input_tokens, min(WARM_UP_TOKENS, load.output_tokens)),
        timeout=timeout,
    )


def _body(model: str, prompt: list[int], output_tokens: int) -> dict[str, Any]:
    return {
        "model": model,
        "prompt": prompt,
        "max_tokens": output_tokens,
        "ignore_eos": True,
        "temperature": 0.0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def _run(
    client: Client, body: dict[str, Any], job: _Job, gate: threading.Barrier, start: float, timeout: float
) -> None:
    try:
        job.connection = client.connect(timeout)
        gate.wait(timeout)
        client.send(job.connection, "POST", COMPLETIONS, body)
        answer = job.connection.getresponse()
        if answer.status != http.client.OK:
            refused = Response(answer.status, answer.read(1 << 16).decode("utf-8", errors="replace"))
            job.outcome.error = f"POST {COMPLETIONS}: {refused.reason}"
            return
        with answer:
            for data in events_of(answer):
                _take(data, job.outcome, start)
        if job.outcome.tokens == 0 and job.outcome.error is None:
            job.outcome.error = "the answer held no token"
    except TraceError as error:
        gate.abort()
        job.outcome.error = error.reason
    except threading.BrokenBarrierError:
        job.outcome.error = job.outcome.error or "not sent, because another connection failed"
    except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
        # A connection that was broken off from outside fails in any of these ways.
        reason = "no answer within the time limit" if isinstance(error, TimeoutError) else f"broken off ({error!r})"
        job.outcome.error = job.outcome.error or reason
    finally:
        if job.connection is not None:
            job.connection.close()


def _take(data: str, outcome: RequestOutcome, start: float) -> None:
    """Count the tokens of one event; the last event's usage, where sent, is exact."""
    document = json.loads(data)
    if not isinstance(document, dict):
        return
    if document.get("error"):
        error = document["error"]
        outcome.error = str(error.get("message", error) if isinstance(error, dict) else error)
        return
    if document.get("choices"):
        outcome.tokens += 1
        if outcome.first_token_s is None:
            outcome.first_token_s = time.monotonic() - start
    usage = document.get("usage")
    if isinstance(usage, dict) and isinstance(usage.get("completion_tokens"), int):
        outcome.tokens = usage["completion_tokens"]


def _wait(jobs: list[_Job], deadline: float, tell: Callable[[str], None] | None) -> None:
    """Wait in short naps, so that a signal is handled at once."""
    announced = False
    while time.monotonic() < deadline:
        alive = [job for job in jobs if job.thread.is_alive()]
        if not alive:
            return
        if tell is not None and not announced and all(job.outcome.first_token_s is not None for job in jobs):
            tell(f"all {len(jobs)} requests are decoding")
            announced = True
        alive[0].thread.join(timeout=0.05)


def _break_off(jobs: list[_Job], gate: threading.Barrier) -> None:
    """End what still runs: close its sockets from outside, then wait shortly for the threads."""
    alive = [job for job in jobs if job.thread.is_alive()]
    if not alive:
        return
    gate.abort()
    for job in alive:
        job.outcome.error = job.outcome.error or "broken off (time limit or interruption)"
        sock = getattr(job.connection, "sock", None)
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
    for job in alive:
        job.thread.join(timeout=2)
