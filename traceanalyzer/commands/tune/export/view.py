"""What an export wrote, as JSON and as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.config_text import describe_config, describe_rows
from traceanalyzer.commands.tune.policy.compute import Policy
from traceanalyzer.wording import visible

SCHEMA = "traceanalyzer/export/1"


def document(
    kind: str, files: Sequence[Path], policy: Policy, steps: Sequence[str], patch: str | None = None
) -> dict[str, Any]:
    """Return the JSON document of ``tune export``; ``patch`` is the text of one that no file was named for."""
    return {
        "schema": SCHEMA,
        "kind": kind,
        "files": [str(path) for path in files],
        "m_counts": policy.rows,
        "rules": [{"min_m": rule.min_m, "max_m": rule.max_m, "config": dict(rule.config)} for rule in policy.rules],
        "next": list(steps),
        "patch": patch,
    }


def render(files: Sequence[Path], policy: Policy) -> Group:
    """Return the rules and what was written."""
    parts = [Text("rules", style="bold")]
    for rule in policy.rules:
        parts.append(Text(visible(f"  {describe_rows(rule.min_m, rule.max_m):<16} {describe_config(rule.config)}")))
    parts.append(Text("written", style="bold"))
    parts += [Text(visible(f"  {path}")) for path in files]
    return Group(*parts)
