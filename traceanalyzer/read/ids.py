"""Ids beyond 64 bit: replaced by numbers that nothing else in the trace uses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from traceanalyzer.read.event_struct import IDS
from traceanalyzer.read.store import events_in

OversizeId = tuple[str, str, int, str]
"""File, column, row in it, and the id as text."""


def replace_oversize(directory: Path, oversize: Sequence[OversizeId]) -> dict[int, str]:
    """Write a number in place of every id that does not fit; equal ids get equal numbers.

    Returns:
        The ids as text by the number that stands for them. The numbers count down from the largest of 64 bit,
        leaving out those that the trace itself uses.
    """
    texts = sorted({text for _, _, _, text in oversize})
    if not texts:
        return {}
    used = _used_from(directory, 2**64 - 2 * len(texts) - 1_000_000)
    free = (number for number in range(2**64 - 1, 0, -1) if number not in used)
    number_of = {text: next(free) for text in texts}
    by_file: dict[str, dict[str, list[tuple[int, int]]]] = {}
    for file, column, row, text in oversize:
        by_file.setdefault(file, {}).setdefault(column, []).append((row, number_of[text]))
    for file, columns in by_file.items():
        frame = pl.read_parquet(directory / file)
        for column, rows in columns.items():
            at, numbers = zip(*rows, strict=True)
            frame = frame.with_columns(frame[column].scatter(list(at), pl.Series(numbers, dtype=pl.UInt64)))
        frame.write_parquet(directory / file, compression="zstd", compression_level=1)
    return {number: text for text, number in number_of.items()}


def _used_from(directory: Path, threshold: int) -> set[int]:
    """Return the ids from a threshold on that the trace itself uses."""
    used: set[int] = set()
    for path in directory.glob("*.parquet"):
        frame = events_in([path]).select(IDS).collect()
        for column in IDS:
            used |= set(frame[column].filter(frame[column] >= threshold).unique().to_list())
    return used
