"""How near the search comes with how few evaluations: ``python -m bench.replay SWEEP...``.

Every recorded sweep is searched as if its samples were measured anew (as ``traceanalyzer tune replay`` does): by
traceanalyzer's search, by chance, and in the order of the table. The regret is by how much the configuration found is
slower than the fastest recorded one, both by the median of all samples. Each problem of a sweep (kernel, shape, m,
device) is a space of its own, and a budget is a number of evaluations in each.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from math import inf, isinf, sqrt
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.calibration import Z95, auc
from bench.environment import ROOT

if TYPE_CHECKING:
    from traceanalyzer.commands.tune.formats.sweep import Sweep, SweepPoint

SHARES = (0.01, 0.02, 0.03, 0.05, 0.1, 0.2)
COUNTS = (1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32, 48, 96)
STRATEGIES = ("guided", "random", "table order")
SAMPLES = 3
CHANCE = 100
"""Searches by chance of each space, at least."""

SMALL, MORE_SEEDS = 100, 10
"""Spaces of up to so many configurations are searched so many times as often: they cost nothing, and differ more."""


class Table:
    """Recorded samples of one space."""

    def __init__(self, points: Sequence[SweepPoint]) -> None:
        from traceanalyzer.commands.tune.search.level_space import make_space

        self.configs = [point.known_config for point in points]
        self.space = make_space(self.configs)
        self.samples = [point.samples_ms if point.reason is None else () for point in points]
        self.medians = [median(values) if values else inf for values in self.samples]

    def __len__(self) -> int:
        return len(self.configs)

    def regret(self, strategy: str, budget: int, seed: int) -> float:
        """Search once; return the regret, infinite where nothing that was tried ran."""
        from traceanalyzer.commands.tune.search import search

        # Another sequence of draws for every strategy and budget: equal seeds must not make equal luck.
        noise = random.Random(f"{strategy} {budget} {seed}")
        budget = min(budget, len(self))
        if strategy == "table order":
            times = [median(drawn) if (drawn := self.draw(index, noise)) else inf for index in range(budget)]
            best: int | None = times.index(min(times))
        else:
            found = search(
                self.configs,
                lambda index: self.draw(index, noise),
                budget,
                seed=noise.getrandbits(32),
                strategy=strategy,
                space=self.space,
            )
            best = next(iter(found.best(1)), None)
        return inf if best is None else self.medians[best] / min(self.medians) - 1

    def draw(self, index: int, noise: random.Random) -> list[float]:
        """Return what one evaluation measures: some of the recorded samples."""
        recorded = self.samples[index]
        return list(recorded) if len(recorded) <= SAMPLES else noise.sample(recorded, SAMPLES)


def tables_of(sweep: Sweep) -> list[Table]:
    """Return the spaces of a sweep in which something ran: points that are alternatives to each other."""
    found: dict[tuple[object, ...], list[SweepPoint]] = {}
    for point in sweep.points:
        if point.samples_ms or point.reason:
            found.setdefault((*point.problem, point.m, point.concurrency), []).append(point)
    tables = [Table(points) for points in found.values()]
    return [table for table in tables if any(table.samples)]


def replayed(sweep: Sweep, name: str, seeds: int) -> dict[str, Any]:
    """Return the regrets of every strategy at every budget, in quartiles."""
    tables = tables_of(sweep)
    largest = max(map(len, tables))
    searches = seeds * (MORE_SEEDS if largest <= SMALL else 1)
    return {
        "name": name,
        "problems": len(tables),
        "configurations": [min(map(len, tables)), largest],
        "searches": searches * len(tables),
        "budgets": [_budget(tables, budget, searches) for budget in budgets(largest)],
    }


def budgets(size: int) -> list[int]:
    """Return how many evaluations are tried in a space: some small numbers, and the shares."""
    shares = {evaluations(share, size) for share in SHARES}
    most = max(*shares, min(size, SMALL))
    return sorted(shares | {count for count in COUNTS if count <= most})


def evaluations(share: float, size: int) -> int:
    """Return a share of a space, rounded down, but at least one."""
    return max(1, int(share * size + 1e-9))


def _budget(tables: Sequence[Table], budget: int, searches: int) -> dict[str, Any]:
    # What chance does costs nothing, so that its quartiles can be known better.
    counts = {strategy: searches if strategy == "guided" else max(searches, CHANCE) for strategy in STRATEGIES}
    regrets = {
        # Other seeds in every space: equal luck in spaces of equal size would count as many searches.
        strategy: [
            table.regret(strategy, budget, number * count + each)
            for number, table in enumerate(tables)
            for each in range(count)
        ]
        for strategy, count in counts.items()
    }
    ours, theirs = regrets["guided"], regrets["random"]
    return {
        "evaluations": budget,
        "regret": {strategy: quartiles(values) for strategy, values in regrets.items()},
        "wins": auc([*((each, False) for each in ours), *((each, True) for each in theirs)]),
        "wins_error": Z95 * sqrt((len(ours) + len(theirs) + 1) / (12 * len(ours) * len(theirs))),
    }


def quartiles(values: Sequence[float]) -> list[float | None]:
    """Return the lower quartile, median and upper quartile by nearest rank; null for an infinite one."""
    from traceanalyzer.commands.tune.replay.compute import quantile

    found = (quantile(values, share) for share in (0.25, 0.5, 0.75))
    return [None if isinf(value) else value for value in found]


def main() -> None:
    """Replay the sweeps, write the results."""
    from bench.results import save
    from traceanalyzer.commands.tune.formats import read_sweep

    options = _options()
    found = []
    for path in options.sweeps:
        found.append(replayed(read_sweep(path, top_k=options.top_k), path.name, options.seeds))
        print(f"{path.name}: {len(found[-1]['budgets'])} budgets")  # noqa: T201
    save("replay", {"tables": found}, settings={"seeds": options.seeds}, folder=options.results)


def _options() -> argparse.Namespace:
    recorded = ROOT.parent / "shared" / "data" / "tuner"
    others = sorted(path for path in recorded.glob("*.*") if not path.name.startswith("LICENSE"))
    own = (ROOT / "docs" / "data" / "strix_halo_sweep.log", ROOT / "tests" / "data" / "sweeps" / "fused_moe.jsonl")
    known = list({path.name: path for path in (*others, *own)}.values())
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sweeps", nargs="*", type=Path, default=known, help="files that `tune replay` reads")
    parser.add_argument("--seeds", type=int, default=20, help="searches of a space; ten times as many of small spaces")
    parser.add_argument("--top-k", type=int, help="experts a token, where a file knows the concurrency only")
    parser.add_argument("--results", type=Path, default=ROOT / "bench" / "results")
    return parser.parse_args()


if __name__ == "__main__":
    main()
