"""The configurations a kernel may be given: axes, what rules combinations out, and shapes worth tuning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import product
from typing import Any

from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.kernels.target import Target

AXES = tuple(field.name for field in fields(Config))


@dataclass(frozen=True)
class Constraint:
    """One rule that a configuration must keep.

    Attributes:
        reason: what is wrong with a configuration that breaks it, in words.
        holds: whether the configuration keeps it, for this problem and target.
        bounds: the parameter that the rule keeps to values usually worth trying; values named for it are all tried.
            ``None``: the rule always counts.
        required: a configuration that breaks it does not compile or computes something wrong.
    """

    reason: str
    holds: Callable[[Problem, Config, Target], bool]
    bounds: str | None = None
    required: bool = False


@dataclass(frozen=True)
class Pool:
    """The candidates for one problem.

    Attributes:
        configs: in the order of the axes.
        named: parameters that somebody gave values for.
        untried: of these values those that no candidate has, such as ``group_m=8``, and why.
    """

    configs: tuple[Config, ...]
    named: tuple[str, ...] = ()
    untried: Mapping[str, str] = field(default_factory=dict)


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

    def configs(self, problem: Problem, target: Target) -> tuple[Config, ...]:
        """Return the configurations that keep every constraint, in the order of the axes."""
        return self.pool(problem, target).configs

    def pool(self, problem: Problem, target: Target, named: Mapping[str, Sequence[int | None]] | None = None) -> Pool:
        """Return the candidates for a problem.

        Args:
            named: values that replace this space's own. They are tried even where this space would not, unless a
                constraint that always counts rules them out.

        Raises:
            ValueError: an axis is unknown or a value is out of range.
        """
        axes: dict[str, Sequence[Any]] = {**self.axes, **(named or {})}
        unknown = sorted(set(axes) - set(AXES))
        if unknown:
            raise ValueError(f"unknown parameter {unknown[0]!r} (known: {', '.join(AXES)})")
        own = tuple(named or ())
        kept: dict[Config, None] = {}
        out: dict[tuple[str, int | None], Counter[str]] = {}
        for values in product(*axes.values()):
            config = Config(**dict(zip(axes, values, strict=True)))
            reasons = list(self._broken(problem, config, target, own))
            if not reasons:
                kept[config] = None
            for name in own if reasons else ():
                out.setdefault((name, getattr(config, name)), Counter()).update(reasons)
        tried = {(name, getattr(config, name)) for config in kept for name in own}
        untried = {
            f"{name}={'none' if value is None else value}": against.most_common(1)[0][0]
            for (name, value), against in out.items()
            if (name, value) not in tried
        }
        return Pool(tuple(kept), own, untried)

    def _broken(self, problem: Problem, config: Config, target: Target, named: Collection[str]) -> Iterator[str]:
        """What speaks against a configuration; ``named`` parameters may have any value."""
        for constraint in self.constraints:
            if constraint.bounds not in named and not constraint.holds(problem, config, target):
                yield constraint.reason

    def impossible(self, problem: Problem, config: Config, target: Target) -> str | None:
        """Return why a configuration cannot be right at all, if it cannot."""
        required = (constraint for constraint in self.constraints if constraint.required)
        return next((rule.reason for rule in required if not rule.holds(problem, config, target)), None)


def _up_to_power(size: int) -> int:
    """The largest side of a tile that the size can fill: a power of two, at least the matrix unit's 16."""
    return max(16, 1 << (size - 1).bit_length())


COMMON_CONSTRAINTS = (
    Constraint(
        "block_m is larger than the rows there are", lambda p, c, t: c.block_m <= _up_to_power(p.m), bounds="block_m"
    ),
    Constraint("block_n is larger than n", lambda p, c, t: c.block_n <= _up_to_power(p.n), bounds="block_n"),
    Constraint("block_k is larger than k", lambda p, c, t: c.block_k <= _up_to_power(p.k), bounds="block_k"),
    Constraint(
        "split_k leaves a program nothing to reduce",
        lambda p, c, t: c.split_k == 1 or c.split_k <= -(-p.k // c.block_k),
        bounds="split_k",
    ),
    Constraint(
        "the accumulator alone needs more than 256 registers per thread",
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
    Constraint(
        "waves_per_eu and matrix_instr_nonkdim mean something to AMD's compiler only",
        lambda p, c, t: t.vendor != "nvidia" or (c.waves_per_eu is None and c.matrix_instr_nonkdim is None),
        required=True,
    ),
)
