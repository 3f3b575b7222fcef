"""Values that repeat -> small numbers, and numbers -> categorical columns.

A trace of a million events holds a few thousand different names and shapes: each is turned into text once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

LIMIT = 100_000
"""Entries from which on a dictionary starts anew with the next window, lest it grow with the trace."""


class Dictionary(dict[Any, int]):
    """Value as decoded -> its number; looking up a new value adds it.

    Args:
        text: what is stored for a value.
    """

    def __init__(self, text: Callable[[Any], str | None]) -> None:
        super().__init__()
        self._text = text
        self._column = TextColumn()

    def __missing__(self, value: Any) -> int:
        self._column.texts.append(self._text(value))
        self[value] = number = len(self)
        return number

    def begin(self) -> None:
        """Forget everything if it has become too much: numbers given so far are void."""
        if len(self) > LIMIT:
            self.clear()
            self._column = TextColumn()

    def column(self, numbers: Sequence[int]) -> pl.Series:
        """Return the texts of values whose numbers are given (Categorical)."""
        return self._column.gather(pl.Series(numbers, dtype=pl.UInt32))


class TextColumn:
    """A growing list of texts that columns are gathered from.

    Attributes:
        texts: by number.
    """

    def __init__(self) -> None:
        self.texts: list[str | None] = []
        self._series = pl.Series(dtype=pl.Categorical())

    def gather(self, numbers: pl.Series) -> pl.Series:
        """Return the texts with these numbers (Categorical)."""
        known = self._series.len()
        if known < len(self.texts):
            fresh = pl.Series(self.texts[known:], dtype=pl.String).cast(pl.Categorical())
            self._series = self._series.append(fresh).rechunk()
        return self._series[numbers]  # unlike gather() this makes no query of it, which would cost more than the work


class EventLabels(dict[Any, int]):
    """(ph, cat, name, pid, tid) of an event -> its number; looking up new ones adds them.

    One look-up an event instead of five; few combinations occur.

    Args:
        kind: gives the number (below 256) of the group of events that a phase and a category belong to.
        texts: what is stored for the five.

    Attributes:
        kinds: number of the group by number of the labels.
    """

    FIELDS = ("ph", "cat", "name", "pid", "tid")

    def __init__(self, kind: Callable[[Any, Any], int], texts: Sequence[Callable[[Any], str | None]]) -> None:
        super().__init__()
        self._kind = kind
        self._texts = texts
        self.kinds = bytearray()
        self._columns = {name: TextColumn() for name in self.FIELDS}

    def __missing__(self, labels: tuple[Any, ...]) -> int:
        self.kinds.append(self._kind(labels[0], labels[1]))
        for column, text, label in zip(self._columns.values(), self._texts, labels, strict=True):
            column.texts.append(text(label))
        self[labels] = number = len(self)
        return number

    def begin(self) -> None:
        """Forget everything if it has become too much: numbers given so far are void."""
        if len(self) > LIMIT:
            self.clear()
            self.kinds = bytearray()
            self._columns = {name: TextColumn() for name in self.FIELDS}

    def column(self, name: str, numbers: pl.Series) -> pl.Series:
        """Return one of the five (Categorical), given the numbers of the labels (UInt32)."""
        return self._columns[name].gather(numbers)
