"""What every analysis says in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from traceanalyzer.declare import Part, told

LEAST_SHARE = 0.01
"""Share of the kernel time from which on a kernel is worth a sentence."""

NAME_WIDTH = 72
"""Characters of a kernel's name in a sentence."""


@dataclass(frozen=True)
class Finding:
    """Something to act on.

    Attributes:
        code: a stable identifier.
        message: a sentence or two for a person, with what the statement rests on.
        worth_ns: time a step that could be won at most; null where that is unknown.
    """

    code: str
    message: str
    worth_ns: float | None


class FindingEntry(Part):
    """Something to act on."""

    code: Annotated[str, told("Stable identifier; see warnings.md.")]
    message: Annotated[str, told("A sentence or two for a person, with what it rests on.")]
    worth_us: Annotated[float | None, told("Time per step that could be saved at most.", null="unknown")]
