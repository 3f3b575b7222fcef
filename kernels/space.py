"""The configurations a kernel may be given: axes, what rules combinations out, and shapes worth tuning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.kernels.target import Target

AMD_ONLY = ("waves_per_eu", "matrix_instr_nonkdim")
AXES = tuple(field.name for field in fields(Config))


@dataclass(frozen=True)
class Constraint:
    """One rule that a configuration must keep.

    Attributes:
        reason: what is wrong with a configuration that breaks it, in words.
        holds: whether the configuration keeps it, for this problem and target.
    """

    reason: str
    holds: Callable[[Problem, Config, Target], bool]


@dataclass(frozen=True)
class SearchSpace:
    """Every configuration of a kernel that is worth trying.

    Attributes:
        axes: parameter name -> values; parameters not named keep Config's default.
        constraints: what rules combinations out.
        shapes: problems worth tuning, named.
    """

    axes: Mapping[str, tuple[int | None, ...]]
    constraints: tuple[Constraint, ...]
    shapes: Mapping[str, Problem]

    def configs(
        self, problem: Problem, target: Target, axes: Mapping[str, Sequence[int | None]] | None = None
    ) -> tuple[Config, ...]:
        """Return the configurations that keep every constraint, in the order of the axes.

        Args:
            problem: what is multiplied.
            target: where; AMD's own axes are left out on NVIDIA.
            axes: values that replace this space's own.

        Raises:
            ValueError: an axis is unknown or a value is out of range.
        """
        chosen: dict[str, Sequence[Any]] = {**self.axes, **(axes or {})}
        unknown = sorted(set(chosen) - set(AXES))
        if unknown:
            raise ValueError(f"unknown parameter {unknown[0]!r} (known: {', '.join(AXES)})")
        if target.vendor != "amd":
            chosen = {name: values for name, values in chosen.items() if name not in AMD_ONLY}
        points = (Config(**dict(zip(chosen, values, strict=True))) for values in product(*chosen.values()))
        return tuple(dict.fromkeys(point for point in points if self.broken(problem, point, target) is None))

    def broken(self, problem: Problem, config: Config, target: Target) -> str | None:
        """Return why the configuration is not worth trying, or null."""
        for constraint in self.constraints:
            if not constraint.holds(problem, config, target):
                return constraint.reason
        return None


def _tile_rows(problem: Problem) -> int:
    """The most rows that one tile can be filled with: a power of two, at least the matrix unit's 16."""
    return max(16, 1 << (problem.m - 1).bit_length())


COMMON_CONSTRAINTS = (
    Constraint("block_m is larger than the rows there are", lambda p, c, t: c.block_m <= _tile_rows(p)),
    Constraint("block_n is larger than n", lambda p, c, t: c.block_n <= max(16, 1 << (p.n - 1).bit_length())),
    Constraint("block_k is larger than k", lambda p, c, t: c.block_k <= max(16, 1 << (p.k - 1).bit_length())),
    Constraint(
        "split_k leaves a program nothing to reduce",
        lambda p, c, t: c.split_k == 1 or c.split_k <= -(-p.k // c.block_k),
    ),
    Constraint(
        "the accumulator alone needs more than 256 registers a thread",
        lambda p, c, t: c.block_m * c.block_n <= 256 * c.num_warps * t.warp_size,
    ),
    Constraint(
        "there are more threads than elements of the tile",
        lambda p, c, t: c.block_m * c.block_n >= c.num_warps * t.warp_size,
    ),
    Constraint(
        "group_m orders row tiles, and there is only one",
        lambda p, c, t: c.group_m == 1 or p.m > c.block_m or p.experts is not None,
    ),
)
