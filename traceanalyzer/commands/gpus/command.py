"""``traceanalyzer gpus``: the GPUs whose limits are known, with sources."""

from __future__ import annotations

from pathlib import Path

import click

from traceanalyzer.cli.forms import Form, json_form, show
from traceanalyzer.cli.request_options import gpu_file_option


@click.command()
@click.argument("name", required=False, metavar="[NAME]")
@json_form
@gpu_file_option
def gpus(name: str | None, form: Form, gpu_file: Path | None) -> None:
    """List the GPUs whose limits are known, with the source and confidence of the figures.

    NAME shows one GPU in full: peaks, what is achievable, links, and the sources.
    """
    from traceanalyzer.commands.gpus import view
    from traceanalyzer.hardware import HardwareError, find_gpu, known_gpus, read_gpus

    try:
        own = read_gpus(gpu_file) if gpu_file else ()
    except HardwareError as error:
        raise click.ClickException(str(error)) from error
    table = (*own, *known_gpus())
    try:
        chosen = (find_gpu(name, table),) if name else table
    except HardwareError as error:
        raise click.UsageError(str(error)) from error
    show(
        form,
        view.document(chosen),
        render=lambda width: view.render_one(chosen[0]) if name else view.render(chosen, width),
    )
