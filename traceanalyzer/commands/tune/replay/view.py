"""The outcome of a replay as text."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.replay.result import TuneReplayDocument
from traceanalyzer.wording import percent, plural


def render(replay: TuneReplayDocument) -> Group:
    """Return the verdict in sentences."""
    many = f" of {plural(replay.problems, 'problem')}" if replay.problems > 1 else ""
    share, seeds = percent(replay.evaluations / replay.space), plural(replay.seeds, "seed")
    lines = [
        f"{replay.space:,} configurations{many}, {replay.failed_configurations:,} of which failed",
        f"{replay.evaluations:,} evaluations ({share} of the space) per search, {seeds}",
        f"regret: median {_percent(replay.median_regret)}, 90th percentile {_percent(replay.p90_regret)}",
        f"random search with as many evaluations: median {_percent(replay.random_median_regret)}",
    ]
    return Group(Text(f"{replay.strategy} search", style="bold"), *(Text(f"  {line}") for line in lines))


def _percent(regret: float | None) -> str:
    return "unknown (nothing tried ran)" if regret is None else percent(regret)
