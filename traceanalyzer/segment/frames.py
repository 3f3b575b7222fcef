"""The two frames that segmentation is asked for most."""

from __future__ import annotations

import polars as pl

from traceanalyzer.segment import segment
from traceanalyzer.trace import Trace


def steps(trace: Trace) -> pl.DataFrame:
    """Return a trace's steps: columns of ``segment.STEP_SCHEMA``, times in ns, ordered by device and step."""
    return segment(trace).steps


def blocks(trace: Trace) -> pl.DataFrame:
    """Return a trace's transformer blocks: columns of ``segment.BLOCK_SCHEMA``, ordered by device, step and block."""
    return segment(trace).blocks
