"""The ``traceanalyzer`` command: finds a command's module only when it is asked for."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import click

from traceanalyzer import __version__
from traceanalyzer.cli.common import QUIET
from traceanalyzer.problems import TraceError

COMMANDS = {
    "blocks": "the transformer blocks of every step",
    "capture": "record a trace of a running vLLM or SGLang server",
    "doctor": "what is wrong with a trace file, and a valid copy of it",
    "diff": "what changed between two traces, role by role",
    "estimate": "TTFT, TPOT and tokens/s of a model on GPUs, without running it",
    "export": "the trace with its steps for Perfetto; tables as CSV, Parquet or Excel",
    "gpus": "the GPUs whose limits are known, with sources",
    "hotspots": "which kernels, roles or families the time goes to",
    "idle": "when the GPU waits, and what the host does meanwhile",
    "ingest": "read traces, find steps and blocks, and print an overview",
    "name": "what kernel names say: scheme, tile, types, knob",
    "ranks": "waiting, late ranks, pipeline stages and expert load of a job of many ranks",
    "report": "one HTML page: verdict, blocks, hotspots, roofline, idle time, ranks",
    "roofline": "what bounds each kind of work, how far it is from its roof, what could be won",
    "serving": "list and compare results of serving benchmarks",
    "tune": "find a faster tile for a Triton matmul: rank without a GPU, measure on one, prove the gain",
}
"""Command name -> the line that --help shows. Each lives in the module of its name (``-`` becomes ``_``)."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they run, so that --help answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name every command without importing one."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"traceanalyzer.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return with_quiet(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table above."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what it cannot use ends in one line and exit status 1."""
        try:
            return super().invoke(ctx)
        except TraceError as error:
            raise UnusableInput(str(error)) from error
        except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise
        except OSError as error:
            if os.environ.get("TRACEANALYZER_DEBUG"):
                raise
            raise UnusableInput(of_system(error)) from error
        except Exception as error:
            if os.environ.get("TRACEANALYZER_DEBUG"):
                raise
            raise UnusableInput(
                f"internal error ({type(error).__name__}: {error}); set TRACEANALYZER_DEBUG=1 for the traceback"
            ) from error


def of_system(error: OSError) -> str:
    """What the system refused, in one line that names the file where there is one."""
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    return f"{error.filename}: {reason}" if error.filename is not None else f"the system refused: {reason}"


def with_quiet(command: click.Command) -> click.Command:
    """Give a command, and those below it, the option --quiet."""
    for one in [command, *getattr(command, "commands", {}).values()]:
        if not any(parameter.name == "quiet" for parameter in one.params):
            one.params.append(
                click.Option(
                    ["-q", "--quiet"],
                    is_flag=True,
                    expose_value=False,
                    callback=_be_quiet,
                    help="Show neither warnings nor progress; errors remain.",
                )
            )
    return command


def _be_quiet(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.find_root().meta[QUIET] = True


class UnusableInput(click.ClickException):
    """Shown as one line; exit status 1."""

    exit_code = 1

    def format_message(self) -> str:
        """Return the message on one line, control characters made visible."""
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in self.message)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="traceanalyzer")
def cli() -> None:
    """Find out why an LLM server decodes slowly, from its PyTorch Profiler trace.

    Start with: traceanalyzer ingest trace.json.gz
    """


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            import_module("traceanalyzer.report.plain").make_plain(stream)
    try:
        cli()
    except BrokenPipeError:
        # The reader (head, less) has gone; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


if __name__ == "__main__":
    main()
