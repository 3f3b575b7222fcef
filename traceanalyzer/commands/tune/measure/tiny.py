"""Problems small enough for Triton's interpreter, of the same kind as the real one."""

from __future__ import annotations

from dataclasses import replace

from traceanalyzer.kernels.problem import Problem

MOST_TOKENS, MOST_N, MOST_K, MOST_EXPERTS, MOST_TOP_K = 4, 64, 128, 4, 2


def tiny(problem: Problem) -> Problem:
    """Return the problem with every size cut to what the interpreter does in seconds."""
    small = replace(problem, n=min(problem.n, MOST_N), k=min(problem.k, MOST_K))
    if problem.experts is None or problem.top_k is None:
        return small.with_m(min(problem.m, MOST_TOKENS))
    experts, top_k = min(problem.experts, MOST_EXPERTS), min(problem.top_k, MOST_TOP_K)
    return replace(small, experts=experts, top_k=top_k, m=min(problem.tokens, MOST_TOKENS) * top_k)
