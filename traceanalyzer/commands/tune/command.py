"""``traceanalyzer tune``: a faster tile for a Triton matmul: rank without a GPU, measure on one, prove the gain."""

from __future__ import annotations

import click

from traceanalyzer.cli.command_groups import CommandGroup


@click.group(cls=CommandGroup, words="tune", package="traceanalyzer.commands.tune")
def tune() -> None:
    """Find a faster tile for a Triton matmul.

    From a trace: tune plan. Without a GPU: tune screen. On the GPU: tune run, then tune verify.
    """
