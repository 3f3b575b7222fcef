"""Frames to steps, phases, blocks and roles."""

from traceanalyzer.segment.result import BLOCK_SCHEMA, PLACEMENT_SCHEMA, STEP_SCHEMA, Segmentation
from traceanalyzer.segment.segmentation import segment

__all__ = ["BLOCK_SCHEMA", "PLACEMENT_SCHEMA", "STEP_SCHEMA", "Segmentation", "segment"]
