"""LLM inference performance model: TTFT, TPOT, tokens/s, the largest batch under limits, GPUs and layouts compared."""

from traceanalyzer.estimate.calibrate import Calibration, Observation, from_serving, from_trace
from traceanalyzer.estimate.compare import Shortcut, amdahl, shortcut
from traceanalyzer.estimate.deployment import ROUTING_SKEW, Chunk, Deployment
from traceanalyzer.estimate.efficiencies import ROOFLINE, Efficiencies, Share, default_efficiencies
from traceanalyzer.estimate.errors import EstimateError
from traceanalyzer.estimate.estimate import Estimate, estimate, mean_context, step_over_batches, switches
from traceanalyzer.estimate.link import Link, default_link, measured_link
from traceanalyzer.estimate.memory import Memory, layout_name, memory, refuse_unfit
from traceanalyzer.estimate.parallel import LayoutComparison, compare_layouts, layout, parse_layouts
from traceanalyzer.estimate.schedule import Served, Traffic, burst, steady
from traceanalyzer.estimate.slo import PRESETS, Slo, largest_batch, parse_slo
from traceanalyzer.estimate.step import StepTimes, op_times, round_time
from traceanalyzer.estimate.times import OpTime, compute_bound_share, total_ns

__all__ = [
    "PRESETS",
    "ROOFLINE",
    "ROUTING_SKEW",
    "Calibration",
    "Chunk",
    "Deployment",
    "Efficiencies",
    "Estimate",
    "EstimateError",
    "LayoutComparison",
    "Link",
    "Memory",
    "Observation",
    "OpTime",
    "Served",
    "Share",
    "Shortcut",
    "Slo",
    "StepTimes",
    "Traffic",
    "amdahl",
    "burst",
    "compare_layouts",
    "compute_bound_share",
    "default_efficiencies",
    "default_link",
    "estimate",
    "from_serving",
    "from_trace",
    "largest_batch",
    "layout",
    "layout_name",
    "mean_context",
    "measured_link",
    "memory",
    "op_times",
    "parse_layouts",
    "parse_slo",
    "refuse_unfit",
    "round_time",
    "shortcut",
    "steady",
    "step_over_batches",
    "switches",
    "total_ns",
]
