"""What must be known of a machine to read a time: written into every result."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("traceanalyzer", "polars", "msgspec", "isal", "numpy", "pandas")


def machine(folder: Path) -> dict[str, Any]:
    """Describe the machine: processor, cores, memory, system, load, and the file system of a folder.

    No host name and no path.
    """
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "file_system": _file_system(folder),
        "load_1min": round(os.getloadavg()[0], 2),
    }


def versions(packages: Iterable[str] = ()) -> dict[str, str]:
    """Return the versions of Python and of the distributions, those left out that are not installed."""
    found = {"Python": platform.python_version()}
    for package in dict.fromkeys((*PACKAGES, *packages)):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def commit() -> str | None:
    """Return the commit of the working copy, ``+`` behind it when tracked files differ; null outside of one."""
    short = _git("rev-parse", "--short=10", "HEAD")
    if short is None:
        return None
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", "traceanalyzer", "bench/*.py")
    return f"{short}+" if changed else short


def today() -> str:
    """Return the date, UTC."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _cpu_model() -> str | None:
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor() or None
    named = (line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name"))
    return next(named, None)


def _file_system(folder: Path) -> str | None:
    """Return the type of the file system that holds a folder: the mount point that is its longest prefix."""
    here = folder.resolve()
    holding = [part for part in psutil.disk_partitions(all=True) if here.is_relative_to(part.mountpoint)]
    return max(holding, key=lambda part: len(part.mountpoint)).fstype if holding else None
