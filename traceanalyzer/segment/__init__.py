"""Frames to steps, phases, blocks and roles."""

from traceanalyzer.segment.segmentation import segment
from traceanalyzer.segment.segmentation_result import BLOCK_SCHEMA, PLACEMENT_SCHEMA, STEP_SCHEMA, Segmentation

__all__ = ["BLOCK_SCHEMA", "PLACEMENT_SCHEMA", "STEP_SCHEMA", "Segmentation", "segment"]
