"""The product's fixed words: phases, groupings, roles. Imports nothing."""

from __future__ import annotations

PHASES = ("decode", "prefill", "mixed", "dummy", "unknown")
"""What a step does."""

GROUPINGS = ("kernel", "role", "family")
"""What a row of a ranking is."""
