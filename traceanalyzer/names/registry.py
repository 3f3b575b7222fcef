"""The ordered list of naming schemes: a cheap filter, a regular expression and a reader each."""

from __future__ import annotations

import importlib
import pkgutil
import re
from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

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

    The filter is written out in one loop: with a call per scheme, a parse takes twice as long.
    """
    lower = view.lower
    for scheme in schemes():
        contains = scheme.contains
        if not (scheme.prefixes and lower.startswith(scheme.prefixes)):
            for part in contains:
                if part in lower:
                    break
            else:
                if contains or scheme.prefixes:
                    continue
        match = scheme.pattern.search(view.text)
        if match is not None and (reading := scheme.read(view, match)) is not None:
            return reading
    return None
