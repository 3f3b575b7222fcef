"""Whether a kernel's name says that it runs in the forward or the backward pass."""

from __future__ import annotations

import re
from typing import Literal

Direction = Literal["forward", "backward"]

LOOKED_AT = 6000
"""Characters of a name that are looked at: the function of a loop stands in its template arguments."""
_BACKWARD = ("backward", "bwd", "grad", "wrw", "bprop", "_bw_", "_back_", "_back<", "_back(")
_NO_GRADIENT = re.compile(r"upgrad|degrad|no_?grad|grad_?scaler")
_FORWARD = ("forward", "fwd", "fprop", "_fw_")


def direction(lower: str) -> Direction | None:
    """Return the direction that a name in lower case tells; ``None`` where it does not, as with most products."""
    head = lower[:LOOKED_AT]
    if any(mark in head for mark in _BACKWARD) and _NO_GRADIENT.search(head) is None:
        return "backward"
    return "forward" if any(mark in head for mark in _FORWARD) else None
