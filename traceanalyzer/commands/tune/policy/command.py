"""``traceanalyzer tune policy``: the fewest configurations over m that lose little."""

from __future__ import annotations

from pathlib import Path

import click

from traceanalyzer.cli.common import json_option, show_warnings
from traceanalyzer.commands.tune.options import answer, chosen_policy, policy_options, sweep_argument


@click.command()
@sweep_argument
@policy_options
@json_option
def policy(sweep: Path, top_k: int | None, max_regret: float, where: tuple[str, ...], as_json: bool) -> None:
    """Make rules from SWEEP: which configuration for which m, as few cases as the regret allows.

    m counts rows of the product: concurrency x top-k. The regret is by what share the rule is slower than the fastest
    configuration measured at that m. With --json the output can be given to tune export.
    """
    from traceanalyzer.commands.tune.policy import view

    made, warnings = chosen_policy(sweep, top_k, max_regret, where)
    show_warnings(warnings)
    answer(view.document(made, max_regret), as_json, lambda width: view.render(made, max_regret, width))
