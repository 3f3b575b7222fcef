"""Runs kernels in Triton's interpreter and prints one JSON object: case -> relative error.

A process of its own, because the interpreter has to be chosen before Triton is imported.
"""

from __future__ import annotations

import json
import sys

from traceanalyzer.kernels import find_kernel
from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.kernels.target import INTERPRETER


def error_of(name: str, problem: Problem, config: Config, routing: str) -> float:
    """Return the largest error over the reference's largest value."""
    spec = find_kernel(name)
    case = spec.make_case(problem, INTERPRETER, "cpu", 1, routing)
    prepared = spec.prepare(case, config)
    prepared.output.fill_(float("nan"))  # what no program writes stays wrong
    prepared()
    expected = spec.reference(case)
    assert prepared.output.shape == expected.shape
    return float((prepared.output.double() - expected).abs().max() / expected.abs().max())


def main() -> None:
    """Read cases from stdin: a list of [id, kernel, problem, config, routing]."""
    found = {}
    for case, name, problem, config, routing in json.load(sys.stdin):
        found[case] = error_of(name, Problem.from_dict(problem), Config.from_dict(config), routing)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
