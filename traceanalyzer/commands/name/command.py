"""``traceanalyzer name``: what kernel names say: scheme, tile, types, knob."""

from __future__ import annotations

import click

from traceanalyzer.cli.forms import Form, json_form, show


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@json_form
def name(names: tuple[str, ...], form: Form) -> None:
    """Read kernel names: scheme, tile, element types, and whether the tile can be changed.

    What a name does not contain is shown as unknown.
    """
    from traceanalyzer.commands.name import view
    from traceanalyzer.commands.name.result import NamesDocument
    from traceanalyzer.names import parse

    readings = [parse(name) for name in names]
    show(form, NamesDocument(names=readings), render=lambda _: view.render(readings))
