"""What an export wrote, as text."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.config_text import describe_rules
from traceanalyzer.commands.tune.export.result import TuneExportDocument
from traceanalyzer.wording import visible


def render(document: TuneExportDocument) -> Group:
    """Return the rules and the files written."""
    parts = [Text("rules", style="bold")]
    parts += [Text(visible(f"  {line}")) for line in describe_rules(document.rules)]
    parts.append(Text("written", style="bold"))
    parts += [Text(visible(f"  {path}")) for path in document.files]
    return Group(*parts)
