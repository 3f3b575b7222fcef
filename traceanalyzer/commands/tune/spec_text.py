"""Problems, configurations and axes as people write them on a command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from traceanalyzer.commands.tune.tile_keys import TILE
from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.kernels.space import AXES

MOST_VALUES = 4096


def parse_problem(text: str, named: Mapping[str, Problem], dtype: str | None = None) -> Problem:
    """Read a problem: the name of a known shape, or ``n=5760,k=2880,experts=32,top_k=4`` (m may be left out).

    Without m one token is taken.

    Raises:
        ValueError: it is neither, or a value is out of range.
    """
    if text in named:
        known = named[text]
        return replace(known, dtype=dtype) if dtype else known
    if "=" not in text:
        raise ValueError(f"unknown shape {text!r} (known: {', '.join(named) or 'none'}; or n=...,k=...)")
    values = _numbers(text, ("m", "n", "k", "experts", "top_k"))
    values.setdefault("m", values.get("top_k") or 1)
    return Problem.from_dict({**values, **({"dtype": dtype} if dtype else {})})


def parse_config(text: str) -> Config:
    """Read a configuration: ``16x128x128`` or ``16x128x128x1``, then parameters such as ``,num_warps=8``.

    Raises:
        ValueError: it is not one.
    """
    tile, _, rest = text.partition(",")
    sides = re.fullmatch(r"(\d+)x(\d+)x(\d+)(?:x(\d+))?", tile.strip())
    if not sides:
        raise ValueError(f"a configuration begins with its tile, such as 16x128x128x1, not {tile!r}")
    blocks = dict(zip(TILE, sides.groups(), strict=True))
    values: dict[str, int] = {name: int(value) for name, value in blocks.items() if value is not None}
    return Config.from_dict(values | (_numbers(rest, AXES) if rest else {}))


def parse_axes(texts: Iterable[str]) -> dict[str, tuple[int | None, ...]]:
    """Read axes such as ``block_m=16,32`` (``none`` leaves a value to the compiler).

    Raises:
        ValueError: a name is unknown or a value is not a number.
    """
    axes: dict[str, tuple[int | None, ...]] = {}
    for text in texts:
        name, _, values = text.partition("=")
        if name.strip() not in AXES or not values:
            raise ValueError(f"an axis is written name=value,value with one of {', '.join(AXES)}, not {text!r}")
        axes[name.strip()] = tuple(None if v.strip().lower() == "none" else _number(v) for v in values.split(","))
    return axes


def parse_counts(text: str) -> tuple[int, ...]:
    """Read numbers and ranges such as ``1,2,8-16``.

    Raises:
        ValueError: it is something else, or holds zero.
    """
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        start = _number(first)
        end = _number(last) if dash else start
        if not 1 <= start <= end or end - start > MOST_VALUES:
            raise ValueError(f"{part!r} is not a number of at least 1, nor a range of such")
        numbers += range(start, end + 1)
    return tuple(dict.fromkeys(numbers))


def _numbers(text: str, names: Iterable[str]) -> dict[str, int]:
    known = tuple(names)
    values = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name.strip() not in known:
            raise ValueError(f"unknown key {name.strip()!r} (known: {', '.join(known)})")
        values[name.strip()] = _number(value)
    return values


def _number(text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text.strip()):
        raise ValueError(f"{text.strip()!r} is not a whole number")
    return int(text)
