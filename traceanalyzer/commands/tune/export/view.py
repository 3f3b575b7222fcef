"""What an export wrote, as JSON and as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.config_text import describe_rules
from traceanalyzer.commands.tune.export.result import ExportKind, TuneExportDocument
from traceanalyzer.commands.tune.policy.compute import Policy
from traceanalyzer.declare import part_of
from traceanalyzer.wording import visible


def document(
    kind: ExportKind, files: Sequence[Path], policy: Policy, steps: Sequence[str], patch: str | None = None
) -> TuneExportDocument:
    """Return the JSON document of ``tune export``; ``patch`` is the text of one that no file was named for."""
    return part_of(
        TuneExportDocument,
        policy,
        kind=kind,
        files=[str(path) for path in files],
        m_counts=policy.rows,
        next=list(steps),
        patch=patch,
    )


def render(files: Sequence[Path], policy: Policy) -> Group:
    """Return the rules and what was written."""
    parts = [Text("rules", style="bold")]
    parts += [Text(visible(f"  {line}")) for line in describe_rules(policy.rules)]
    parts.append(Text("written", style="bold"))
    parts += [Text(visible(f"  {path}")) for path in files]
    return Group(*parts)
