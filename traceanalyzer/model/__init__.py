"""An LLM's architecture and workload -> FLOP and bytes of every op, per layer."""

from traceanalyzer.model.architecture import Architecture, Layer, ModelError, with_formats
from traceanalyzer.model.config import architecture_of, read_config
from traceanalyzer.model.expert_routing import ExpertRouting, expected_distinct
from traceanalyzer.model.formats import FORMATS, Format, format_named
from traceanalyzer.model.known import known_names, load, named
from traceanalyzer.model.model_step import Execution, Step
from traceanalyzer.model.op import Op, gemm, total
from traceanalyzer.model.ops import counted_ops, ops, rope_table_cast
from traceanalyzer.model.parameters import kv_bytes, kv_bytes_per_token, parameters, state_bytes
from traceanalyzer.model.recognise_model import Candidate, TraceFacts, candidates, recognise_model
from traceanalyzer.model.workload import Group, Parallel, Workload, decode_step, from_lengths, from_marker, from_sums

__all__ = [
    "FORMATS",
    "Architecture",
    "Candidate",
    "Execution",
    "ExpertRouting",
    "Format",
    "Group",
    "Layer",
    "ModelError",
    "Op",
    "Parallel",
    "Step",
    "TraceFacts",
    "Workload",
    "architecture_of",
    "candidates",
    "counted_ops",
    "decode_step",
    "expected_distinct",
    "format_named",
    "from_lengths",
    "from_marker",
    "from_sums",
    "gemm",
    "known_names",
    "kv_bytes",
    "kv_bytes_per_token",
    "load",
    "named",
    "ops",
    "parameters",
    "read_config",
    "recognise_model",
    "rope_table_cast",
    "state_bytes",
    "total",
    "with_formats",
]
