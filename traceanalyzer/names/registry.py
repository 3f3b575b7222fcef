"""The ordered list of naming schemes: a cheap filter, a regular expression and a reader each."""

from __future__ import annotations

import importlib
import pkgutil
import re
from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName

Reader = Callable[[NameView, "re.Match[str]"], "KernelName | None"]


@dataclass(frozen=True)
class Scheme:
    """One way of naming kernels.

    A name is offered to `read` when it starts with one of `prefixes` or contains one of `contains` (both in
    lower case; with neither given, always) and `pattern` is found in it. `read` may decline with ``None``.
    Schemes are tried by rising `order`; specific ones come first.
    """

    order: int
    name: str
    prefixes: tuple[str, ...]
    contains: tuple[str, ...]
    pattern: re.Pattern[str]
    read: Reader


_SCHEMES: list[Scheme] = []


def register(
    name: str,
    *,
    order: int,
    prefixes: tuple[str, ...] = (),
    contains: tuple[str, ...] = (),
    pattern: str = "",
) -> Callable[[Reader], Reader]:
    """Add the decorated reader as a scheme; a second scheme of the same name is an error."""

    def add(read: Reader) -> Reader:
        if any(scheme.name == name for scheme in _SCHEMES):
            raise ValueError(f"naming scheme {name!r} is registered twice")
        scheme = Scheme(order, name, prefixes, contains, re.compile(pattern), read)
        insort(_SCHEMES, scheme, key=lambda entry: (entry.order, entry.name))
        return read

    return add


@cache
def schemes() -> tuple[Scheme, ...]:
    """All schemes in the order they are tried; every module of `names.schemes` registers its own."""
    package = importlib.import_module("traceanalyzer.names.schemes")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return tuple(_SCHEMES)


def first_reading(view: NameView) -> KernelName | None:
    """Return the reading of the first scheme that takes the name, if any does.

    Names that differ in numbers only, as most of many do, share the search for schemes that may take them.
    """
    lower = view.lower
    outline = lower.translate(_WITHOUT_NUMBERS)
    candidates = _kept_candidates(outline) if len(outline) <= _KEPT_LENGTH else _candidates(outline)
    for scheme in candidates:
        if not _offered(scheme.prefixes, scheme.contains, lower):
            continue
        match = scheme.pattern.search(view.text)
        if match is not None and (reading := scheme.read(view, match)) is not None:
            return reading
    return None


_WITHOUT_NUMBERS = str.maketrans("123456789", "0" * 9)


_KEPT_LENGTH = 2_000
"""Characters of an outline that is kept, so that a few megabytes hold them all. Chosen, not fitted."""


def _candidates(outline: str) -> tuple[Scheme, ...]:
    """Return the schemes that may take names of an outline: lower case, every digit a zero."""
    return tuple(scheme for prefixes, contains, scheme in _outlined() if _offered(prefixes, contains, outline))


_kept_candidates = lru_cache(maxsize=4096)(_candidates)


@cache
def _outlined() -> tuple[tuple[tuple[str, ...], tuple[str, ...], Scheme], ...]:
    """Return prefixes and parts of every scheme as outlines."""
    return tuple(
        (
            tuple(text.translate(_WITHOUT_NUMBERS) for text in scheme.prefixes),
            tuple(text.translate(_WITHOUT_NUMBERS) for text in scheme.contains),
            scheme,
        )
        for scheme in schemes()
    )


def _offered(prefixes: tuple[str, ...], contains: tuple[str, ...], lower: str) -> bool:
    """Return whether a name passes a scheme's cheap filter; a loop, as a generator takes twice as long."""
    if prefixes and lower.startswith(prefixes):
        return True
    for part in contains:
        if part in lower:
            return True
    return not (prefixes or contains)
