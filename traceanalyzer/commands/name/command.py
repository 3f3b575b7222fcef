"""``traceanalyzer name``: what kernel names say: scheme, tile, types, knob."""

from __future__ import annotations

import click

from traceanalyzer.cli.common import emit_json, json_option


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@json_option
def name(names: tuple[str, ...], as_json: bool) -> None:
    """Read kernel names: scheme, tile, element types, and whether the tile can be changed.

    What a name does not contain is shown as unknown.
    """
    from traceanalyzer.commands.name import view
    from traceanalyzer.commands.name.result import NamesDocument
    from traceanalyzer.names import parse
    from traceanalyzer.show.terminal import console

    readings = [parse(name) for name in names]
    if as_json:
        emit_json(NamesDocument(names=readings))
    else:
        console().print(view.render(readings))
