"""A policy as a JSON document and as text: the rules, and what they cost at each measured m."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.config_text import describe_config, describe_problem, describe_rules
from traceanalyzer.commands.tune.policy.compute import Policy
from traceanalyzer.commands.tune.policy.result import TunePolicyDocument
from traceanalyzer.declare import part_of
from traceanalyzer.show.terminal import table
from traceanalyzer.wording import percent, plural, visible


def document(policy: Policy, max_regret: float) -> TunePolicyDocument:
    """Return the JSON document of ``tune policy``."""
    given = {"m_counts": policy.rows, "max_regret": max_regret, "regret": list(policy.choices)}
    return part_of(TunePolicyDocument, policy, **given)


def render(policy: Policy, max_regret: float, width: int) -> Group:
    """Return the rules, then chosen and best time of every measured m."""
    what = describe_problem(policy)
    head = f"{plural(len(policy.rules), 'rule')} within {percent(max_regret)}{f' for {what}' if what else ''}"
    parts: list[Any] = [Text(visible(head), style="bold")]
    parts += [Text(visible(f"  {line}")) for line in describe_rules(policy.rules)]
    rows = [
        (
            str(choice.m),
            f"{choice.chosen_ms:.3f} ms",
            f"{choice.best_ms:.3f} ms",
            percent(choice.regret),
            "" if choice.regret == 0 else describe_config(choice.best_config),
        )
        for choice in policy.choices
    ]
    if rows:
        heading = "m" if policy.rows == "rows" else "requests"
        parts += [Text(), table((heading, "rule", "fastest", "regret", "fastest is"), rows, name_column=4, width=width)]
        worst = max(choice.regret for choice in policy.choices)
        parts.append(Text(f"  worst regret {percent(worst)}; beyond the measured m the rules are extrapolated"))
    return Group(*parts)
