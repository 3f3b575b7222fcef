"""Did the change make the kernel faster? Before and after, measured in turns."""

from __future__ import annotations

from traceanalyzer.commands.tune.measure.race import FEWEST_ROUNDS, Interval, round_ratio
from traceanalyzer.commands.tune.measure.result import TunedProblem
from traceanalyzer.commands.tune.run.compute import JobOutcome
from traceanalyzer.commands.tune.verify.result import KernelVerdict, VerifiedProblem
from traceanalyzer.declare import part_of
from traceanalyzer.kernels.problem import Config

SAME = 0.01
"""A change smaller than this, as a share, counts as none even where it can be measured. Chosen, not fitted."""


def compare(outcome: JobOutcome, before: Config, after: Config) -> VerifiedProblem:
    """Compare two configurations that one job measured side by side."""
    tiles = {tile.launch: tile for tile in outcome.results}
    base, changed = outcome.samples.get(before, {}), outcome.samples.get(after, {})
    ratio = round_ratio(changed, base)
    failed = "failed" in (tiles[before].verdict, tiles[after].verdict)
    return VerifiedProblem(
        problem=part_of(TunedProblem, outcome.job.problem),
        concurrency=outcome.job.problem.tokens,
        routing=outcome.job.routing,
        before=tiles[before],
        after=tiles[after],
        ratio=ratio.value if ratio else None,
        ratio_interval=ratio.ends if ratio else None,
        verdict="failed" if failed else _verdict(ratio, len(set(base) & set(changed))),
    )


def _verdict(ratio: Interval | None, rounds: int) -> KernelVerdict:
    if ratio is None or rounds < FEWEST_ROUNDS:
        return "unclear"
    if ratio.low > 1 - SAME and ratio.high < 1 + SAME:
        return "same"
    if ratio.high < 1:
        return "faster"
    return "slower" if ratio.low > 1 else "unclear"
