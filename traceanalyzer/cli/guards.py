"""What every command line refuses: numbers that no machine word holds, and outputs that would replace an input."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

LARGEST = 2**63 - 1
"""Whole numbers end here in frames and arrays, and in C."""

OUTPUTS = frozenset({"output", "repair", "plot"})
"""Parameters that name what is written."""

_GUARDED = "_traceanalyzer_guarded"


def guarded(command: click.Command) -> click.Command:
    """Give a command the checks that hold for all of them, once."""
    if command.callback is None or getattr(command.callback, _GUARDED, False):
        return command
    run = command.callback

    @functools.wraps(run)
    def checked(*arguments: Any, **options: Any) -> Any:
        context = click.get_current_context()
        refuse_huge_numbers(context)
        refuse_replacing_an_input(context)
        return run(*arguments, **options)

    setattr(checked, _GUARDED, True)
    command.callback = checked
    return command


def refuse_huge_numbers(context: click.Context) -> None:
    """Stop where a whole number has more than 64 bits.

    Raises:
        click.BadParameter: one has.
    """
    for parameter in context.command.params:
        for value in _values(context, parameter):
            if isinstance(value, int) and abs(value) > LARGEST:
                raise click.BadParameter(f"{value} is too large.", context, parameter)


def refuse_replacing_an_input(context: click.Context) -> None:
    """Stop where the file to be written is one that the command reads, under whatever name; or stdout.

    Raises:
        click.UsageError: it is.
    """
    inputs = [
        value
        for parameter in context.command.params
        if parameter.name not in OUTPUTS
        for value in _values(context, parameter)
        if isinstance(value, str | os.PathLike) and _is_file(value)
    ]
    for parameter in context.command.params:
        if parameter.name not in OUTPUTS:
            continue
        for output in _values(context, parameter):
            if output is not None and str(output) == "-":
                raise click.BadParameter(
                    "- is not a file name, and nothing is written to stdout here: name a file.", context, parameter
                )
            if _is_file(output) and any(Path(output).samefile(each) for each in inputs):
                option = max(parameter.opts, key=len)
                raise click.UsageError(f"{option} would replace {output}, which is read: choose another name")


def _values(context: click.Context, parameter: click.Parameter) -> Iterator[Any]:
    """Return what a parameter was given, one by one where it can be given several times."""
    value = context.params.get(parameter.name or "")
    yield from value if isinstance(value, tuple) else (value,)


def _is_file(value: Any) -> bool:
    """Whether a file lies at a path; what is not a path has none."""
    try:
        return Path(value).is_file()
    except (TypeError, ValueError, OSError):
        return False
