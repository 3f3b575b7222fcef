"""What every analysis says in words."""

from __future__ import annotations

from typing import Annotated

from traceanalyzer.declare import Part, told

LEAST_SHARE = 0.01
"""Share of the kernel time from which on a kernel is worth a sentence. Chosen, not fitted."""

NAME_WIDTH = 72
"""Characters of a kernel's name in a sentence."""

NO_TARGET = "No recommendation:"
"""How a finding starts that stands where the target would, because the target is unknown."""

DOUBTFUL_NAMES = (
    "the profiler joined names and times of a graph launch out of order (warning doubtful_names), so which kernel took "
    "how long is not certain"
)
"""Why nothing is said by name where ``Trace.names_doubtful``."""


class Finding(Part, kw_only=False):
    """Something to act on."""

    code: Annotated[str, told("Stable identifier; see warnings.md.")]
    message: Annotated[str, told("A sentence or two for a person, with what it rests on.")]
    worth_us: Annotated[float | None, told("Time per step that could be saved at most.", null="unknown")] = None
