"""What is tuned, as people write it on a command line: problems, configurations, axes, rows and routings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from traceanalyzer.commands.tune.tile_config import TILE
from traceanalyzer.kernels import HOME, find_kernel
from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.kernels.routing import DRAWS, given_counts
from traceanalyzer.kernels.space import AXES, Pool, SearchSpace
from traceanalyzer.kernels.target import Target

FUSED_MOE = "fused_moe"
KERNELS = (*HOME, FUSED_MOE)

MOST_VALUES = 4096
"""Numbers that one range may hold: a typing error should not become millions of problems. Chosen, not fitted."""

MOST_TOKENS, MOST_N, MOST_K, MOST_EXPERTS, MOST_TOP_K = 4, 64, 128, 4, 2
"""Sizes that Triton's interpreter does in seconds; chosen, not fitted."""


def parse_problem(text: str, named: Mapping[str, Problem], dtype: str | None = None) -> Problem:
    """Read a problem: the name of a known shape, or ``n=5760,k=2880,experts=32,top_k=4`` (m may be left out).

    Without m one token is taken.

    Raises:
        ValueError: it is neither, or a value is out of range.
    """
    if text in named:
        known = named[text]
        return replace(known, dtype=dtype) if dtype else known
    if "=" not in text:
        raise ValueError(f"unknown shape {text!r} (known: {', '.join(named) or 'none'}; or n=...,k=...)")
    values = _numbers(text, ("m", "n", "k", "experts", "top_k"))
    values.setdefault("m", values.get("top_k") or 1)
    return Problem.from_dict({**values, **({"dtype": dtype} if dtype else {})})


def parse_config(text: str) -> Config:
    """Read a configuration: ``16x128x128`` or ``16x128x128x1``, then parameters such as ``,num_warps=8``.

    Raises:
        ValueError: it is not one.
    """
    tile, _, rest = text.partition(",")
    sides = re.fullmatch(r"(\d+)x(\d+)x(\d+)(?:x(\d+))?", tile.strip())
    if not sides:
        raise ValueError(f"a configuration begins with its tile, such as 16x128x128x1, not {tile!r}")
    blocks = dict(zip(TILE, sides.groups(), strict=True))
    values: dict[str, int] = {name: int(value) for name, value in blocks.items() if value is not None}
    return Config.from_dict(values | (_numbers(rest, AXES) if rest else {}))


def parse_axes(texts: Iterable[str]) -> dict[str, tuple[int | None, ...]]:
    """Read axes such as ``block_m=16,32`` (``none`` leaves a value to the compiler).

    Raises:
        ValueError: a name is unknown or a value is not a number.
    """
    axes: dict[str, tuple[int | None, ...]] = {}
    for text in texts:
        name, _, values = text.partition("=")
        if name.strip() not in AXES or not values:
            raise ValueError(f"an axis is written name=value,value with one of {', '.join(AXES)}, not {text!r}")
        axes[name.strip()] = tuple(None if v.strip().lower() == "none" else _number(v) for v in values.split(","))
    return axes


def parse_counts(text: str) -> tuple[int, ...]:
    """Read numbers and ranges such as ``1,2,8-16``.

    Raises:
        ValueError: it is something else, or holds zero.
    """
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        start = _number(first)
        end = _number(last) if dash else start
        if not 1 <= start <= end or end - start > MOST_VALUES:
            raise ValueError(f"{part!r} is not a number of at least 1, nor a range of such")
        numbers += range(start, end + 1)
    return tuple(dict.fromkeys(numbers))


def _numbers(text: str, names: Iterable[str]) -> dict[str, int]:
    known = tuple(names)
    values = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name.strip() not in known:
            raise ValueError(f"unknown key {name.strip()!r} (known: {', '.join(known)})")
        values[name.strip()] = _number(value)
    return values


def _number(text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text.strip()):
        raise ValueError(f"{text.strip()!r} is not a whole number")
    return int(text)


