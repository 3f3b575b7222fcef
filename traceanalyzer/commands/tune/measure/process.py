"""A worker process that may crash or hang without taking the caller along.

The worker reads one JSON object a line and answers each with one line. A worker that dies or is late is killed with
whatever it has started (a compiler runs an assembler), and the next question starts a new one.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

TAIL_CHARACTERS = 400

DEATH_WAIT_S = 30
"""How long a killed process is waited for: a driver can hold one that a kernel hangs in."""


class WorkerError(Exception):
    """The worker died, was late, or answered that it failed; the text says which."""


class LateWorkerError(WorkerError):
    """The worker did not answer in time."""


class Worker:
    """One worker process, started on first use.

    Args:
        module: run as ``python -m module``.
        arguments: command-line arguments of the module.
        environment: variables added to this process's own.
    """

    def __init__(
        self, module: str, arguments: Sequence[str] = (), environment: Mapping[str, str] | None = None
    ) -> None:
        self._command = [sys.executable, "-m", module, *arguments]
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        self.starts = 0

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._errors.close()

    @property
    def running(self) -> bool:
        """Whether there is a process that waits for questions."""
        return self._process is not None and self._process.poll() is None

    def ask(self, question: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send a question and return the answer.

        Raises:
            LateWorkerError: the worker was late; it is killed.
            WorkerError: it died, or answered with ``error``.
        """
        process = self._running()
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
            line = self._read_line(process, timeout_s)
        except (BrokenPipeError, EOFError):
            raise WorkerError(self._epitaph()) from None
        except TimeoutError:
            self.stop()
            raise LateWorkerError(f"no answer within {timeout_s:g} s") from None
        except BaseException:
            self.stop()
            raise
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer

    def kill(self) -> None:
        """Kill the process and what it has started, if it runs; who waits for its answer gets a WorkerError."""
        process = self._process
        if process is not None and process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

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
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.stop()
            self._errors.seek(0)
            self._errors.truncate()
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=self._environment,
                bufsize=0,
                start_new_session=True,  # a process group of its own, to be killed as a whole
            )
            self.starts += 1
        return self._process

    @staticmethod
    def _read_line(process: subprocess.Popen[bytes], timeout_s: float) -> bytes:
        assert process.stdout is not None
        deadline = time.monotonic() + timeout_s
        line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError
                part = os.read(process.stdout.fileno(), 1 << 16)
                if not part:
                    raise EOFError
                line += part
        return line

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


def _end(code: int | None) -> str:
    if code is None:
        return "and does not end"
    return f"signal {-code}" if code < 0 else f"exit status {code}"


def serve(answer: Callable[[dict[str, Any]], Mapping[str, Any]]) -> None:
    """Answer questions from stdin until it ends; the worker's side.

    Whatever else the process prints goes to stderr, so that it cannot be taken for an answer. An exception becomes an
    answer with ``error``.
    """
    _die_with_the_caller()
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            reply = dict(answer(json.loads(line)))
        except Exception as error:
            reply = {"error": _one_line(error)}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def _die_with_the_caller() -> None:
    """Have the kernel kill this process with what asks it, however that dies; its process group is another one."""
    if sys.platform == "linux":
        set_death_signal = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or "no message"
    half = TAIL_CHARACTERS // 2
    shown = text if len(text) <= TAIL_CHARACTERS else f"{text[:half]} ... {text[-half:]}"
    return f"{type(error).__name__}: {shown}"
