"""A pass through layers within a step, as several commands show it."""

from __future__ import annotations

from typing import Annotated

from traceanalyzer.declare import Part, told
from traceanalyzer.words import PassKind


class StepPass(Part):
    """A pass through the layers of a model within a step."""

    kind: Annotated[
        PassKind, told("The model's, a draft model's, or that of a part of the batch that runs beside another part.")
    ]
    blocks: Annotated[int, told("Transformer blocks of the pass.")]
    event_sum_us: Annotated[float, told("Sum of the durations of its blocks' kernels, copies and memsets.")]
