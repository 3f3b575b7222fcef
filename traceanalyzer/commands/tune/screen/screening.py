"""What the commands that screen candidates share: for which GPU, how many to compile, and compiling them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from traceanalyzer.cli.common import tell
from traceanalyzer.cli.request_options import given_gpu
from traceanalyzer.commands.tune.compile import screen
from traceanalyzer.commands.tune.compile.candidate_order import preselect
from traceanalyzer.commands.tune.compile.device import Device, device_of, device_of_name
from traceanalyzer.commands.tune.compile.screen import Compiling, rank_candidates
from traceanalyzer.commands.tune.measure.result import TunedProblem
from traceanalyzer.commands.tune.options import progress
from traceanalyzer.commands.tune.screen.result import TuneScreenDocument, UntriedValue
from traceanalyzer.declare import part_of
from traceanalyzer.kernels.launch import KernelSpec
from traceanalyzer.kernels.problem import Problem
from traceanalyzer.kernels.space import Pool
from traceanalyzer.kernels.target import Target


@dataclass(frozen=True)
class Screening:
    """How to screen.

    Attributes:
        most: candidates to compile; 0 compiles all.
        jobs: compiling processes.
        timeout_s: for one candidate.
        no_cache: whether to leave the cache of compiled candidates alone.
        gpu: name of the GPU whose figures count, if the user names one.
        gpu_file: file that describes more GPUs.
    """

    most: int
    jobs: int
    timeout_s: float
    no_cache: bool
    gpu: str | None
    gpu_file: Path | None

    def device(self, target: Target | None, local: str | None = None) -> Device:
        """Return the figures of the GPU named, else of the local one by its driver's name, else of any of the target.

        Raises:
            ValueError: there is none, it is of another architecture, or its figures are not known.
            click.UsageError: the GPU named is not known.
        """
        named = given_gpu(self.gpu, self.gpu_file)
        if named is None and target is not None and local is not None:
            return device_of_name(target, local)
        return device_of(target, named)

    def screen(self, spec: KernelSpec, problem: Problem, device: Device, pool: Pool) -> TuneScreenDocument:
        """Compile the most promising candidates and rank them."""
        configs = preselect(problem, pool.configs, spec.traffic, device, self.most or len(pool.configs), pool.named)
        cache = None if self.no_cache else compile_cache()
        with progress("compiling") as advance:
            how = Compiling(self.jobs, self.timeout_s, cache, lambda done, total: advance("compiling", done, total))
            compiled = screen.compile_all(spec.name, problem, device.target, configs, how)
        return TuneScreenDocument(
            target_arch=device.target.name,
            gpu=device.name,
            kernel=spec.name,
            problem=part_of(TunedProblem, problem),
            not_compiled=len(pool.configs) - len(configs),
            not_tried=[UntriedValue(value=value, reason=reason) for value, reason in pool.untried.items()],
            candidates=rank_candidates(spec, problem, device, compiled),
        )


def tell_untried(pools: Iterable[Pool]) -> None:
    """Say on stderr which of the values that the user named no candidate has."""
    lines = (f"{value} is not tried: {reason}" for pool in pools for value, reason in pool.untried.items())
    for line in dict.fromkeys(lines):
        tell(line)


def compile_cache() -> Path:
    """Return the directory of what was compiled before."""
    from platformdirs import user_cache_path

    return user_cache_path("traceanalyzer") / "compiled"
