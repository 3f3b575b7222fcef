"""How much of the machine others used while something was timed."""

from __future__ import annotations

import os
from pathlib import Path

SHARE = 0.05
"""Part of one core, over the whole run, that others may use."""

TICKS = 3
"""Ticks of the kernel's clock that are allowed on top: shares of a short run cannot be told finer."""

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
STAT = Path("/proc/stat")


def busy_s(stat: str | None = None) -> float | None:
    """Return the CPU time that all processes, the kernel and the hypervisor's other guests have used, in s.

    Args:
        stat: text of /proc/stat; read where not given.

    Returns:
        Null where the system does not tell.
    """
    if stat is None:
        if not STAT.exists():
            return None
        stat = STAT.read_text()
    line = next((line for line in stat.splitlines() if line.startswith("cpu ")), None)
    if line is None:
        return None
    user, nice, system, _idle, _iowait, irq, softirq, steal = [int(ticks) for ticks in line.split()[1:9]]
    # Time of guests is already in user and nice.
    return (user + nice + system + irq + softirq + steal) * TICK_S


def others_s(before: float | None, after: float | None, own_s: float) -> float | None:
    """Return the CPU time in s that neither the command nor its observer used; null where it is not known."""
    return None if before is None or after is None else max(0.0, after - before - own_s)


def disturbed(others: float | None, wall_s: float) -> bool:
    """Tell whether others used so much that a wall time is not to be trusted."""
    return others is not None and others > SHARE * wall_s + TICKS * TICK_S


def share(others: float | None, wall_s: float) -> float | None:
    """Return the share of one core that others used; null where it is not known."""
    return None if others is None else others / wall_s
