"""What ``python -m bench.loading`` is told: sizes, kinds, routes, repeats and limits."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from bench.environment import ROOT
from bench.inputs import KINDS
from bench.measure import Limits
from bench.results import FOLDER
from bench.rounds import RETRIES
from bench.routes import ROUTES

SIZES = (5, 50, 500, 2000)


@dataclass(frozen=True)
class Rule:
    """A number for some of the runs: those that all words fit, each a kind, a route or a size in MB."""

    words: frozenset[str]
    number: float

    @classmethod
    def of(cls, text: str) -> Rule:
        """Read ``hta,2000=1`` or ``5``.

        Raises:
            argparse.ArgumentTypeError: it is none of these.
        """
        left, _, right = text.rpartition("=")
        words = frozenset(word for word in left.split(",") if word)
        unknown = [word for word in words if word not in KINDS and word not in ROUTES and not word.isdigit()]
        try:
            number = float(right)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} ends in no number") from None
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is no kind ({', '.join(KINDS)}), route or size in MB")
        return cls(words, number)


def choose(rules: Sequence[Rule], default: float, *words: str) -> float:
    """Return the number of the last rule that fits a run's kind, route and size."""
    fitting = [rule.number for rule in rules if rule.words <= set(words)]
    return fitting[-1] if fitting else default


@dataclass(frozen=True)
class Options:
    """What is measured, and how often; see ``--help``."""

    traces: Path
    sizes: tuple[int, ...]
    kinds: tuple[str, ...]
    routes: tuple[str, ...]
    repeats: int
    repeats_at: tuple[Rule, ...]
    warmups: int
    warmups_at: tuple[Rule, ...]
    retries: int
    limit: tuple[Rule, ...]
    memory_limit: float
    folder: Path | None
    results: Path
    keep: bool
    build_only: bool
    resume: bool

    def repeats_of(self, kind: str, route: str, size: int) -> int:
        """Return how often a route runs on an input."""
        return int(choose(self.repeats_at, self.repeats, kind, route, str(size)))

    def warmups_of(self, kind: str, route: str, size: int) -> int:
        """Return how often it runs before that without being counted."""
        return int(choose(self.warmups_at, self.warmups, kind, route, str(size)))

    def limits_of(self, route: str) -> Limits:
        """Return when a run of a route is stopped."""
        seconds = choose(self.limit, float("inf"), route)
        return Limits(None if seconds == float("inf") else seconds, self.memory_limit)

    def settings(self) -> dict[str, Any]:
        """Return what belongs into the results."""
        return {
            "sizes_mb": list(self.sizes),
            "repeats": self.repeats,
            "warmups": self.warmups,
            "repeats_at": _told(self.repeats_at),
            "warmups_at": _told(self.warmups_at),
            "retries": self.retries,
            "limit_s": _told(self.limit),
            "memory_limit_mb": round(self.memory_limit),
        }


def _told(rules: Sequence[Rule]) -> dict[str, float]:
    return {",".join(sorted(rule.words)) or "all": rule.number for rule in rules}


def options_from(arguments: Sequence[str]) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.loading", description="Compare ways of reading a trace.")
    add, rule = parser.add_argument, Rule.of
    add("--traces", type=Path, default=ROOT.parent / "shared" / "traces", help="folder of the real traces")
    add("--sizes", type=int, nargs="+", default=list(SIZES), metavar="MB", help="of raw JSON (5 50 500 2000)")
    add("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    add("--routes", nargs="+", choices=ROUTES, default=list(ROUTES))
    add("--repeats", type=int, default=5, help="runs of each route on each input (5)")
    add(
        "--repeats-at",
        type=rule,
        nargs="+",
        default=[],
        metavar="WHERE=N",
        help="others for some: 2000=3, or hta,2000=1, or python,2000=0 to leave them out; the last that fits counts",
    )
    add("--warmups", type=int, default=1, help="uncounted runs before (1)")
    add("--warmups-at", type=rule, nargs="+", default=[], metavar="WHERE=N")
    add("--retries", type=int, default=RETRIES, help=f"of a run while others use the machine ({RETRIES})")
    add("--limit", type=rule, nargs="+", default=[], metavar="S", help="stop a run after S s, or ROUTE=S; see below")
    add("--memory-limit", type=float, metavar="MB", help="stop a run above it (85 %% of the memory)")
    add("--folder", type=Path, help="keep the inputs here, and use those that are here (a temporary folder)")
    add("--results", type=Path, default=FOLDER, help="folder of the results (bench/results)")
    add("--build-only", action="store_true", help="only make the inputs in --folder")
    add("--resume", action="store_true", help="keep what the results already hold of other kinds and sizes")
    parser.epilog = (
        "A route that by its time or memory on the next smaller input would pass a limit is not tried on larger ones."
    )
    given: dict[str, Any] = vars(parser.parse_args(arguments))
    if not given["traces"].is_dir():
        parser.error(f"no traces to replicate in {given['traces']}: name their folder with --traces")
    given["memory_limit"] = given["memory_limit"] or 0.85 * psutil.virtual_memory().total / 1e6
    lists = ("sizes", "kinds", "routes", "repeats_at", "warmups_at", "limit")
    given |= {key: tuple(given[key]) for key in lists}
    return Options(**given, keep=False)