def space_of(kernel: str) -> SearchSpace:
    """Return a kernel's search space; vLLM's fused_moe has one too, though it is not built in."""
    if kernel == FUSED_MOE:
        from traceanalyzer.commands.tune.measure.backends.fused_moe import SPACE

        return SPACE
    return find_kernel(kernel).space


def problems_of(kernel: str, shape: str, dtype: str | None, rows: Sequence[int] | None) -> tuple[Problem, ...]:
    """Return the problem that a shape names, once per number of rows.

    Raises:
        ValueError: there is no such shape, or the kernel cannot do it.
    """
    if kernel == FUSED_MOE:
        problem = parse_problem(shape, space_of(kernel).shapes, dtype)
        if problem.experts is None:
            raise ValueError(f"{FUSED_MOE} needs experts and top_k")
    else:
        spec = find_kernel(kernel)
        problem = parse_problem(shape, spec.space.shapes, dtype or spec.dtypes[0])
        if fault := spec.fault(problem):
            raise ValueError(fault)
    return tuple(problem.with_m(m) for m in rows) if rows else (problem,)


def problems_to_measure(
    kernel: str, shape: str, dtype: str | None, device: str, m_text: str | None, concurrency: str | None
) -> tuple[Problem, ...]:
    """Return the problems of a run, one per number of rows; the interpreter gets tiny ones.

    Raises:
        ValueError: the shape or the rows cannot be used.
    """
    if m_text and concurrency:
        raise ValueError("give --m or --concurrency, not both")
    if device == "interpret" and kernel != FUSED_MOE:
        dtype = find_kernel(kernel).interpreter_dtype
    rows = parse_counts(m_text) if m_text else None
    if concurrency:
        top_k = problems_of(kernel, shape, dtype, None)[0].top_k or 1
        rows = tuple(tokens * top_k for tokens in parse_counts(concurrency))
    problems = problems_of(kernel, shape, dtype, rows)
    return tuple(dict.fromkeys(map(tiny, problems))) if device == "interpret" else problems


def tiny(problem: Problem) -> Problem:
    """Return the problem with every size cut to what the interpreter does in seconds."""
    small = replace(problem, n=min(problem.n, MOST_N), k=min(problem.k, MOST_K))
    if problem.experts is None or problem.top_k is None:
        return small.with_m(min(problem.m, MOST_TOKENS))
    experts, top_k = min(problem.experts, MOST_EXPERTS), min(problem.top_k, MOST_TOP_K)
    return replace(small, experts=experts, top_k=top_k, m=min(problem.tokens, MOST_TOKENS) * top_k)


def routing_draws(problems: Sequence[Problem], routings: Sequence[str]) -> tuple[str | None, ...]:
    """Return the routing draws; a dense product has none.

    Raises:
        ValueError: counts do not fit one of the problems.
    """
    if problems[0].experts is None:
        return (None,)
    for routing in routings:
        if routing not in DRAWS:
            for problem in problems:
                given_counts(routing, problem)
    return tuple(dict.fromkeys(routings))


def candidates_of(
    space: SearchSpace, problem: Problem, target: Target, axis_texts: Sequence[str], config_texts: Sequence[str]
) -> Pool:
    """Return the candidates for a problem: those named, or the space with the axes given.

    Raises:
        ValueError: one cannot be read or cannot be right, or none is left.
    """
    if config_texts:
        configs = tuple(dict.fromkeys(map(parse_config, config_texts)))
        for config in configs:
            if reason := space.impossible(problem, config, target):
                raise ValueError(f"{config.label}: {reason}")
        return Pool(configs)
    pool = space.pool(problem, target, parse_axes(axis_texts))
    if not pool.configs:
        why = "; ".join(f"{value}: {reason}" for value, reason in pool.untried.items())
        raise ValueError(f"no configuration of the axes fits m={problem.m} n={problem.n} k={problem.k} ({why})")
    return pool
