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
    from traceanalyzer.commands.name import view as report
    from traceanalyzer.show.terminal import console

    if as_json:
        emit_json(report.document(names))
    else:
        console().print(report.render(names))
