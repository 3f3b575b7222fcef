"""Which expert gets which row: draws, and the tables that a grouped product reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from traceanalyzer.kernels.problem import Problem

if TYPE_CHECKING:
    import torch

UNIFORM = "uniform"
SKEWED = "skewed"
DRAWS = (UNIFORM, SKEWED)
SKEW = 1.0
"""Exponent of the skewed draw: expert i is drawn in proportion to 1 / (i + 1)^SKEW. Zipf's law; chosen, not fitted."""


@dataclass(frozen=True)
class Routing:
    """Rows sorted by expert.

    Attributes:
        counts: rows of each expert, ``[experts]``.
        offsets: where an expert's rows begin, ``[experts + 1]`` int32.
        gather: the token that a sorted row comes from, ``[m]`` int32.
        scatter: the place ``token * top_k + slot`` that a sorted row's result goes to, ``[m]`` int32.
        weights: what a row's result is multiplied with, ``[m]`` float32.
    """

    counts: torch.Tensor
    offsets: torch.Tensor
    gather: torch.Tensor
    scatter: torch.Tensor
    weights: torch.Tensor


def draw_experts(problem: Problem, draw: str, seed: int) -> torch.Tensor:
    """Return the experts of every token, ``[tokens, top_k]`` int64, without repetition in a row.

    Args:
        draw: ``uniform``, ``skewed`` (Zipf), or rows per expert such as ``3,0,5,...`` (one number per expert).

    Raises:
        ValueError: the draw is unknown, or the counts do not fit the problem.
    """
    import torch

    experts, top_k = _experts_of(problem)
    generator = torch.Generator().manual_seed(seed)
    if draw in DRAWS:
        rank = torch.arange(1, experts + 1, dtype=torch.float64)
        weights = torch.ones(experts, dtype=torch.float64) if draw == UNIFORM else rank**-SKEW
        return torch.multinomial(weights.expand(problem.tokens, experts), top_k, generator=generator)
    return _deal(given_counts(draw, problem), top_k)


def given_counts(text: str, problem: Problem) -> list[int]:
    """Read rows per expert.

    Raises:
        ValueError: it is not one number per expert, or they do not add up to the problem's rows.
    """
    experts, top_k = _experts_of(problem)
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"routing must be {', '.join(DRAWS)} or one number per expert, not {text!r}") from None
    if len(counts) != experts or min(counts) < 0:
        raise ValueError(f"routing names {len(counts)} experts; the problem has {experts}")
    if sum(counts) != problem.m:
        raise ValueError(f"routing adds up to {sum(counts)} rows; the problem has {problem.m}")
    if max(counts) > problem.tokens:
        raise ValueError(f"an expert cannot get {max(counts)} rows: there are {problem.tokens} tokens (top_k {top_k})")
    return counts


def _deal(counts: list[int], top_k: int) -> torch.Tensor:
    """Deal rows to tokens so that no token meets an expert twice: expert after expert, token after token."""
    import torch

    dealt = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    return dealt.reshape(top_k, -1).T.contiguous()


def route(problem: Problem, draw: str, seed: int, device: str) -> Routing:
    """Draw experts and sort the rows by them; on the ``meta`` device only shapes are filled in."""
    import torch

    experts, top_k = _experts_of(problem)
    if device == "meta":
        table = torch.empty(problem.m, dtype=torch.int32, device="meta")
        offsets = torch.empty(experts + 1, dtype=torch.int32, device="meta")
        return Routing(offsets[:-1], offsets, table, table, table.to(torch.float32))
    chosen = draw_experts(problem, draw, seed).reshape(-1)  # [m], place = token * top_k + slot
    order = torch.argsort(chosen, stable=True)
    counts = torch.bincount(chosen, minlength=experts)
    offsets = torch.zeros(experts + 1, dtype=torch.int32)
    offsets[1:] = torch.cumsum(counts, 0)
    generator = torch.Generator().manual_seed(seed + 1)
    weights = torch.softmax(torch.randn(problem.tokens, top_k, generator=generator), -1).reshape(-1)[order]
    return Routing(
        counts=counts.to(torch.int32).to(device),
        offsets=offsets.to(device),
        gather=(order // top_k).to(torch.int32).to(device),
        scatter=order.to(torch.int32).to(device),
        weights=weights.to(torch.float32).to(device),
    )


def tile_bound(rows: int, experts: int, block_m: int) -> int:
    """Return how many row tiles there can be at most, whatever the routing.

    Every expert that is hit wastes at most one partly filled tile.
    """
    hit = min(rows, experts)
    return hit + (rows - hit) // block_m


def tile_tables(problem: Problem, routing: Routing, block_m: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the expert (-1: unused) and the first row within it of every row tile, both ``[tile_bound]`` int32."""
    import torch

    experts, _ = _experts_of(problem)
    bound = tile_bound(problem.m, experts, block_m)
    device = routing.counts.device
    if device.type == "meta":
        table = torch.empty(bound, dtype=torch.int32, device="meta")
        return table, table
    tiles = (routing.counts.to(torch.int64) + block_m - 1) // block_m
    ends = torch.cumsum(tiles, 0)
    place = torch.arange(bound, device=device)
    expert = torch.searchsorted(ends, place, right=True)
    first = place - (ends - tiles)[expert.clamp(max=experts - 1)]
    used = expert < experts
    return (
        torch.where(used, expert, -1).to(torch.int32),
        torch.where(used, first * block_m, 0).to(torch.int32),
    )


def expected_tiles(problem: Problem, block_m: int) -> tuple[float, float]:
    """Return the expected number of experts hit and of row tiles under uniform routing.

    Experts hit: ``E (1 - (1 - k/E)^T)``. An expert's rows are binomial (T trials, probability k/E); the tiles are the
    sum over experts of the expectation of ``ceil(rows / block_m)``.
    """
    from math import comb

    experts, top_k = _experts_of(problem)
    tokens, share = problem.tokens, top_k / experts
    hit = experts * (1 - (1 - share) ** tokens)
    if tokens > 512:  # chosen: the binomial is narrow compared with any block_m, and the mean number of rows decides
        return hit, experts * (problem.m / experts / block_m + 0.5)
    chances = (comb(tokens, rows) * share**rows * (1 - share) ** (tokens - rows) for rows in range(tokens + 1))
    tiles = experts * sum(chance * -(-rows // block_m) for rows, chance in enumerate(chances))
    return hit, tiles


def _experts_of(problem: Problem) -> tuple[int, int]:
    if problem.experts is None or problem.top_k is None:
        raise ValueError("this kernel needs a number of experts and top_k")
    return problem.experts, problem.top_k
