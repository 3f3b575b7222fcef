"""Building distributions of a source tree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def build(kind: str, source: Path, folder: Path) -> Path:
    """Build a ``wheel`` or an ``sdist`` of a source tree with the build backend of this environment."""
    code = f"import sys; from hatchling.build import build_{kind} as build; print(build(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], cwd=source, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.split()[-1]
