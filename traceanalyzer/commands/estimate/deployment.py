"""What is estimated: a model on GPUs in a layout, with the efficiencies of its kernels, and the work of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from traceanalyzer.commands.estimate.efficiencies import Efficiencies, EstimateError, Link
from traceanalyzer.hardware import Gpu
from traceanalyzer.model import Architecture, Execution, ExpertRouting, Group, Parallel, Workload
from traceanalyzer.model.workload import group_of

ROUTING_SKEW = 0.69
"""Exponent of the Zipf law of expert popularity, fitted to an observed step of 32 tokens that hit 67 of 128 experts
(uniform routing: 82)."""

CAPTURED = (1, 2, 4, *range(8, 257, 8), *range(272, 513, 16))
"""Batch sizes for which vLLM captures CUDA graphs by default; a decode step runs with the next larger one."""

LONGEST = 10_000_000
MOST_SEQUENCES = 1_000_000
"""Longest prompt or answer, in tokens, and largest batch that are not taken for typing errors; chosen, not fitted."""

DEFAULT_BUDGET = 8192
"""Default of vLLM's max_num_batched_tokens for a server on large GPUs."""

UTILISATION = 0.9
"""vLLM's default of gpu_memory_utilization."""


@dataclass(frozen=True, eq=False)
class Deployment:
    """A model on GPUs.

    Attributes:
        architecture: the model, formats included.
        gpu: the GPU.
        efficiencies: how fast its kernels are.
        parallel: the layout.
        link: the connection between the GPUs; None where unknown or not needed.
        routing: how tokens spread over experts.
        execution: how the engine runs the model.
        graphs: whether decode steps are padded to the captured batch sizes.
        expert_imbalance: load of the busiest expert-parallel rank over the mean; None for what chance alone causes.
    """

    architecture: Architecture
    gpu: Gpu
    efficiencies: Efficiencies
    parallel: Parallel = field(default_factory=Parallel)
    link: Link | None = None
    routing: ExpertRouting = field(default_factory=lambda: ExpertRouting(skew=ROUTING_SKEW))
    execution: Execution = field(default_factory=Execution)
    graphs: bool = True
    expert_imbalance: float | None = None

    def __post_init__(self) -> None:
        if self.parallel.ep > 1 and self.architecture.moe is None:
            raise EstimateError(f"{self.architecture.name} has no experts to spread: ep is for MoE models")
        if self.expert_imbalance is not None and not 1 <= self.expert_imbalance < float("inf"):
            raise EstimateError("the load of the busiest expert-parallel rank over the mean is 1 or more")

    def known_link(self, option: str = "--link-gbps") -> Link:
        """Return the link, or raise EstimateError, which names the option that states one."""
        if self.link is None:
            raise EstimateError(f"the bandwidth between GPUs of {self.gpu.name} is unknown: give {option}")
        return self.link


@dataclass(frozen=True)
class EngineSettings:
    """Settings of the engine.

    Attributes:
        budget: max_num_batched_tokens of each data-parallel rank.
        utilisation: gpu_memory_utilization, the share of a GPU's memory that the engine may use.
    """

    budget: int = DEFAULT_BUDGET
    utilisation: float = UTILISATION

    def __post_init__(self) -> None:
        if self.budget < 1:
            raise EstimateError(f"max_num_batched_tokens must be 1 or more, not {self.budget}")


DEFAULT_ENGINE = EngineSettings()


@dataclass(frozen=True)
class Chunk:
    """Part of a prompt: ``tokens`` new ones after ``past`` cached ones; ``last`` if the prompt ends with it."""

    tokens: int
    past: int = 0
    last: bool = True


def padded(sequences: int) -> int:
    """Return the captured batch size for a decode step of this many sequences."""
    return next((size for size in CAPTURED if size >= sequences), sequences)


def workload(decodes: int, context: float, chunks: Sequence[Chunk] = (), *, graphs: bool = True) -> Workload:
    """Describe a step: sequences that generate at a mean context, the new token included, and parts of prompts.

    With ``graphs``, a step without chunks is padded to a captured batch size.
    """
    groups = []
    if chunks:
        groups.append(group_of([(chunk.tokens, chunk.past) for chunk in chunks], decode=False))
    if decodes:
        kv = round(decodes * max(context, 1.0))
        groups.append(Group(decodes, decodes, kv, float(kv), decode=True))
        filler = padded(decodes) - decodes if graphs and not chunks else 0
        if filler:
            groups.append(Group(filler, filler, filler, float(filler), decode=True))
    if not groups:
        raise EstimateError("a step needs at least one sequence")
    sampled = decodes + sum(1 for chunk in chunks if chunk.last)
    return Workload(tuple(groups), sampled, ("from the batch and the lengths asked for",))


def check_lengths(isl: int, osl: int, batch: int) -> None:
    """Raise EstimateError where a length or the batch is absurd."""
    for name, value, most in (("isl", isl, LONGEST), ("osl", osl, LONGEST), ("batch", batch, MOST_SEQUENCES)):
        if not 1 <= value <= most:
            raise EstimateError(f"{name} must be 1 to {most:,}, not {value:,}")
