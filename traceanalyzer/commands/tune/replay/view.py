"""The outcome of a replay as a JSON document and as text."""

from __future__ import annotations

import math

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.replay.compute import SAMPLES, Replay
from traceanalyzer.commands.tune.replay.result import TuneReplayDocument
from traceanalyzer.declare import part_of
from traceanalyzer.wording import percent, plural


def document(replay: Replay) -> TuneReplayDocument:
    """Return the JSON document of ``tune replay``; a regret is null where nothing tried ran."""
    return part_of(
        TuneReplayDocument,
        replay,
        failed_configurations=replay.failed,
        samples_per_evaluation=SAMPLES,
        median_regret=_finite(replay.median_regret),
        p90_regret=_finite(replay.p90_regret),
        random_median_regret=_finite(replay.random_median_regret),
        regrets=[_finite(regret) for regret in replay.regrets],
    )


def render(replay: Replay) -> Group:
    """Return the verdict in sentences."""
    many = f" of {plural(replay.problems, 'problem')}" if replay.problems > 1 else ""
    share, seeds = percent(replay.evaluations / replay.space), plural(replay.seeds, "seed")
    lines = [
        f"{replay.space:,} configurations{many}, {replay.failed:,} of which failed",
        f"{replay.evaluations:,} evaluations ({share} of the space) per search, {seeds}",
        f"regret: median {_percent(replay.median_regret)}, 90th percentile {_percent(replay.p90_regret)}",
        f"random search with as many evaluations: median {_percent(replay.random_median_regret)}",
    ]
    return Group(Text(f"{replay.strategy} search", style="bold"), *(Text(f"  {line}") for line in lines))


def _percent(regret: float) -> str:
    return percent(_finite(regret)) if math.isfinite(regret) else "unknown (nothing tried ran)"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
