"""What can be wrong with a GPU's name or description."""

from __future__ import annotations


class HardwareError(ValueError):
    """A GPU cannot be told or described. One line, saying what to give instead."""
