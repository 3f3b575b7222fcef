"""Ids beyond 64 bit: replaced by numbers that nothing else in the trace uses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from traceanalyzer.read.event_struct import IDS
from traceanalyzer.read.store import events_in

OversizeId = tuple[str, str, int, str]
"""File, column, row in it, and the id as text."""


def replace_oversize(directory: Path, found: Sequence[OversizeId]) -> dict[int, str]:
    """Write a number in place of every id that does not fit; equal ids get equal numbers.

    Returns:
        The ids as text by the number that stands for them. The numbers count down from the largest of 64 bit,
        leaving out those that the trace itself uses.
    """
    texts = sorted({text for _, _, _, text in found})
    if not texts:
        return {}
    threshold = 2**64 - 2 * len(texts) - 1_000_000
    used: set[int] = set()
    for path in directory.glob("*.parquet"):
        frame = events_in([path]).select(IDS).collect()
        for column in IDS:
            used |= set(frame[column].filter(frame[column] >= threshold).unique().to_list())
    free = (number for number in range(2**64 - 1, 0, -1) if number not in used)
    number_of = {text: next(free) for text in texts}
    for name in sorted({name for name, _, _, _ in found}):
        path = directory / name
        frame = pl.read_parquet(path)
        for column in IDS:
            rows = [(row, number_of[text]) for file, of, row, text in found if file == name and of == column]
            if rows:
                at, numbers = zip(*rows, strict=True)
                frame = frame.with_columns(frame[column].scatter(list(at), pl.Series(numbers, dtype=pl.UInt64)))
        frame.write_parquet(path, compression="zstd", compression_level=1)
    return {number: text for text, number in number_of.items()}
