"""``traceanalyzer tune configs``: tuned MoE configurations that a vLLM server missed."""

from __future__ import annotations

from pathlib import Path

import click

from traceanalyzer.cli.common import emit_json, json_option


@click.command()
@click.argument("log", type=click.Path(path_type=Path))
@click.option("--folder", type=click.Path(path_type=Path), help="Configuration files to compare with what was missed.")
@json_option
def configs(log: Path, folder: Path | None, as_json: bool) -> None:
    """List the configuration files that a vLLM server's LOG says it did not find, each once.

    With --folder, say which of the files there are for a shape close to the missing one, and why they were not used.
    """
    from traceanalyzer.commands.tune.configs import view
    from traceanalyzer.commands.tune.configs.compute import missing_configs
    from traceanalyzer.show.terminal import console

    lookup = missing_configs(log, folder)
    if as_json:
        emit_json(view.document(lookup))
        return
    console().print(view.render(lookup))
