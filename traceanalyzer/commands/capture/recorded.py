"""What a capture recorded of the batch that was asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from traceanalyzer.problems import TraceWarning
from traceanalyzer.segment import segment
from traceanalyzer.trace import Trace


@dataclass(frozen=True)
class Recorded:
    """Complete decode steps, of the trace that has the fewest of the batch asked for.

    Attributes:
        decode_steps: how many.
        of_batch: those with as many requests as were sent at once.
        batches: decode steps by their number of requests; None is a step that does not state it.
    """

    decode_steps: int
    of_batch: int
    batches: dict[int | None, int]


def decode_steps(traces: Iterable[Trace], concurrency: int) -> Recorded:
    """Count the decode steps of each rank; the rank with the fewest of the asked batch counts."""
    ranks = [_of_rank(trace, concurrency) for trace in traces]
    return min(ranks, key=lambda recorded: recorded.of_batch, default=Recorded(0, 0, {}))


def shortfall(recorded: Recorded, concurrency: int) -> TraceWarning | None:
    """Say why the trace lacks decode steps of the batch asked for; None when it has some."""
    if recorded.of_batch:
        return None
    if not recorded.decode_steps:
        message = "no complete decode step was recorded"
    elif set(recorded.batches) == {None}:
        message = "the steps do not state their batch sizes (older versions do not mark steps)"
    else:
        known = sorted((batch, steps) for batch, steps in recorded.batches.items() if batch)
        batches = ", ".join(f"{steps} of batch {batch}" for batch, steps in known)
        message = (
            f"no decode step of batch {concurrency} was recorded, but {batches}; raise --output-tokens, or the "
            "server's limits (--max-num-seqs, KV cache) are below the batch, or data-parallel ranks share it"
        )
    return TraceWarning("batch_not_reached", message)


def _of_rank(trace: Trace, concurrency: int) -> Recorded:
    steps = segment(trace).steps.filter("complete", pl.col("phase") == "decode")
    batches: Counter[int | None] = Counter(steps["requests"].to_list())
    return Recorded(steps.height, batches[concurrency], dict(batches))
