"""The ``traceanalyzer`` command: the first level, and what becomes of errors."""

from __future__ import annotations

import os
import signal
import sys
import threading
from importlib import import_module
from io import TextIOWrapper
from types import FrameType
from typing import Any

import click

from traceanalyzer import __version__
from traceanalyzer.cli.command_groups import CommandGroup
from traceanalyzer.problems import TraceError

COMMANDS = "traceanalyzer.commands"
"""Where commands are found: one folder per command."""

STDERR = 2


class RootGroup(CommandGroup):
    """The first level; an error of any command ends in one line."""

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
        except MemoryError as error:
            raise UnusableInput("not enough memory") from error
        except Exception as error:
            if os.environ.get("TRACEANALYZER_DEBUG"):
                raise
            raise UnusableInput(
                f"internal error ({type(error).__name__}: {error}); set TRACEANALYZER_DEBUG=1 for the traceback"
            ) from error


def of_system(error: OSError) -> str:
    """An error of the operating system in one line, with the file's name where there is one."""
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    return f"{error.filename}: {reason}" if error.filename is not None else f"the system refused: {reason}"


class UnusableInput(click.ClickException):
    """Shown as one line; exit status 1."""

    exit_code = 1

    def format_message(self) -> str:
        """Return the message on one line, control characters made visible."""
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in self.message)


@click.group(
    cls=RootGroup,
    package=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="traceanalyzer")
def cli() -> None:
    """Find out why an LLM server decodes slowly, from its PyTorch Profiler trace.

    Start with: traceanalyzer ingest trace.json.gz
    """


def main() -> None:
    """Run the command line."""
    _open_closed_stderr()
    _clean_up_when_terminated()
    for stream in (sys.stdout, sys.stderr):
        if not isinstance(stream, TextIOWrapper):
            continue
        if stream.encoding.lower().replace("-", "") != "utf8":
            import_module("traceanalyzer.show.plain").make_plain(stream)
        else:
            # Halves of characters, of which names of files can be made, are written out.
            stream.reconfigure(errors="backslashreplace")
    try:
        cli()
    except BrokenPipeError:
        # The reader (head, less) has gone; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        # Help and usage are printed before any command runs: on a full disk, too.
        if os.environ.get("TRACEANALYZER_DEBUG"):
            raise
        UnusableInput(of_system(error)).show()
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _clean_up_when_terminated() -> None:
    """Leave by SIGTERM as by an error, so that temporary files and workers go; a second one ends it at once."""

    def leave(number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        sys.exit(128 + number)

    main_thread = threading.current_thread() is threading.main_thread()
    if main_thread and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, leave)


def _open_closed_stderr() -> None:
    """Give a process that was started with stderr closed one that leads nowhere.

    Else libraries fail on it, and the next file that is opened takes its number, and messages.
    """
    if sys.stderr is None:
        descriptor = os.open(os.devnull, os.O_WRONLY)
        if descriptor != STDERR:
            os.dup2(descriptor, STDERR)
        sys.stderr = open(STDERR, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115


if __name__ == "__main__":
    main()
