"""What a launch moves and repeats, from the problem and the tile alone."""

from __future__ import annotations

from dataclasses import dataclass

from traceanalyzer.kernels.problem import ELEMENT_BYTES, Config, Problem
from traceanalyzer.kernels.routing import expected_tiles


@dataclass(frozen=True)
class MemoryTraffic:
    """What one launch moves and repeats.

    Attributes:
        programs: programs of the product's launch that have work.
        iterations: steps of the reduction in one program.
        step_bytes: bytes that one program loads per step, padding excluded.
        unique_bytes: bytes that must cross the memory bus at least once.
        padded_share: share of the tiles' elements that are real (1: no padding).
    """

    programs: float
    iterations: int
    step_bytes: float
    unique_bytes: float
    padded_share: float


def dense_traffic(problem: Problem, config: Config) -> MemoryTraffic:
    """Return what a dense product moves; every tile loads its rows of both operands."""
    size = ELEMENT_BYTES[problem.dtype]
    tiles_m, tiles_n = _up(problem.m, config.block_m), _up(problem.n, config.block_n)
    rows, cols = min(problem.m, config.block_m), min(problem.n, config.block_n)
    output = problem.m * problem.n * (size if config.split_k == 1 else 8 * config.split_k)
    return MemoryTraffic(
        programs=tiles_m * tiles_n * config.split_k,
        iterations=_iterations(problem, config),
        step_bytes=(rows + cols) * config.block_k * size,
        unique_bytes=(problem.m + problem.n) * problem.k * size + output,
        padded_share=problem.m * problem.n / (tiles_m * config.block_m * tiles_n * config.block_n),
    )


def grouped_traffic(problem: Problem, config: Config, weight_bytes: float) -> MemoryTraffic:
    """Return what a product of 2-byte activations and grouped weights moves under uniform routing."""
    hit, tiles_m = expected_tiles(problem, config.block_m)
    tiles_n = _up(problem.n, config.block_n)
    rows = problem.m / tiles_m
    return MemoryTraffic(
        programs=tiles_m * tiles_n * config.split_k,
        iterations=_iterations(problem, config),
        step_bytes=config.block_k * (rows * 2 + min(problem.n, config.block_n) * weight_bytes),
        unique_bytes=hit * problem.n * problem.k * weight_bytes + problem.m * (problem.k + problem.n) * 2,
        padded_share=problem.m * problem.n / (tiles_m * config.block_m * tiles_n * config.block_n),
    )


def _iterations(problem: Problem, config: Config) -> int:
    return _up(_up(problem.k, config.block_k), config.split_k)


def _up(size: int, step: int) -> int:
    """How many steps hold the size."""
    return -(-size // step)
