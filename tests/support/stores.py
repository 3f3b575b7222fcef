"""What a test asks of a store."""

from __future__ import annotations

from typing import Any

import polars as pl

from traceanalyzer.read import Store


def kernels(store: Store) -> pl.DataFrame:
    """Return the kernels in order of the file."""
    return store.scan(["kernel"]).sort("index").collect()


def codes(store: Store) -> list[str]:
    """Return the codes of a trace's warnings, sorted."""
    return sorted(warning.code for warning in store.metadata.warnings)


def warning(store: Store, code: str) -> Any:
    """Return the one warning of a code."""
    (found,) = [each for each in store.metadata.warnings if each.code == code]
    return found
