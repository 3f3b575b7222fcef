"""Worker processes that may crash or hang without taking the caller along.

A worker answers questions one by one. A message is a header with two lengths, a MessagePack body, and bytes that belong
to it, such as a window of a trace. A worker that dies or is late is killed with whatever it has started (a compiler
runs an assembler).

Workers are started as programs, not forked: Polars has threads, and a forked process may hang in them; and unlike
multiprocessing's spawn this does not import the main module of whoever called.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from operator import methodcaller
from types import TracebackType
from typing import Any

import msgspec

TAIL_CHARACTERS = 400
"""Characters of an error or of the last words of a process that are shown."""

DEATH_WAIT_S = 30
"""How long a killed process is waited for: a driver can hold one that a kernel hangs in."""

HEADER = struct.Struct("<IQ")
"""Bytes of the body, and of the payload after it."""

READ_BYTES = 1 << 20
PIPE_BYTES = 1 << 20
"""What a pipe may hold where the system allows it: the caller need not wait while a window is decoded."""

START = (
    "import sys; from importlib import import_module; module, count, *rest = sys.argv[1:]; "
    "sys.path[:] = dict.fromkeys([*rest[int(count):], *sys.path[1:]]); import_module(module).main(*rest[:int(count)])"
)
"""Calls ``main`` of a module, which is looked for where the caller finds its own modules."""


class WorkerError(Exception):
    """The worker died, was late, or answered that it failed; the text says which.

    Attributes:
        errno: of the OSError that it failed with; None for any other failure.
    """

    def __init__(self, text: str, errno: int | None = None) -> None:
        super().__init__(text)
        self.errno = errno


class LateWorkerError(WorkerError):
    """The worker did not answer in time."""


class Reply(msgspec.Struct):
    """An answer, or the error that prevented it; with the most memory that the process has held."""

    answer: Any = None
    error: str | None = None
    errno: int | None = None
    peak_bytes: int = 0


class Worker:
    """One worker process, started on first use.

    Args:
        module: its ``main`` calls ``serve``.
        arguments: of ``main``.
        environment: variables added to this process's own.
        replaced: whether a question to a process that has died starts a new one; not where answers rest on earlier
            questions.

    Attributes:
        starts: how often a process was started.
        peak_bytes: the most memory that the process has held.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        *,
        replaced: bool = True,
    ) -> None:
        self._command = [module, str(len(arguments)), *arguments]
        self._environment = {**os.environ, **(environment or {})}
        self._replaced = replaced
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        self.starts = 0
        self.peak_bytes = 0

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def running(self) -> bool:
        """Whether there is a process that waits for questions."""
        return self._process is not None and self._process.poll() is None

    def ask(
        self,
        question: Any,
        timeout_s: float | None = None,
        payload: bytes | memoryview = b"",
        *,
        kind: Any = dict[str, Any],
    ) -> Any:
        """Send a question and return the answer.

        Args:
            question: whatever MessagePack can hold.
            timeout_s: after which the worker is late; None waits as long as it runs.
            payload: bytes that belong to the question; they are not copied.
            kind: the type of the answer.

        Raises:
            LateWorkerError: the worker was late; it is killed.
            WorkerError: it died, or answered with an error.
            OSError: it cannot be started.
        """
        if self._process is None or self._replaced:
            self.start()
        process = self._process
        assert process is not None
        try:
            assert process.stdin is not None
            _send(process.stdin, question, payload)
            body = self._answer(process, timeout_s)
        except TimeoutError:
            self.stop()
            raise LateWorkerError(f"no answer within {timeout_s:g} s") from None
        except (OSError, EOFError):
            raise WorkerError(self._epitaph()) from None
        except BaseException:
            self.stop()
            raise
        reply = msgspec.msgpack.decode(body, type=Reply)
        self.peak_bytes = reply.peak_bytes
        if reply.error is not None:
            raise WorkerError(reply.error, reply.errno)
        return msgspec.convert(reply.answer, kind)

    def start(self) -> None:
        """Start the process, if it does not run.

        Raises:
            OSError: it cannot be started.
        """
        if self.running:
            return
        self.stop()
        self._errors.seek(0)
        self._errors.truncate()
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, *self._command, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=self._environment,
            start_new_session=True,  # a process group of its own, to be killed as a whole
        )
        self.starts += 1
        assert self._process.stdin is not None
        with contextlib.suppress(ImportError, AttributeError, OSError):
            import fcntl

            fcntl.fcntl(self._process.stdin.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def kill(self) -> None:
        """Kill the process and what it has started, if it runs; who waits for its answer gets a WorkerError."""
        process = self._process
        if process is not None and process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if hasattr(os, "killpg"):
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    process.kill()

    def stop(self) -> None:
        """Kill the process and wait for its end."""
        self.kill()
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(DEATH_WAIT_S)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def close(self) -> None:
        """Stop the process; the worker cannot be used any more."""
        self.stop()
        self._errors.close()

    def _answer(self, process: subprocess.Popen[bytes], timeout_s: float | None) -> bytes:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        size, _ = HEADER.unpack(self._exactly(process, HEADER.size, deadline))
        return self._exactly(process, size, deadline)

    @staticmethod
    def _exactly(process: subprocess.Popen[bytes], size: int, deadline: float | None) -> bytes:
        assert process.stdout is not None
        descriptor, data = process.stdout.fileno(), bytearray()
        while len(data) < size:
            if deadline is not None and not _readable(descriptor, max(0.0, deadline - time.monotonic())):
                raise TimeoutError
            part = os.read(descriptor, min(size - len(data), READ_BYTES))
            if not part:
                raise EOFError
            data += part
        return bytes(data)

    def _epitaph(self) -> str:
        code = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(DEATH_WAIT_S)
        self.stop()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        last = lines[-1][-TAIL_CHARACTERS:] if lines else "no message"
        return f"the process died ({_end(code)}): {last}"


def _readable(descriptor: int, seconds: float) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        return bool(selector.select(seconds))


def _end(code: int | None) -> str:
    if code is None:
        return "and does not end"
    if code >= 0:
        return f"exit status {code}"
    return f"signal {-code}" + (", out of memory?" if -code == 9 else "")


def serve(answer: Callable[[Any, bytes], Any], kind: Any = dict[str, Any]) -> None:
    """Answer questions from standard input until it ends; the worker's side.

    Whatever else the process prints goes to stderr, so that it cannot be taken for an answer; whatever it starts finds
    nothing to read. An exception becomes an answer with ``error``.
    """
    _die_with_the_caller()
    source, replies = os.fdopen(os.dup(0), "rb", buffering=READ_BYTES), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    while len(header := source.read(HEADER.size)) == HEADER.size:
        size, more = HEADER.unpack(header)
        body, payload = source.read(size), source.read(more)
        if len(payload) < more:
            return
        try:
            reply = Reply(answer(msgspec.msgpack.decode(body, type=kind), payload), peak_bytes=peak_memory())
            _send(replies, reply)
        except Exception as error:
            number = error.errno if isinstance(error, OSError) else None
            _send(replies, Reply(error=_one_line(error), errno=number, peak_bytes=peak_memory()))
        del payload


def _send(out: Any, message: Any, payload: bytes | memoryview = b"") -> None:
    """Write a message, and the bytes that belong to it; numbers of NumPy become Python's."""
    body = msgspec.msgpack.encode(message, enc_hook=methodcaller("item"))
    out.write(HEADER.pack(len(body), len(payload)) + body)
    if payload:
        out.write(payload)
    out.flush()


def peak_memory() -> int:
    """Return the most memory that this process has held, in bytes (0 where the system does not tell)."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _die_with_the_caller() -> None:
    """Have the kernel kill this process with what asks it, however that dies; its process group is another one."""
    if sys.platform == "linux":
        set_death_signal = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()).encode("utf-8", "backslashreplace").decode() or "no message"
    half = TAIL_CHARACTERS // 2
    shown = text if len(text) <= TAIL_CHARACTERS else f"{text[:half]} ... {text[-half:]}"
    return f"{type(error).__name__}: {shown}"
