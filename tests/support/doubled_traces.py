"""Traces of one kind in two sizes, and what more of them costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from synthetic import generate, models, write


@dataclass(frozen=True)
class Recorded:
    """A trace in a file: bytes of raw JSON, and events in it."""

    path: Path
    raw_bytes: int
    events: int


@dataclass(frozen=True)
class Pair:
    """The same recording, and twice as long: what is counted in both grows by what the events between cost."""

    short: Recorded
    long: Recorded

    def per_event(self, count: Callable[[Recorded], int]) -> float:
        """Return by how much a count grows with each further event."""
        return (count(self.long) - count(self.short)) / (self.long.events - self.short.events)

    def per_byte(self, count: Callable[[Recorded], int]) -> float:
        """Return by how much a count grows with each further byte of raw JSON."""
        return (count(self.long) - count(self.short)) / (self.long.raw_bytes - self.short.raw_bytes)


def record(folder: Path, steps: int) -> Recorded:
    """Write an eager trace with Python stacks: every category of events is in it."""
    spec = models.llama_decode(layers=8, steps=steps)
    made = generate(replace(spec, launch="eager", with_stack=True))
    path = write(made, folder / f"{steps}-steps.json")
    return Recorded(path, path.stat().st_size, len(made.events))
