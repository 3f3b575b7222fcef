"""Python values as decoded -> typed columns. Each function takes one value an event and never raises."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import polars as pl

from traceanalyzer.read.loose_json import loose_value

if TYPE_CHECKING:
    from msgspec import Raw

EXACT_FLOAT_US = float(2**43)
"""Below this a float64 of microseconds gives the nanosecond exactly when multiplied by 1000 and rounded."""

MAX_TIME_NS = 2**62
"""Values from here on are not times: the sum of two of them would not fit in 64 bit."""


class NeedsExactTimes(Exception):  # noqa: N818  it is an answer, not an error
    """The float decoder met times as text or beyond the exact range of a float; decode again from the text."""


def times_from_floats(values: Sequence[float | str | None]) -> pl.Series:
    """Return nanoseconds of microsecond floats; null where there is no usable number.

    Raises:
        NeedsExactTimes: see there.
    """
    try:
        us = pl.Series(values, dtype=pl.Float64)
    except TypeError as error:
        raise NeedsExactTimes from error
    if us.len() and (us.abs().max() or 0.0) >= EXACT_FLOAT_US:  # type: ignore[operator]
        raise NeedsExactTimes
    return (us * 1000).round().cast(pl.Int64, strict=False)


def times_from_text(values: Sequence[Raw | None]) -> pl.Series:
    """Return nanoseconds of microseconds written as JSON numbers or strings, without a float in between."""
    raw = [None if v is None else bytes(v) for v in values]
    try:
        text = pl.Series(raw, dtype=pl.Binary).cast(pl.String)
    except pl.exceptions.ComputeError:  # the JSON decoder does not look into what it hands on as it is
        text = pl.Series([None if v is None else v.decode("utf-8", "replace") for v in raw], dtype=pl.String)
    text = text.str.strip_chars(' \t\r\n"')
    ns = text.cast(pl.Decimal(38, 3), strict=False).to_physical().cast(pl.Int64, strict=False)
    unread = (ns.is_null() & text.is_not_null()).arg_true()
    if unread.is_empty():
        return ns
    known = {t: _decimal_ns(t) for t in text.gather(unread).unique()}
    return ns.scatter(unread, [known[t] for t in text.gather(unread)])


def _decimal_ns(text: str) -> int | None:
    try:
        ns = Decimal(text.strip()) * 1000
    except (InvalidOperation, ValueError):
        return None
    if not ns.is_finite() or abs(ns) >= MAX_TIME_NS:
        return None
    return int(ns.to_integral_value())


def label(value: Any) -> str | None:
    """Return the text of a number or string; None for what is neither."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    return str(value)


def integers(values: Sequence[Any], dtype: pl.DataType) -> pl.Series:
    """Return whole numbers written as numbers or text; null where a value is none or does not fit."""
    try:
        wide = pl.Series(values, dtype=pl.Int64)
    except (TypeError, OverflowError):
        wide = pl.Series([_whole(v) for v in values], dtype=pl.Int64)
    return wide.cast(dtype, strict=False)


def _whole(value: Any) -> int | None:
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            return None
    if isinstance(value, float):
        value = int(value) if math.isfinite(value) and value.is_integer() else None
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if -(2**63) <= value < 2**63 else None


def ids(values: Sequence[Any]) -> tuple[pl.Series, dict[int, str]]:
    """Return 64-bit ids, and by row the text of those that are none (too large, negative, not a number).

    -1 and the empty text stand for no id: null.
    """
    try:
        return pl.Series(values, dtype=pl.UInt64), {}
    except (TypeError, OverflowError):
        pass
    oversize: dict[int, str] = {}
    numbers: list[int | None] = []
    for row, value in enumerate(values):
        number = _id(value)
        if number is None and value not in NO_IDS:
            oversize[row] = str(value)
        numbers.append(number)
    return pl.Series(numbers, dtype=pl.UInt64), oversize


NO_IDS = (None, "", -1, "-1", True, False)


def _id(value: Any) -> int | None:
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64:
        return value
    return None


def json_text(raw: bytes) -> str | None:
    """Return JSON as written in one layout; None for null and for what is not JSON."""
    value = loose_value(raw)
    return None if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
