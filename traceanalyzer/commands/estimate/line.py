"""TPOT = slowness x kernels + link + step: the two parameters that loads can tell, by least squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LEAST_SPREAD = 1.1
"""Estimates that differ by less than this factor cannot tell the two parameters apart."""


@dataclass(frozen=True)
class Line:
    """What was fitted.

    Attributes:
        slowness: time of a kernel over that with the defaults.
        step_ns: what a step costs beside its kernels and the link.
    """

    slowness: float
    step_ns: float

    def at(self, kernels_ns: float, link_ns: float = 0.0) -> float:
        """Return the TPOT where kernels take so long with the defaults, and the link adds so much."""
        return self.slowness * kernels_ns + link_ns + self.step_ns


def tells_two(kernels: Sequence[float]) -> bool:
    """Whether these loads differ enough to tell slow kernels from a slow host."""
    return max(kernels) / min(kernels) >= LEAST_SPREAD


def fit(
    kernels: Sequence[float],
    measured: Sequence[float],
    fastest: float,
    default_step_ns: float,
    links: Sequence[float] | None = None,
) -> Line:
    """Fit measured = slowness x kernels + link + step in the least squares of relative errors.

    Args:
        kernels: uncalibrated TPOT at each load, the link left out.
        measured: TPOT there.
        fastest: the largest share of a peak among the defaults: the least slowness, as none may exceed 1.
        default_step_ns: cost of a step where it cannot be told.
        links: what the link adds to TPOT at each load; nothing by default.
    """
    weights = [1 / value for value in measured]
    xs = [base * weight for base, weight in zip(kernels, weights, strict=True)]
    ys = [1 - link * weight for link, weight in zip(links or [0.0] * len(xs), weights, strict=True)]
    if not tells_two(kernels):
        left = [y - default_step_ns * weight for y, weight in zip(ys, weights, strict=True)]
        return Line(max(_slope(xs, left), fastest), default_step_ns)
    xx, ww, xw = _dot(xs, xs), _dot(weights, weights), _dot(xs, weights)
    xy, wy = _dot(xs, ys), _dot(weights, ys)
    determinant = xx * ww - xw * xw
    slowness, step = (xy * ww - wy * xw) / determinant, (wy * xx - xy * xw) / determinant
    if step < 0:
        slowness, step = _slope(xs, ys), 0.0
    if slowness < fastest:
        left = [y - fastest * x for x, y in zip(xs, ys, strict=True)]
        slowness, step = fastest, max(_slope(weights, left), 0.0)
    return Line(slowness, step)


def _slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    return _dot(xs, ys) / _dot(xs, xs)


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))
