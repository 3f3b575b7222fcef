"""What can be wrong with a request for an estimate."""

from __future__ import annotations


class EstimateError(ValueError):
    """An estimate cannot be made. One line, saying what to give instead."""
