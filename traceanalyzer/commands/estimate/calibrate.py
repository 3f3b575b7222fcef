"""Efficiencies from measurements: two parameters from serving results, shares of each class from a trace's roofline.

Serving results tell TPOT = x A + C + y at several loads, where A is what kernels take in the estimate with the
defaults and C what the link adds to it: x says how much slower or faster kernels are than the defaults, y what a step
costs beside them. More cannot be told apart from such results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from traceanalyzer.commands.estimate.deployment import DEFAULT_BUDGET, Deployment
from traceanalyzer.commands.estimate.efficiencies import CLASSES, Efficiencies, Share
from traceanalyzer.commands.estimate.estimate_error import EstimateError
from traceanalyzer.commands.estimate.line import Line, fit, tells_two
from traceanalyzer.commands.estimate.link import FREE_LINK
from traceanalyzer.commands.estimate.schedule import Traffic, steady
from traceanalyzer.commands.estimate.step_time import StepTimes

LINK_TURNS = 4
"""How often the link's part of TPOT is computed anew with pipeline stages, where it depends on how slow kernels are."""

LEAST_SHARE_TOLD = 0.01
"""A class with less of the step's time than this keeps its default; chosen, not fitted."""


@dataclass(frozen=True)
class Observation:
    """TPOT at one load.

    Attributes:
        concurrency: requests in flight.
        isl: tokens of a prompt.
        osl: tokens of an answer.
        tpot_ns: mean time between tokens after the first.
    """

    concurrency: int
    isl: int
    osl: int
    tpot_ns: float


@dataclass(frozen=True)
class CalibrationPoint:
    """One observation against the fit.

    Attributes:
        observed: the observation.
        fitted_ns: what the fit to all gives.
        held_out_ns: what the fit to the others gives; None where there are too few.
    """

    observed: Observation
    fitted_ns: float
    held_out_ns: float | None

    @property
    def error(self) -> float:
        """Relative error of the fit to all."""
        return self.fitted_ns / self.observed.tpot_ns - 1

    @property
    def held_out_error(self) -> float | None:
        """Relative error of the fit to the others."""
        return None if self.held_out_ns is None else self.held_out_ns / self.observed.tpot_ns - 1


@dataclass(frozen=True)
class Calibration:
    """What was fitted, and how well.

    Attributes:
        efficiencies: the result.
        line: the two parameters; None where shares come from a trace.
        points: each observation against the fit.
        calibrated: what was taken from the measurements.
        kept: what was not, and kept its default.
    """

    efficiencies: Efficiencies
    line: Line | None
    points: tuple[CalibrationPoint, ...]
    calibrated: tuple[str, ...]
    kept: tuple[str, ...]

    @property
    def error(self) -> float | None:
        """Mean error over the points that were fitted to; None without any."""
        return _mean([abs(point.error) for point in self.points])

    @property
    def held_out_errors(self) -> tuple[float, ...]:
        """Error of each point when it is left out of the fit; empty where there are too few points."""
        return tuple(error for point in self.points if (error := point.held_out_error) is not None)

    @property
    def held_out_error(self) -> float | None:
        """Mean error of points left out of the fit, one at a time; None where there are too few."""
        return _mean([abs(error) for error in self.held_out_errors])

    @property
    def largest_held_out_error(self) -> float | None:
        """Largest error of points left out of the fit; None where there are too few."""
        return max(map(abs, self.held_out_errors), default=None)

    @property
    def tpot_range(self) -> tuple[float, float] | None:
        """Measured TPOT over the estimate, as the points that were left out had it; None where there are too few."""
        ratios = [1 / (1 + error) for error in self.held_out_errors]
        return (min(*ratios, 1.0), max(*ratios, 1.0)) if ratios else None

    @property
    def in_sample_ratios(self) -> tuple[float, ...]:
        """Measured TPOT over the estimate at each point that was fitted to."""
        return tuple(1 / (1 + point.error) for point in self.points)


def from_serving(
    deployment: Deployment, observations: Sequence[Observation], budget: int = DEFAULT_BUDGET
) -> Calibration:
    """Fit how slow kernels are, and what a step costs beside them, to TPOT at several loads.

    Minimises the sum of squared relative errors. Kernels are not made faster than the peaks, a step's cost not less
    than 0. With one load, or loads of nearly the same estimate, the step keeps its default cost.

    Args:
        deployment: what the results were measured on, with default efficiencies.
        observations: TPOT at each load.
        budget: max_num_batched_tokens.

    Raises:
        EstimateError: there is no observation.
    """
    if not observations:
        raise EstimateError("no result states a concurrency and a TPOT to calibrate with")
    given = deployment.efficiencies
    measured = [seen.tpot_ns for seen in observations]
    fastest = max(max(share.compute, share.memory) for share in given.shares.values())
    alone = replace(deployment, link=FREE_LINK if deployment.link else None)
    kernels = _tpots(alone, 1.0, observations, budget)
    links = [0.0] * len(kernels)
    line = fit(kernels, measured, fastest, given.step_ns)
    for _ in range(_turns(deployment)):
        whole = _tpots(deployment, line.slowness, observations, budget)
        links = [tpot - line.slowness * base for tpot, base in zip(whole, kernels, strict=True)]
        line = fit(kernels, measured, fastest, given.step_ns, links)
    points = []
    for i, seen in enumerate(observations):
        held_out = None
        if len(observations) > 1:
            others, theirs, beside = (_without(i, values) for values in (kernels, measured, links))
            held_out = fit(others, theirs, fastest, given.step_ns, beside).at(kernels[i], links[i])
        points.append(CalibrationPoint(seen, line.at(kernels[i], links[i]), held_out))
    two = tells_two(kernels)
    calibrated = [f"kernels {line.slowness:.2f} times as slow as the defaults"]
    kept = ["what sets the classes of kernels apart", "the link", "TTFT beyond the speed of the kernels"]
    step = f"{line.step_ns / 1e6:.2f} ms per step beside them"
    (calibrated if two else kept).append(step)
    basis = (
        f"efficiencies fitted to TPOT at {len(points)} loads: see the calibration",
        *(f"{name}: {slower.compute:.0%} of peak arithmetic, {slower.memory:.0%} of peak bandwidth, from the fit"
          for name, slower in _slowed(given, line.slowness).items()),
    )  # fmt: skip
    efficiencies = Efficiencies(
        _slowed(given, line.slowness), given.kernel_ns * line.slowness, line.step_ns, given.request_ns, basis
    )
    return Calibration(efficiencies, line, tuple(points), tuple(calibrated), tuple(kept))


