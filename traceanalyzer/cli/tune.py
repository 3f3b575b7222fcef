"""``traceanalyzer tune``: find a faster tile for a Triton matmul, from ranking without a GPU to proving the gain."""

from __future__ import annotations

from importlib import import_module

import click

COMMANDS = {
    "configs": "tuned MoE configurations that a vLLM server missed",
    "export": "write rules for vLLM: configuration file, patch, plugin",
    "import": "read measured tiles from files of other programs",
    "plan": "pick the kernel of a trace that is worth tuning, with its shape",
    "policy": "make rules: the fewest configurations over m that lose little",
    "replay": "try the search on a recorded sweep",
    "run": "measure candidates on the local GPU",
    "screen": "rank candidates without a GPU",
    "verify": "measure before and after in turns",
}
"""Command name -> the line that --help shows. Each lives in the module ``tune_<name>`` (the function of ``import`` is
``import_``)."""


class LazyTuneGroup(click.Group):
    """A group whose commands are imported when they run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name every command without importing one."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"traceanalyzer.cli.tune_{cmd_name}")
        command: click.Command = getattr(module, f"{cmd_name}_" if cmd_name == "import" else cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table above."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(cls=LazyTuneGroup)
def tune() -> None:
    """Find a faster tile for a Triton matmul.

    From a trace: tune plan. Without a GPU: tune screen. On the GPU: tune run, then tune verify.
    """
