"""How a kernel is described to the tuner: cases with data, and launches to run or compile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.kernels.routing import UNIFORM, Routing
from traceanalyzer.kernels.space import SearchSpace
from traceanalyzer.kernels.target import Target
from traceanalyzer.kernels.traffic import MemoryTraffic

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Case:
    """A problem with its tensors.

    Attributes:
        problem: what is multiplied.
        target: where.
        tensors: by name; on the ``meta`` device they have shapes only, which is enough to compile.
        routing: how the rows fall on the experts; ``None`` for a dense product.
    """

    problem: Problem
    target: Target
    tensors: Mapping[str, torch.Tensor]
    routing: Routing | None = None


@dataclass(frozen=True)
class Launch:
    """One kernel launch, ready to run or to compile.

    Attributes:
        kernel: the ``triton.jit`` function.
        grid: programs in each direction.
        args: tensors and integers passed at run time, by parameter name and in the kernel's order.
        constants: the kernel's ``constexpr`` parameters.
        options: the compiler's (num_warps, num_stages, ...).
    """

    kernel: Any
    grid: tuple[int, int, int]
    args: Mapping[str, Any]
    constants: Mapping[str, Any]
    options: Mapping[str, int]

    def __call__(self) -> None:
        """Run it."""
        self.kernel[self.grid](**self.args, **self.constants, **self.options)


@dataclass(frozen=True)
class Prepared:
    """Everything one call of the operation launches, in order; the first launch is the product itself.

    Attributes:
        launches: the product, then what finishes it (sum over split_k, over a token's experts).
        output: the tensor that holds the result afterwards.
    """

    launches: tuple[Launch, ...]
    output: torch.Tensor

    def __call__(self) -> None:
        """Run every launch."""
        for launch in self.launches:
            launch()


@dataclass(frozen=True)
class KernelSpec:
    """A kernel with everything that tuning needs.

    Attributes:
        name: as sweep files and the command line write it.
        summary: one line for people.
        dtypes: activation types it takes; the first is the default.
        interpreter_dtype: the type it is right with in Triton's interpreter (bf16 products are silently wrong there).
        space: what to try.
        make_case: (problem, target, device, seed, routing) -> data.
        prepare: (case, config) -> launches.
        reference: case -> the right result in float64, computed with torch alone.
        traffic: (problem, config) -> what is moved.
        tolerance: largest permitted error relative to the largest absolute value of the reference.
        grouped: whether the rows are spread over experts.
        k_step: k must be a multiple of this.
        n_step: n must be a multiple of this.
    """

    name: str
    summary: str
    dtypes: tuple[str, ...]
    interpreter_dtype: str
    space: SearchSpace
    make_case: Callable[[Problem, Target, str, int, str], Case]
    prepare: Callable[[Case, Config], Prepared]
    reference: Callable[[Case], torch.Tensor]
    traffic: Callable[[Problem, Config], MemoryTraffic]
    tolerance: float
    grouped: bool = False
    k_step: int = 1
    n_step: int = 1

    def fault(self, problem: Problem) -> str | None:
        """Return why this kernel cannot do a problem, if it cannot."""
        if problem.dtype not in self.dtypes:
            return f"{self.name} takes {', '.join(self.dtypes)}, not {problem.dtype}"
        if self.grouped and problem.experts is None:
            return f"{self.name} needs experts and top_k"
        if not self.grouped and problem.experts is not None:
            return f"{self.name} is a dense product; experts and top_k do not apply"
        if problem.k % self.k_step or problem.n % self.n_step:
            return f"{self.name} needs k in multiples of {self.k_step} and n of {self.n_step}"
        return None

    def compile_case(self, problem: Problem, target: Target) -> Case:
        """Return a case without data, good for compiling only."""
        return self.make_case(problem, target, "meta", 0, UNIFORM)


def scheduled(output: torch.Tensor, *launches: Launch | None) -> Prepared:
    """Return the launches that are there, in order."""
    return Prepared(tuple(launch for launch in launches if launch is not None), output)
