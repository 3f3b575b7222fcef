"""Where things lie."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
CASES = DATA / "cases"
SWEEPS = DATA / "sweeps"
TRACES = DATA / "traces"
"""Recorded with vLLM on CPUs."""
REPORTS = DATA / "reports"
"""What users reported, as small files; /traces and /suites."""
SERVING = DATA / "serving"
FACTS = DATA / "facts"
MODELS = DATA / "models"
SHARED = ROOT.parent / "shared"
"""Recordings of others, read from beside the repository where they are."""
