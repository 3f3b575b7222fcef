"""Switching a server's profiler on and, whatever happens, off again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traceanalyzer.commands.capture.http import Client, Response, UnreachableError
from traceanalyzer.commands.capture.server import Server
from traceanalyzer.problems import TraceError

START, STOP = "/start_profile", "/stop_profile"
START_TIMEOUT = 120.0
"""Seconds that starting the profiler may take; chosen, not fitted."""


class RefusedError(TraceError):
    """The server did not start a session, so there is none of ours to stop."""


@dataclass(frozen=True)
class Limits:
    """Seconds each part may take: answering the requests, writing the files, their appearing in the directory."""

    load: float = 600.0
    stop: float = 600.0
    files: float = 60.0


@dataclass(frozen=True)
class CaptureWish:
    """What is to be recorded.

    Attributes:
        profile_dir: the directory the server writes traces to, as it is seen from here; None when it is not.
        output: a directory to copy the traces to; None leaves them where they are.
        name: begins the file names; None for one made of model and load.
        model: the model to use, where several are served.
        take_over: stop a session that is active already.
        limits: how long each part may take.
    """

    profile_dir: Path | None = None
    output: Path | None = None
    name: str | None = None
    model: str | None = None
    take_over: bool = False
    limits: Limits = Limits()


@contextmanager
def profiling(
    client: Client, server: Server, wish: CaptureWish, name: str, tell: Callable[[str], None]
) -> Iterator[None]:
    """Profile the server while the body runs; the session is stopped on every way out, interruption included.

    Raises:
        RefusedError: no session was started.
        TraceError: the session could not be stopped.
    """
    try:
        _start(client, server, wish, name, tell)
        tell("profiler started")
        yield
    except RefusedError:
        raise
    except BaseException as problem:
        # Also when starting was interrupted or timed out: it may take effect anyway.
        try:
            _stop(client, wish.limits.stop, tell)
        except TraceError as error:
            tell(f"the profiler could not be stopped: {error.reason}")
            raise problem from error
        raise
    if _stop(client, wish.limits.stop, tell):
        raise KeyboardInterrupt


def _start(client: Client, server: Server, wish: CaptureWish, name: str, tell: Callable[[str], None]) -> None:
    answer = _ask(client, server, wish, name)
    if _active(answer) and wish.take_over:
        tell("a profiling session is active already; stopping it")
        if _stop(client, wish.limits.stop, tell):
            raise KeyboardInterrupt
        answer = _ask(client, server, wish, name)
    if not answer.ok:
        raise RefusedError(str(client.endpoint), _explain(answer, client, server))


def _ask(client: Client, server: Server, wish: CaptureWish, name: str) -> Response:
    body: dict[str, Any] = {"profile_prefix": name}
    # vLLM is told at its start where to write.
    if server.engine == "sglang" and wish.profile_dir is not None:
        body["output_dir"] = str(wish.profile_dir.absolute())
    return client.request("POST", START, body, timeout=START_TIMEOUT)


def _active(answer: Response) -> bool:
    """Whether a session is active: 409 from vLLM; SGLang says so in a text."""
    return answer.status == 409 or (not answer.ok and "already in progress" in answer.text.lower())


def _explain(answer: Response, client: Client, server: Server) -> str:
    """Say why the profiler did not start, and what to do."""
    if answer.status == 404:
        return f"the server was started without a profiler (404); {_flag(server)}"
    if _active(answer):
        return (
            f"a profiling session is active already ({answer.reason}): somebody else's, or one that was never stopped; "
            f"stop it with POST {client.endpoint}{STOP}, or use --take-over"
        )
    if answer.status in {401, 403}:
        return f"the server refuses the API key for {START} ({answer.reason})"
    if answer.status in {400, 422}:
        return f"the server does not accept these profiler options ({answer.reason})"
    return f"the profiler did not start: {answer.reason}; see the server's log"


def _flag(server: Server) -> str:
    config = """--profiler-config '{"profiler": "torch", "torch_profiler_dir": "/path/to/traces"}'"""
    variable = "VLLM_TORCH_PROFILER_DIR=/path/to/traces in its environment"
    if server.engine == "sglang":
        return "its version has no /start_profile, or an admin key guards it"
    version = _version(server.version)
    if version is None:
        return f"restart it with {config} (vLLM 0.14 and later) or with {variable} (earlier)"
    return f"restart it with {config}" if version >= (0, 14) else f"restart it with {variable}"


def _version(text: str | None) -> tuple[int, int] | None:
    parts = (text or "").split(".")
    if len(parts) < 2 or not (parts[0].isdigit() and parts[1].isdigit()) or parts[:2] == ["0", "1"]:
        # Builds without a tag call themselves 0.1.dev...
        return None
    return int(parts[0]), int(parts[1])


def _stop(client: Client, timeout: float, tell: Callable[[str], None]) -> bool:
    """Send the stop and wait until the server has written its files.

    The request runs in a thread of its own, so an interruption cannot keep it from being sent; a second one gives up
    the waiting.

    Returns:
        whether the waiting was interrupted.

    Raises:
        TraceError: the server answered with an error, or not in time.
    """
    result: list[Response | TraceError] = []

    def send() -> None:
        try:
            result.append(client.request("POST", STOP, timeout=timeout))
        except TraceError as error:
            result.append(error)

    thread = threading.Thread(target=send, name="stop", daemon=True)
    thread.start()
    tell("stopping the profiler; the server writes its files now")
    interrupted = False
    while thread.is_alive():
        try:
            thread.join(timeout=0.1)
        except KeyboardInterrupt:
            if interrupted:
                raise
            interrupted = True
            tell("the profiler is being stopped; interrupt again to give up waiting for it")
    (answer,) = result
    if isinstance(answer, UnreachableError):
        reason = f"no answer to POST {STOP} ({answer.reason}); the server may still be writing, or still profiling"
        raise TraceError(str(client.endpoint), reason) from answer
    if isinstance(answer, TraceError):
        raise answer
    if not answer.ok:
        raise TraceError(
            str(client.endpoint), f"POST {STOP}: {answer.reason}; the profiler may still run, so stop it by hand"
        )
    return interrupted
