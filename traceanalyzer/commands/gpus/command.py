"""``traceanalyzer gpus``: the GPUs whose limits are known, with sources."""

from __future__ import annotations

from pathlib import Path

import click

from traceanalyzer.cli.forms import Form, json_form, show
from traceanalyzer.cli.request_options import gpu_file_option, gpus_of, named_gpu


@click.command()
@click.argument("name", required=False, metavar="[NAME]")
@json_form
@gpu_file_option
def gpus(name: str | None, form: Form, gpu_file: Path | None) -> None:
    """List the GPUs whose limits are known, with the source and confidence of the figures.

    NAME shows one GPU in full: peaks, what is achievable, links, and the sources.
    """
    from traceanalyzer.commands.gpus import view
    from traceanalyzer.hardware import known_gpus

    chosen = (named_gpu(name, gpu_file),) if name else (*gpus_of(gpu_file), *known_gpus())
    show(
        form,
        view.document(chosen),
        render=lambda width: view.render_one(chosen[0]) if name else view.render(chosen, width),
    )
