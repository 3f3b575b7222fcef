"""Commands to run next: words, and text that can be pasted into a shell."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from traceanalyzer.wording import visible


@dataclass(frozen=True)
class Command:
    """A command of this package.

    Attributes:
        words: what follows ``traceanalyzer``.
    """

    words: tuple[str, ...]

    @property
    def line(self) -> str:
        """The command quoted for a shell."""
        return shlex.join(["traceanalyzer", *self.words])


def command_lines(lines: Sequence[str]) -> str:
    """Return commands under a heading, one per line and never broken, whatever the terminal's width."""
    return "\n".join(["", "Next", *(f"  {visible(line)}" for line in lines)])
