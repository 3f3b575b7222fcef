"""What can be wrong with a GPU's name or description."""

from __future__ import annotations


class HardwareError(ValueError):
    """A GPU is unknown or badly described; one line that says what to give instead."""
