"""What every analysis command shares: its arguments, opening traces, showing warnings, printing JSON."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from traceanalyzer.words import PHASES

if TYPE_CHECKING:
    from pathlib import Path

    from traceanalyzer.declare import Part
    from traceanalyzer.problems import TraceWarning
    from traceanalyzer.trace import Trace, TraceSet

F = TypeVar("F", bound=Callable[..., Any])


class FiniteRange(click.FloatRange):
    """A range of numbers that holds neither NaN nor infinity."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read a number within the range."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


PIPE_HELP = (
    "A trace named - is standard input; named pipes and <(COMMAND) work too. What comes through a pipe is not cached: "
    "`traceanalyzer ingest - --output DIR` keeps it, and DIR then stands for the trace."
)


def reads_pipes(command: F) -> F:
    """Say in the help of a command that its traces may come through pipes."""
    command.__doc__ = f"{inspect.cleandoc(command.__doc__ or '')}\n\n{PIPE_HELP}"
    return command


def paths_argument(command: F) -> F:
    """Give a command PATH...: traces, ingested stores, directories of ranks, archives or pipes."""
    return click.argument("paths", nargs=-1, required=True, metavar="PATH...")(reads_pipes(command))


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")

csv_option = click.option("--csv", "as_csv", is_flag=True, help="Print the table as CSV, times in µs.")

no_cache_option = click.option("--no-cache", is_flag=True, help="Neither read nor write the cache of ingested traces.")


QUIET = "traceanalyzer.quiet"
"""Where the root context keeps whether --quiet was given."""

rank_option = click.option("--rank", type=int, help="The rank to look at, where the input holds several.")

phase_option = click.option("--phase", type=click.Choice(PHASES), help="Only the complete steps of this phase.")

step_option = click.option(
    "--step", type=click.IntRange(min=0), help="Only the step of this index, as `ingest` numbers them."
)


def limit_option(rows: int) -> Callable[[F], F]:
    """Give a command ``--limit``: the rows of its table, ``rows`` unless it is given."""
    return click.option(
        "--limit", type=click.IntRange(min=0), default=rows, show_default=True, help="Rows shown; 0 shows all."
    )


def analysis_options(command: F) -> F:
    """Give a command PATH..., --json and --no-cache."""
    return paths_argument(json_option(no_cache_option(command)))


def open_inputs(paths: Iterable[str], *, no_cache: bool = False, output: Path | None = None) -> TraceSet:
    """Open every trace at the paths.

    Raises:
        TraceError: none can be used.
        click.UsageError: the command line names a pipe twice.
    """
    paths = list(paths)
    _refuse_pipe_twice(paths)
    from traceanalyzer.show.progress import ingest_progress
    from traceanalyzer.trace import open_traces

    if is_quiet():
        return open_traces(paths, cache=not no_cache, output=output)
    with ingest_progress() as progress:
        return open_traces(paths, cache=not no_cache, output=output, progress=progress)


def _refuse_pipe_twice(paths: Sequence[str]) -> None:
    """Stop with a usage error, before anything is read, where a pipe is named twice: it gives its bytes once."""
    from traceanalyzer.read.input_path import named_twice
    from traceanalyzer.read.pipes import READ_ONCE

    context = click.get_current_context(silent=True)
    named = [] if context is None else [text for each in context.command.params for text in _paths_of(each, context)]
    twice = named_twice(paths) or named_twice(named)
    if twice is not None:
        raise click.UsageError(f"{READ_ONCE}, and {twice} is named twice")


def _paths_of(parameter: click.Parameter, context: click.Context) -> list[str]:
    """Return what may be paths of traces among the values of a parameter: those of arguments, of options only ``-``."""
    value = context.params.get(parameter.name or "")
    texts = [text for text in (value if isinstance(value, tuple) else [value]) if isinstance(text, str)]
    return texts if isinstance(parameter, click.Argument) else [text for text in texts if text == "-"]


