"""``traceanalyzer gpus``: the GPUs whose limits are known, with sources."""

from __future__ import annotations

from pathlib import Path

import click

from traceanalyzer.cli.common import emit_json, json_option


@click.command()
@click.argument("name", required=False, metavar="[NAME]")
@json_option
@click.option(
    "--gpu-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A TOML file that describes more GPUs; they come before the built-in ones.",
)
def gpus(name: str | None, as_json: bool, gpu_file: Path | None) -> None:
    """List the GPUs whose limits are known, with the source and confidence of the figures.

    NAME shows one GPU in full: peaks, what is achievable, links, and the sources.
    """
    from traceanalyzer.commands.gpus import view
    from traceanalyzer.hardware import HardwareError, find_gpu, known_gpus, read_gpus
    from traceanalyzer.show.terminal import console

    try:
        own = read_gpus(gpu_file) if gpu_file else ()
    except HardwareError as error:
        raise click.ClickException(str(error)) from error
    table = (*own, *known_gpus())
    try:
        chosen = (find_gpu(name, table),) if name else table
    except HardwareError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        emit_json(view.document(chosen))
        return
    screen = console()
    screen.print(view.render_one(chosen[0]) if name else view.render(chosen, screen.width))
