"""Efficiencies from serving results: a slowness of kernels and a cost per step, fitted to TPOT at several loads.

TPOT = x A + C + y, where A is the time of the kernels in the estimate with the defaults and C what the link adds to it:
x is the slowness of the kernels relative to the defaults, y the cost of a step beside them. Such results cannot tell
more apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from traceanalyzer.commands.estimate.deployment import DEFAULT_BUDGET, Deployment
from traceanalyzer.commands.estimate.efficiencies import FREE_LINK, Efficiencies, EstimateError
from traceanalyzer.commands.estimate.result import AchievedShare, EstimateCalibration, FittedLoad
from traceanalyzer.commands.estimate.schedule import Traffic, steady
from traceanalyzer.commands.estimate.step_time import StepTimes
from traceanalyzer.declare import part_of
from traceanalyzer.problems import TraceWarning
from traceanalyzer.serving.series import series
from traceanalyzer.serving.serving_result import ServingResult

LINK_TURNS = 4
"""Iterations of the fit with pipeline stages, where the link's part of TPOT depends on the slowness; chosen, not
fitted: a test holds the fit of exact points within 2 %."""

LEAST_SPREAD = 1.1
"""Loads whose estimates differ by less than this factor cannot tell the two parameters apart; chosen, not fitted."""

COARSE = 0.002
"""A TPOT rounded to more than this share of itself is derived from latency and TTFT instead, where they are finer;
chosen, not fitted."""

TPOT_RANGE = (0.65, 1.75)
"""Measured TPOT over an uncalibrated estimate: the range over all measurements of docs/data/estimate_measured.csv."""


@dataclass(frozen=True)
class Observation:
    """Mean TPOT under one load."""

    traffic: Traffic
    tpot_ns: float


@dataclass(frozen=True)
class Line:
    """The fitted parameters.

    Attributes:
        slowness: time of a kernel over that with the defaults.
        step_ns: cost of a step beside its kernels and the link.
    """

    slowness: float
    step_ns: float

    def at(self, kernels_ns: float, link_ns: float = 0.0) -> float:
        """Return TPOT from the time of the kernels with the defaults and of the link."""
        return self.slowness * kernels_ns + link_ns + self.step_ns


@dataclass(frozen=True)
class Calibration:
    """Efficiencies from measurements, and what the document says of them."""

    efficiencies: Efficiencies
    told: EstimateCalibration

    @property
    def tpot_range(self) -> tuple[float, float] | None:
        """Lowest and highest measured TPOT over the fit to the other loads, 1 included; None with fewer than two."""
        errors = [one.held_out_error for one in self.told.points if one.held_out_error is not None]
        ratios = [1 / (1 + error) for error in errors]
        return (min(*ratios, 1.0), max(*ratios, 1.0)) if ratios else None

    @property
    def in_sample_ratios(self) -> list[float]:
        """Measured TPOT over the fit, for each load."""
        return [1 / (1 + one.error) for one in self.told.points]

    def far_off(self) -> list[TraceWarning]:
        """Return a warning if the fit misses a load by more than uncalibrated estimates have missed any."""
        low, high = TPOT_RANGE
        missed = [ratio for ratio in self.in_sample_ratios if not low <= ratio <= high]
        if not missed:
            return []
        worst = max(missed, key=lambda ratio: max(ratio, 1 / ratio))
        message = (
            f"measured TPOT is {worst:.2f} times the fitted one: the results are of another model, GPU or layout, or "
            "limited by something other than kernels"
        )
        return [TraceWarning("calibration_far_off", message, count=len(missed))]


def calibration(
    efficiencies: Efficiencies,
    calibrated: list[str],
    kept: list[str],
    points: Sequence[FittedLoad] = (),
    slowness: float | None = None,
) -> Calibration:
    """Return a calibration.

    Args:
        efficiencies: the result.
        calibrated: what the measurements gave.
        kept: what keeps its default.
        points: every load against the fit.
        slowness: of kernels, where it was fitted.
    """
    held_out = [abs(one.held_out_error) for one in points if one.held_out_error is not None]
    told = EstimateCalibration(
        slowness=slowness,
        step_ms=efficiencies.step_ns / 1e6,
        kernel_us=efficiencies.kernel_ns / 1e3,
        shares={name: part_of(AchievedShare, share) for name, share in efficiencies.shares.items()},
        error=_mean([abs(one.error) for one in points]),
        held_out_error=_mean(held_out),
        largest_held_out_error=max(held_out, default=None),
        points=list(points),
        calibrated=calibrated,
        not_calibrated=kept,
    )
    return Calibration(efficiencies, told)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def from_serving(
    deployment: Deployment, observations: Sequence[Observation], budget: int = DEFAULT_BUDGET
) -> Calibration:
    """Fit the slowness of kernels and the cost of a step to TPOT at several loads of a deployment.

    Minimises the sum of squared relative errors. Kernels stay below the peaks, and a step's cost at 0 or above. With
    one load, or loads of nearly the same estimate, the step keeps its default cost.

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
            others, theirs, beside = ([*values[:i], *values[i + 1 :]] for values in (kernels, measured, links))
            held_out = fit(others, theirs, fastest, given.step_ns, beside).at(kernels[i], links[i])
        points.append(_point(seen, line.at(kernels[i], links[i]), held_out))
    calibrated = [f"kernels {line.slowness:.2f} times as slow as the defaults"]
    kept = ["what sets the classes of kernels apart", "the link", "TTFT beyond the speed of the kernels"]
    step = f"{line.step_ns / 1e6:.2f} ms per step beside them"
    (calibrated if tells_two(kernels) else kept).append(step)
    slower = given.slowed(line.slowness)
    basis = [f"efficiencies fitted to TPOT at {len(points)} loads: see the calibration"]
    basis += [
        f"{name}: {share.compute:.0%} of peak arithmetic, {share.memory:.0%} of peak bandwidth, from the fit"
        for name, share in slower.shares.items()
    ]
    efficiencies = replace(slower, step_ns=line.step_ns, basis=tuple(basis))
    return calibration(efficiencies, calibrated, kept, points, line.slowness)


