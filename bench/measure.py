"""Run a command and measure it: wall time, CPU time, and the peak memory of its processes together."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import psutil

INTERVAL_S = 0.02


@dataclass(frozen=True)
class Measurement:
    """What a command took.

    Attributes:
        wall_s: from its start to its end.
        cpu_s: user and system time of all its processes.
        peak_mb: largest sum of their resident sets, looked at 50 times a second.
        status: exit status.
        output: what it printed.
    """

    wall_s: float
    cpu_s: float
    peak_mb: float
    status: int
    output: str


def measure(command: Sequence[str], environment: dict[str, str]) -> Measurement:
    """Run a command to its end."""
    began = time.perf_counter()
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        root, peak = psutil.Process(process.pid), 0
        cpu: dict[int, float] = {}
        while process.poll() is None:
            held = 0
            for each in _tree(root):
                with suppress(psutil.Error):
                    held += each.memory_info().rss
                    times = each.cpu_times()
                    cpu[each.pid] = times.user + times.system
            peak = max(peak, held)
            time.sleep(INTERVAL_S)
        wall = time.perf_counter() - began
        output = process.stdout.read() if process.stdout else ""
    return Measurement(wall, sum(cpu.values()), peak / 1e6, process.returncode, output)


def _tree(root: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return [root, *root.children(recursive=True)]
    return []
