"""The outcome of a replay as the contract's JSON and as text."""

from __future__ import annotations

import math
from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.replay.compute import SAMPLES, Replay
from traceanalyzer.wording import percent, plural

SCHEMA = "traceanalyzer/tune-replay/1"


def document(found: Replay) -> dict[str, Any]:
    """Return the JSON document of ``tune replay``; a regret is null where nothing that was tried ran."""
    return {
        "schema": SCHEMA,
        "strategy": found.strategy,
        "space": found.space,
        "problems": found.problems,
        "failed_configurations": found.failed,
        "evaluations": found.evaluations,
        "samples_per_evaluation": SAMPLES,
        "seeds": found.seeds,
        "median_regret": _finite(found.median_regret),
        "p90_regret": _finite(found.p90_regret),
        "random_median_regret": _finite(found.random_median_regret),
        "regrets": [_finite(regret) for regret in found.regrets],
    }


def render(found: Replay) -> Group:
    """Return the verdict in sentences."""
    many = f" of {plural(found.problems, 'problem')}" if found.problems > 1 else ""
    share = found.evaluations / found.space
    lines = [
        f"{found.space:,} configurations{many}, {found.failed:,} of which failed",
        f"{found.evaluations:,} evaluations ({percent(share)} of the space) in each of {plural(found.seeds, 'search')}",
        f"regret: median {_percent(found.median_regret)}, 90th percentile {_percent(found.p90_regret)}",
        f"random search with as many evaluations: median {_percent(found.random_median_regret)}",
    ]
    return Group(Text(f"{found.strategy} search", style="bold"), *(Text(f"  {line}") for line in lines))


def _percent(regret: float) -> str:
    return percent(_finite(regret)) if math.isfinite(regret) else "unknown (nothing that was tried ran)"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