def _point(seen: Observation, fitted_ns: float, held_out_ns: float | None) -> FittedLoad:
    return FittedLoad(
        batch=seen.traffic.concurrency,
        isl=seen.traffic.isl,
        osl=seen.traffic.osl,
        tpot_ms=seen.tpot_ns / 1e6,
        fitted_ms=fitted_ns / 1e6,
        error=fitted_ns / seen.tpot_ns - 1,
        held_out_ms=None if held_out_ns is None else held_out_ns / 1e6,
        held_out_error=None if held_out_ns is None else held_out_ns / seen.tpot_ns - 1,
    )


def _turns(deployment: Deployment) -> int:
    """How often to compute the link's part: one GPU has none, and without stages it depends on nothing else."""
    if deployment.link is None or deployment.parallel.gpus == 1:
        return 0
    return 1 if deployment.parallel.pp == 1 else LINK_TURNS


def _tpots(deployment: Deployment, slowness: float, observations: Sequence[Observation], budget: int) -> list[float]:
    """Return TPOT at each load with kernels so many times as slow, and nothing for the host.

    How many rounds there are does not depend on their time, so the cost of a step adds to TPOT as it is.
    """
    slower = replace(deployment.efficiencies.slowed(slowness), step_ns=0.0)
    times = StepTimes(replace(deployment, efficiencies=slower))
    tpots = [steady(times, one.traffic, budget).tpot_ns for one in observations]
    if None in tpots:
        raise EstimateError("answers of one token have no TPOT to calibrate with")
    return [tpot for tpot in tpots if tpot is not None]


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
    """Fit measured = slowness x kernels + link + step by least squares of relative errors.

    Args:
        kernels: uncalibrated TPOT at each load, without the link.
        measured: TPOT at each load.
        fastest: the largest share of a peak among the defaults, and so the smallest slowness, as no share exceeds 1.
        default_step_ns: cost of a step where the loads cannot tell it.
        links: what the link adds to TPOT at each load; nothing by default.
    """
    # Relative errors: every equation is divided by what was measured.
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
    # A parameter beyond its limit is set to it, and the other one fitted alone.
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


def one_series(results: Sequence[ServingResult]) -> tuple[ServingResult, ...]:
    """Return the results of serving if they are of one configuration; else EstimateError names the configurations."""
    configurations = series([result for result in results if result.kind == "serve"])
    if len(configurations) > 1:
        names = "; ".join(one.name for one in configurations)
        raise EstimateError(
            f"the results are of {len(configurations)} configurations ({names}); pick one with --select KEY=VALUE"
        )
    return tuple(result for one in configurations for point in one.points for result in point.results)


def observations(results: Sequence[ServingResult], isl: int, osl: int | None) -> tuple[Observation, ...]:
    """Return TPOT at each load that states a concurrency, averaged over repeated runs.

    Args:
        results: runs of one configuration.
        isl: tokens of a prompt, for results that do not tell.
        osl: tokens of an answer, for results that do not tell; None derives them from tokens/s.
    """
    by_load: dict[tuple[int, int, int], list[float]] = {}
    for result in results:
        concurrency = result.load.concurrency
        length = answer_length(result, osl)
        tpot = tpot_ms(result, length)
        if concurrency is None or concurrency < 1 or tpot is None or not tpot > 0 or length is None or length < 2:
            continue
        prompt = max(round(result.input_length), 1) if result.input_length else isl
        by_load.setdefault((round(concurrency), prompt, length), []).append(tpot * 1e6)
    return tuple(
        Observation(Traffic(prompt, length, concurrency), sum(values) / len(values))
        for (concurrency, prompt, length), values in sorted(by_load.items())
    )


def answer_length(result: ServingResult, default: int | None) -> int | None:
    """Return the mean tokens of an answer: as the result says, else the default, else by Little's law from tokens/s."""
    if result.output_length:
        return round(result.output_length)
    if default is not None:
        return default
    rate, latency = result.metrics.get("output_throughput"), result.metrics.get("mean_e2el_ms")
    concurrency = result.load.concurrency
    return round(rate * latency / 1000 / concurrency) if rate and latency and concurrency else None


def tpot_ms(result: ServingResult, length: int | None) -> float | None:
    """Return the mean TPOT: (latency - TTFT) / (answer - 1) where the result's own figure is rounded more coarsely."""
    tpot = result.metrics.get("mean_tpot_ms")
    latency, ttft = result.metrics.get("mean_e2el_ms"), result.metrics.get("mean_ttft_ms")
    rough = tpot is None or result.resolution.get("mean_tpot_ms", 0.0) > COARSE * tpot
    if rough and latency is not None and ttft is not None and length is not None and length > 1:
        return (latency - ttft) / (length - 1)
    return tpot
