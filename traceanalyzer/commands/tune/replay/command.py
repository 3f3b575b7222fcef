"""``traceanalyzer tune replay``: try the search on a recorded sweep."""

from __future__ import annotations

from pathlib import Path

import click

from traceanalyzer.cli.common import FiniteRange, json_option, show_warnings
from traceanalyzer.commands.tune.options import answer, progress, read_points, sweep_argument, where_option
from traceanalyzer.commands.tune.replay.result import StrategyName


@click.command()
@sweep_argument
@click.option("--budget-share", type=FiniteRange(min=0, max=1, min_open=True), default=0.03, show_default=True,
              help="Evaluations, as a share of the recorded configurations; at least one per problem.")  # fmt: skip
@click.option("--seeds", type=click.IntRange(min=1), default=20, show_default=True, help="Searches of each problem.")
@click.option("--strategy", type=click.Choice(("guided", "random")), default="guided", show_default=True,
              help="What chooses the next configuration to measure.")  # fmt: skip
@where_option
@json_option
def replay(
    sweep: Path, budget_share: float, seeds: int, strategy: StrategyName, where: tuple[str, ...], as_json: bool
) -> None:
    """Run the search against the recorded SWEEP instead of a GPU, and say how close it comes.

    Every evaluation draws some of the recorded samples; the regret compares medians of all of them with the fastest
    configuration of the whole sweep.
    """
    from traceanalyzer.commands.tune.replay import view
    from traceanalyzer.commands.tune.replay.compute import replay as try_search

    points = read_points(sweep, None, where)
    show_warnings(points.warnings)
    with progress("searching") as moved:
        tried = try_search(points, budget_share, seeds, strategy, lambda done, total: moved("searching", done, total))
    answer(tried, as_json, lambda width: view.render(tried))