def open_one(paths: Iterable[str], *, rank: int | None = None, no_cache: bool = False) -> Trace:
    """Open the one trace that a command looks at.

    Raises:
        TraceError: none can be used.
        click.UsageError: there are several and ``rank`` does not pick one.
    """
    traces = open_inputs(paths, no_cache=no_cache)
    if rank is None and len(traces) == 1:
        return traces.traces[0]
    counts = Counter(trace.rank for trace in traces if trace.rank is not None)
    if rank is None and 1 not in counts.values():
        raise click.UsageError(
            f"the input holds {len(traces)} traces, and their ranks do not tell them apart: name one"
        )
    if rank is None:
        raise click.UsageError(f"the input holds {len(traces)} traces; pick one with --rank: {_known_ranks(traces)}")
    chosen = of_rank(traces, rank)
    if len(chosen) > 1:
        raise click.UsageError(f"{len(chosen)} traces are of rank {rank}: name one")
    return chosen[0]


def of_rank(traces: TraceSet, rank: int) -> list[Trace]:
    """Return the traces of a rank: one, unless several claim it.

    Raises:
        click.UsageError: there is none.
    """
    chosen = [trace for trace in traces if trace.rank == rank]
    if not chosen:
        raise click.UsageError(f"no trace is of rank {rank}: the ranks are {_known_ranks(traces)}")
    return chosen


def _known_ranks(traces: TraceSet) -> str:
    return ", ".join(str(number) for number in traces.ranks) or "unknown ranks only"


def warnings_of(trace: Trace) -> list[TraceWarning]:
    """Warnings about a trace, from reading it and from segmenting it, with the name of its file."""
    from traceanalyzer.segment import segment

    source = trace.metadata.source.path
    return [w if w.source else w.at(source) for w in (*trace.metadata.warnings, *segment(trace).warnings)]


def is_quiet() -> bool:
    """Whether --quiet was given: neither warnings nor progress are shown."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().meta.get(QUIET))


def tell(message: str) -> None:
    """Print a line on stderr, unless --quiet was given."""
    if not is_quiet():
        click.echo(message, err=True)


def show_warnings(warnings: Iterable[TraceWarning]) -> None:
    """Print warnings on stderr, one line each, unless --quiet was given."""
    from traceanalyzer.wording import warning_line

    if is_quiet():
        return
    for warning in warnings:
        click.echo(warning_line(warning), err=True)


def emit_json(document: Any) -> None:
    """Print the one JSON document of a command on stdout."""
    import json

    from traceanalyzer.declare import Part, plain

    # Not msgspec's encoder: names in traces may hold surrogates, which only escaped JSON can carry.
    click.echo(json.dumps(plain(document) if isinstance(document, Part) else document, allow_nan=False))


def emit_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any] | Part]) -> None:
    """Print a command's table as CSV on stdout: rows are declared parts or mappings."""
    from traceanalyzer.show.csv_text import to_csv

    click.echo(to_csv(columns, rows), nl=False)


def refuse_both(as_json: bool, as_csv: bool) -> None:
    """Stop with a usage error when two output formats are asked for at once."""
    if as_json and as_csv:
        raise click.UsageError("--json and --csv exclude each other")


def require_phase(trace: Trace, phase: str | None) -> None:
    """Stop, with status 1, where no complete step of a trace has the phase that --phase asks for.

    Raises:
        TraceError: it says which steps there are, and what to do.
    """
    if phase is None:
        return
    from traceanalyzer.problems import TraceError
    from traceanalyzer.segment.selection import lacking_phase

    lacking = lacking_phase(trace, phase)
    if lacking is not None:
        raise TraceError(trace.metadata.source.path, lacking)


def refuse_other_phase(trace: Trace, step: int | None, phase: str | None) -> None:
    """Stop with a usage error where --step names a step of another phase than --phase."""
    if step is None or phase is None:
        return
    from traceanalyzer.segment import segment

    steps = segment(trace).only(step=step).steps
    phases = steps["phase"].unique(maintain_order=True).to_list()
    if phases and phase not in phases:
        raise click.UsageError(f"no step fits --step and --phase: the phase of step {step} is {' or '.join(phases)}")
