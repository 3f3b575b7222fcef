"""In which order routes run, and what happens to runs that were disturbed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.disturbance import disturbed, share
from bench.measure import Measurement

RETRIES = 3
"""How often a disturbed run is repeated."""


@dataclass(frozen=True)
class Run:
    """One run that counts.

    Attributes:
        measurement: what it took.
        others: share of one core that others used meanwhile; null where it is not known.
        attempts: runs made until one was undisturbed; where none was, this is the least disturbed of them.
        disturbed: whether even this one was.
    """

    measurement: Measurement
    others: float | None
    attempts: int
    disturbed: bool


def undisturbed(run: Callable[[], Measurement], retries: int = RETRIES) -> Run:
    """Run until nobody else disturbs, at most ``1 + retries`` times; keep the least disturbed run.

    A run that failed or was stopped is not repeated.
    """
    tried: list[Measurement] = []
    for _ in range(1 + retries):
        found = run()
        tried.append(found)
        if found.status != 0 or found.stopped or not disturbed(found.others_s, found.wall_s):
            break
    failed = [found for found in tried if found.status != 0 or found.stopped]
    best = failed[-1] if failed else min(tried, key=lambda found: share(found.others_s, found.wall_s) or 0.0)
    return Run(best, share(best.others_s, best.wall_s), len(tried), disturbed(best.others_s, best.wall_s))


def interleaved(repeats: Mapping[str, int]) -> Iterator[tuple[int, str]]:
    """Yield (repetition, route): in every repetition each route once, and in each another route first.

    Args:
        repeats: how often each route runs; those with fewer than the others leave the first repetitions' turn
            as it is and take part in no later one.
    """
    names: Sequence[str] = list(repeats)
    for repetition in range(max(repeats.values(), default=0)):
        first = repetition % len(names)
        for name in [*names[first:], *names[:first]]:
            if repetition < repeats[name]:
                yield repetition, name
