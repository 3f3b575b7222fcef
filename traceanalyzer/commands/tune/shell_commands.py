"""Commands to run next, as text that can be pasted into a shell."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.wording import visible


def command_lines(commands: Sequence[str]) -> str:
    """Return the commands under a heading, one a line and never broken, whatever the terminal's width."""
    return "\n".join(["", "Next", *(f"  {visible(line)}" for line in commands)])
