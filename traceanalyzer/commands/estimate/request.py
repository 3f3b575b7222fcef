"""What can be asked of an estimate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from traceanalyzer.commands.estimate.deployment import DEFAULT_ENGINE, Deployment, EngineSettings
from traceanalyzer.commands.estimate.slo import Slo
from traceanalyzer.hardware import Gpu
from traceanalyzer.model import ExpertRouting, Parallel
from traceanalyzer.serving.serving_result import ServingResult
from traceanalyzer.trace import Trace


@dataclass(frozen=True)
class SecondGpu:
    """The same deployment on another GPU.

    Attributes:
        gpu: the GPU.
        shares: compute-bound shares for the shortcut, under ``decode`` and ``prefill``; the model's by default.
        measured_tokens_per_s: output measured on the first GPU; None takes the estimate.
    """

    gpu: Gpu
    shares: Mapping[str, float] = field(default_factory=dict)
    measured_tokens_per_s: float | None = None


@dataclass(frozen=True)
class ServingRuns:
    """Serving results to calibrate with.

    Attributes:
        results: runs of one configuration.
        osl: tokens of an answer where the results do not tell; None takes them from tokens/s.
    """

    results: tuple[ServingResult, ...]
    osl: int | None = None


@dataclass(frozen=True)
class FasterHotspots:
    """A trace whose hotspots get faster.

    Attributes:
        trace: the trace.
        to_share: such as ``moe_down=0.6`` of its roof.
        changes: such as ``moe_down=156.7:60.2``, measured before and after.
        routing: how tokens spread over experts in it.
    """

    trace: Trace
    to_share: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    routing: ExpertRouting = field(default_factory=ExpertRouting)


@dataclass(frozen=True)
class EstimateRequest:
    """Everything that one call of ``answer`` is to estimate.

    Attributes:
        deployment: the model on its GPUs.
        isl: tokens of a prompt.
        osl: tokens of an answer.
        batches: requests in flight; by default the largest within ``slo``, or 1.
        slo: limits that the largest batch is searched for.
        engine: tokens per step, and memory that may be used.
        must_fit: whether a layout that cannot hold the weights is an error.
        second: another GPU to compare with.
        layouts: layouts to compare; the deployment's own counts only where it is more than one GPU.
        links: bandwidths of the link to compare them at, GB/s; the range of such links by default.
        calibrate_with: a trace or serving results that efficiencies are taken from; the defaults without.
        faster: a trace whose hotspots get faster.
    """

    deployment: Deployment
    isl: int = 1024
    osl: int = 1024
    batches: tuple[int, ...] = ()
    slo: Slo | None = None
    engine: EngineSettings = DEFAULT_ENGINE
    must_fit: bool = False
    second: SecondGpu | None = None
    layouts: tuple[Parallel, ...] = ()
    links: tuple[float, ...] = ()
    calibrate_with: Trace | ServingRuns | None = None
    faster: FasterHotspots | None = None
