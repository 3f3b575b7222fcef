"""Whether a kernel's name says that it runs in the forward or the backward pass."""

from __future__ import annotations

import re
from typing import Literal

Direction = Literal["forward", "backward"]

LOOKED_AT = 6000
"""Characters of a name that are looked at: the function of a loop stands in its template arguments."""
_NO_GRADIENT = re.compile(r"upgrad|degrad|no_?grad|grad_?scaler")


def direction(lower: str) -> Direction | None:
    """Return the direction that a name in lower case tells; ``None`` where it does not, as with most products."""
    head = lower[:LOOKED_AT]
    if _is_backward(head) and _NO_GRADIENT.search(head) is None:
        return "backward"
    return "forward" if "forward" in head or "fwd" in head or "fprop" in head or "_fw_" in head else None


def _is_backward(head: str) -> bool:
    # Written out: a loop over the marks takes five times as long, and every name goes through here.
    return (
        "bwd" in head
        or "grad" in head
        or "backward" in head
        or "bprop" in head
        or "wrw" in head
        or "_bw_" in head
        or ("_back" in head and ("_back_" in head or "_back<" in head or "_back(" in head))
    )
