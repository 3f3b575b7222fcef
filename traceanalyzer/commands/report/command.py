"""``traceanalyzer report``: one HTML page: verdict, blocks, hotspots, roofline, idle time, ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from traceanalyzer.cli.common import (
    no_cache_option,
    of_rank,
    open_inputs,
    open_one,
    reads_pipes,
    require_phase,
    show_warnings,
    tell,
)
from traceanalyzer.cli.request_options import Given, request_options

if TYPE_CHECKING:
    from traceanalyzer.commands.report.gather import PageData, TraceView
    from traceanalyzer.roofline import Request
    from traceanalyzer.trace import Trace


@click.command()
@click.argument("paths", nargs=-1, metavar="PATH...")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="The page to write.",
)
@click.option("--diff", "two", is_flag=True, help="Compare two traces: PATH is BEFORE and AFTER.")
@click.option(
    "--serving", multiple=True, metavar="RESULTS", help="Add serving results; give it twice for before and after."
)
@request_options
@click.option(
    "--rank", type=int, help="The rank shown in detail, where the input holds several; the lowest by default."
)
@no_cache_option
@reads_pipes
def report(
    paths: tuple[str, ...],
    output: Path,
    two: bool,
    serving: tuple[str, ...],
    given: Given,
    rank: int | None,
    no_cache: bool,
) -> None:
    """Write a self-contained HTML page: verdict, blocks, hotspots, roofline, idle time, ranks, warnings.

    PATH is a trace, a directory or archive of ranks, or an ingested store; with --diff two of them. The page needs no
    network and can be passed on as one file.
    """
    from traceanalyzer.commands.report.gather import gather_serving
    from traceanalyzer.commands.report.page import render
    from traceanalyzer.files import write_whole
    from traceanalyzer.roofline import RooflineError

    if not paths and not serving:
        raise click.UsageError("expected a PATH, or --serving RESULTS")
    if two and len(paths) != 2:
        raise click.UsageError(f"--diff compares two traces, got {len(paths)}")
    try:
        request = given.request(no_cache=no_cache)
        data = _two(paths, request, rank, no_cache) if two else _one(paths, request, rank, no_cache)
    except RooflineError as error:
        raise click.UsageError(str(error)) from error
    if serving:
        results = gather_serving(serving)
        show_warnings(results.warnings)
        data = replace(data, serving=results)
    show_warnings(data.warnings)
    write_whole(output, render(data))
    tell(f"wrote {output} ({output.stat().st_size / 1000:,.0f} kB)")


def _view(trace: Trace, request: Request) -> TraceView:
    from traceanalyzer.commands.report.gather import gather_trace

    require_phase(trace, request.phase)
    view = gather_trace(trace, request)
    show_warnings(view.warnings)
    return view


def _two(paths: tuple[str, ...], request: Request, rank: int | None, no_cache: bool) -> PageData:
    from traceanalyzer.commands.diff.compute import diff
    from traceanalyzer.commands.report.gather import PageData, Sides

    before, after = (_view(open_one([path], rank=rank, no_cache=no_cache), request) for path in paths)
    sides = Sides(before, after, diff(before.trace, after.trace, phase=request.phase))
    return PageData(sides=sides, again=_again(paths[1:], after.trace, alone=rank is None))


def _one(paths: tuple[str, ...], request: Request, rank: int | None, no_cache: bool) -> PageData:
    from traceanalyzer.commands.report.gather import PageData, gather_ranks

    if not paths:
        return PageData()
    traces = open_inputs(paths, no_cache=no_cache)
    chosen = traces.traces if rank is None else of_rank(traces, rank)
    view = _view(chosen[0], request)
    ranks, told = gather_ranks(traces)
    # The view's warnings have been shown.
    own = tuple(one for one in told if one not in view.warnings)
    again = _again(paths, view.trace, alone=len(traces) == 1)
    return PageData(trace=view, ranks=ranks, warnings=own, again=again)


def _again(paths: tuple[str, ...], trace: Trace, *, alone: bool) -> str:
    """Return the arguments with which another command opens a trace.

    They are the path given where it holds nothing else, else the trace's own file, else all paths and its rank.
    """
    import shlex

    from traceanalyzer.read.input_path import input_path, is_file
    from traceanalyzer.wording import visible

    if any(input_path(path).kind == "pipe" for path in paths):
        # What came through a pipe is gone; `ingest --output DIR` would have kept it.
        return "DIR"
    own = trace.metadata.source.path
    if not alone and is_file(own):
        return shlex.quote(visible(own))
    words = [shlex.quote(visible(path)) for path in paths]
    return " ".join(words if alone or trace.rank is None else [*words, f"--rank {trace.rank}"])
