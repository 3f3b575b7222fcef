"""The benchmarks are no part of the package: their tests run where the working copy is."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

if (ROOT / "bench" / "results.py").exists():
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
else:
    collect_ignore_glob = ["test_*.py"]
