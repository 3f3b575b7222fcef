"""``traceanalyzer tune configs``: tuned MoE configurations that a vLLM server missed."""

from __future__ import annotations

from pathlib import Path

import click

from traceanalyzer.cli.common import json_option
from traceanalyzer.commands.tune.options import answer


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

    lookup = missing_configs(log, folder)
    answer(lookup, as_json, lambda width: view.render(lookup))