def _turns(deployment: Deployment) -> int:
    """How often the link's part has to be computed: one GPU has none, and without stages it depends on nothing else."""
    if deployment.link is None or deployment.parallel.gpus == 1:
        return 0
    return 1 if deployment.parallel.pp == 1 else LINK_TURNS


def _tpots(deployment: Deployment, slowness: float, observations: Sequence[Observation], budget: int) -> list[float]:
    """Return TPOT at each load with kernels so many times as slow, and nothing for the host.

    Rounds do not depend on how long they take, so that the cost of a step adds to TPOT as it is.
    """
    given = deployment.efficiencies
    slower = replace(given, shares=_slowed(given, slowness), kernel_ns=given.kernel_ns * slowness, step_ns=0.0)
    times = StepTimes(replace(deployment, efficiencies=slower))
    tpots = [steady(times, Traffic(one.isl, one.osl, one.concurrency), budget).tpot_ns for one in observations]
    if None in tpots:
        raise EstimateError("answers of one token have no TPOT to calibrate with")
    return [tpot for tpot in tpots if tpot is not None]


def _without(number: int, values: Sequence[float]) -> list[float]:
    return [value for other, value in enumerate(values) if other != number]


def _slowed(given: Efficiencies, slowness: float) -> dict[str, Share]:
    return {
        name: Share(min(share.compute / slowness, 1.0), min(share.memory / slowness, 1.0))
        for name, share in given.shares.items()
    }


@dataclass(frozen=True)
class ClassTime:
    """What a trace shows of one row of its roofline; times per step, in ns.

    Attributes:
        name: the class of op.
        bound: ``compute`` or ``memory``; rows of another bound tell no share.
        measured_ns: time of the kernels.
        kernels: how many there are.
        floor_ns: what the bound one takes at its peak.
    """

    name: str
    bound: str
    measured_ns: float
    kernels: float
    floor_ns: float


def from_trace(
    given: Efficiencies,
    rows: Sequence[ClassTime],
    *,
    kernel_ns: float | None,
    pause_ns: float | None,
    unlisted_ns: float = 0.0,
) -> Calibration:
    """Take each class's achieved share of the roof that limits it from a trace.

    Args:
        given: the defaults, which classes keep that the trace does not show.
        rows: rows of the trace's roofline.
        kernel_ns: what the shortest kernels of the trace take; None keeps the default.
        pause_ns: pause before a step beside its kernels; None keeps the default.
        unlisted_ns: work of a step that the model does not have, such as copies and repeated casts.
    """
    kernel = given.kernel_ns if kernel_ns is None else kernel_ns
    shares: dict[str, Share] = {}
    calibrated: list[str] = []
    kept: list[str] = []
    whole = sum(row.measured_ns for row in rows)
    for name in CLASSES:
        reached = {
            bound: share
            for bound in ("compute", "memory")
            if (share := _reached([r for r in rows if (r.name, r.bound) == (name, bound)], kernel, whole)) is not None
        }
        shares[name] = Share(
            reached.get("compute", given.shares[name].compute), reached.get("memory", given.shares[name].memory)
        )
        for bound, peak in (("compute", "arithmetic"), ("memory", "bandwidth")):
            where = calibrated if bound in reached else kept
            where.append(f"{name}: {getattr(shares[name], bound):.0%} of peak {peak}")
    step = (given.step_ns if pause_ns is None else pause_ns) + unlisted_ns
    (kept if kernel_ns is None else calibrated).append(f"{kernel / 1000:.1f} µs more for every kernel")
    if unlisted_ns:
        calibrated.append(f"{unlisted_ns / 1e6:.2f} ms per step of work that the model does not have")
    pause = (step - unlisted_ns) / 1e6
    (kept if pause_ns is None else calibrated).append(f"{pause:.2f} ms per step of host and gaps")
    kept += ["the link", f"{given.request_ns / 1e6:g} ms more for a request's first token"]
    basis = ("efficiencies from the trace, and defaults where it does not tell: see the calibration",)
    efficiencies = Efficiencies(shares, kernel, step, given.request_ns, basis)
    return Calibration(efficiencies, None, (), tuple(calibrated), tuple(kept))


def _reached(rows: Sequence[ClassTime], kernel_ns: float, whole_ns: float) -> float | None:
    measured = sum(row.measured_ns for row in rows)
    if not rows or measured < LEAST_SHARE_TOLD * whole_ns:
        return None
    floor = sum(row.floor_ns for row in rows)
    working = measured - kernel_ns * sum(row.kernels for row in rows)
    return min(floor / max(working, floor), 1.0) if floor > 0 else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
