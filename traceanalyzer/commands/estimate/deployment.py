"""What is to be estimated: a model on GPUs in a layout, and how fast its kernels are taken to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from traceanalyzer.commands.estimate.efficiencies import Efficiencies
from traceanalyzer.commands.estimate.estimate_error import EstimateError
from traceanalyzer.commands.estimate.link import Link
from traceanalyzer.hardware import Gpu
from traceanalyzer.model import Architecture, Execution, ExpertRouting, Group, Parallel, Workload

ROUTING_SKEW = 0.69
"""Exponent of the Zipf law that experts are drawn by: 67 of 128 experts were seen at 32 tokens (uniform: 82)."""

CAPTURED = (1, 2, 4, *range(8, 257, 8), *range(272, 513, 16))
"""Batch sizes that vLLM captures graphs for: a decode step runs with the next larger one."""

LONGEST = 10_000_000
"""Tokens of a prompt or an answer beyond which a request is taken for a slip."""

MOST_SEQUENCES = 1_000_000


@dataclass(frozen=True, eq=False)
class Deployment:
    """A model on GPUs.

    Attributes:
        architecture: the model, formats included.
        gpu: the GPU.
        efficiencies: how fast its kernels are.
        parallel: the layout.
        link: what joins the GPUs; None where unknown or not needed.
        routing: how tokens spread over experts.
        execution: how the engine carries the model out.
        graphs: whether decode steps are padded to the captured batch sizes.
        expert_imbalance: load of the busiest expert-parallel rank over the mean; None expects what chance gives.
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
            raise EstimateError(f"{self.architecture.name} has no experts to spread: ep is for mixtures of experts")
        if self.expert_imbalance is not None and not 1 <= self.expert_imbalance < float("inf"):
            raise EstimateError("the load of the busiest expert-parallel rank over the mean is 1 or more")


DEFAULT_BUDGET = 8192
"""max_num_batched_tokens that servers of large GPUs usually run with."""

UTILISATION = 0.9
"""Share of a GPU's memory that vLLM uses by default (gpu_memory_utilization)."""


@dataclass(frozen=True)
class EngineSettings:
    """How the engine is set.

    Attributes:
        budget: max_num_batched_tokens of each data-parallel rank.
        utilisation: share of a GPU's memory that the engine may use.
    """

    budget: int = DEFAULT_BUDGET
    utilisation: float = UTILISATION

    def __post_init__(self) -> None:
        if self.budget < 1:
            raise EstimateError(f"max_num_batched_tokens must be 1 or more, not {self.budget}")


DEFAULT_ENGINE = EngineSettings()


@dataclass(frozen=True)
class Chunk:
    """Part of a prompt: ``tokens`` new ones after ``past`` that are in the cache; ``last`` if an answer follows."""

    tokens: int
    past: int = 0
    last: bool = True


def padded(sequences: int) -> int:
    """Return the captured batch size that a decode step of this many sequences runs with."""
    return next((size for size in CAPTURED if size >= sequences), sequences)


def workload(decodes: int, context: float, chunks: Sequence[Chunk] = (), *, graphs: bool = True) -> Workload:
    """Describe a step: sequences that generate, at a mean context, and parts of prompts.

    Args:
        decodes: sequences that generate one token each.
        context: tokens of each one's context, the new one included.
        chunks: parts of prompts computed in the same step.
        graphs: whether a step without chunks is padded to a captured size.
    """
    groups = []
    if chunks:
        groups.append(prompt_group(chunks))
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


def prompt_group(chunks: Sequence[Chunk]) -> Group:
    """Return the group of sequences that read their prompts."""
    return Group(
        requests=len(chunks),
        tokens=sum(chunk.tokens for chunk in chunks),
        kv_tokens=sum(chunk.tokens + chunk.past for chunk in chunks),
        pairs=sum(chunk.tokens * chunk.past + chunk.tokens * (chunk.tokens + 1) / 2 for chunk in chunks),
        decode=False,
        lengths=tuple((chunk.tokens, chunk.tokens + chunk.past) for chunk in chunks),
    )


def check_lengths(isl: int, osl: int, batch: int) -> None:
    """Refuse lengths and batches that no server sees.

    Raises:
        EstimateError: naming the one that is absurd.
    """
    for name, value, least, most in (
        ("isl", isl, 1, LONGEST),
        ("osl", osl, 1, LONGEST),
        ("batch", batch, 1, MOST_SEQUENCES),
    ):
        if not least <= value <= most:
            raise EstimateError(f"{name} must be {least} to {most:,}, not {value:,}")
