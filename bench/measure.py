"""Run a command and measure it: wall time, CPU time, peak memory of its processes together, and what others did."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from bench.disturbance import busy_s, others_s

INTERVAL_S = 0.02


@dataclass(frozen=True)
class Limits:
    """When a command is stopped.

    Attributes:
        seconds: wall time; null for none.
        memory_mb: resident memory of its processes together; null for none.
    """

    seconds: float | None = None
    memory_mb: float | None = None


@dataclass(frozen=True)
class Measurement:
    """What a command took.

    Attributes:
        wall_s: from its start to its end.
        cpu_s: user and system time of all its processes.
        peak_mb: largest sum of their resident sets, looked at 50 times a second; pages that they share count for each.
        status: exit status.
        output: what it printed on stdout.
        errors: what it printed on stderr, its end.
        others_s: CPU time of everybody else on the machine meanwhile; null where it is not known.
        stopped: why it was stopped; null where it ran to its end.
    """

    wall_s: float
    cpu_s: float
    peak_mb: float
    status: int
    output: str
    errors: str = ""
    others_s: float | None = None
    stopped: str | None = None


def measure(command: Sequence[str], environment: dict[str, str], limits: Limits | None = None) -> Measurement:
    """Run a command to its end, or to its limit."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        return _measured(command, environment, limits or Limits(), output, errors)


def _measured(
    command: Sequence[str], environment: dict[str, str], limits: Limits, output: IO[str], errors: IO[str]
) -> Measurement:
    before, own = busy_s(), time.process_time()
    began = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=output, stderr=errors, start_new_session=True)
    root, peak, stopped = psutil.Process(process.pid), 0, None
    cpu: dict[int, float] = {}
    try:
        while True:
            # wait4 reports what the process and the children it waited for used, to the µs.
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            held = _look(root, cpu)
            peak = max(peak, held)
            stopped = stopped or _beyond(limits, time.perf_counter() - began, held)
            if stopped:
                _kill(process.pid)
            time.sleep(INTERVAL_S)
    except BaseException:
        _kill(process.pid)
        raise
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu_s = max(used.ru_utime + used.ru_stime, sum(cpu.values()))
    others = others_s(before, busy_s(), cpu_s + time.process_time() - own)
    return Measurement(
        wall_s=wall,
        cpu_s=cpu_s,
        peak_mb=peak / 1e6,
        status=process.returncode,
        output=_text(output),
        errors=_text(errors)[-2000:],
        others_s=others,
        stopped=stopped,
    )


def _look(root: psutil.Process, cpu: dict[int, float]) -> int:
    """Note the CPU time of each process so far; return the memory in bytes that they hold or one of them held.

    The system's own mark of the highest (not getrusage's, which starts from the parent's) misses no peak between looks.
    """
    held = highest = 0
    for each in _tree(root):
        with suppress(psutil.Error):
            held += each.memory_info().rss
            highest = max(highest, _high_water(each.pid))
            times = each.cpu_times()
            cpu[each.pid] = times.user + times.system
    return max(held, highest)


def _high_water(pid: int) -> int:
    """Return the largest resident set of a process so far, in bytes; 0 where the system does not tell."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def _beyond(limits: Limits, wall_s: float, held: int) -> str | None:
    if limits.seconds is not None and wall_s > limits.seconds:
        return f"stopped after {limits.seconds:g} s"
    if limits.memory_mb is not None and held / 1e6 > limits.memory_mb:
        return f"stopped above {limits.memory_mb:g} MB"
    return None


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _text(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


def _tree(root: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return [root, *root.children(recursive=True)]
    return []
