"""``traceanalyzer serving``: list and compare results of serving benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from traceanalyzer.cli.common import json_option, show_warnings
from traceanalyzer.cli.forms import Form, forms_of
from traceanalyzer.cli.forms import show as show_result
from traceanalyzer.cli.plotting import plot_option_of
from traceanalyzer.wording import plural

if TYPE_CHECKING:
    from traceanalyzer.serving.result import GpuUtilisation

form_options = forms_of(
    json_option,
    click.option("--csv", "as_csv", is_flag=True, help="Print the table as CSV, every metric in its own unit."),
)
plot_option = plot_option_of("Draw output tokens/s over concurrency")


@click.group()
def serving() -> None:
    """List and compare results of serving benchmarks.

    Understood: result files of `vllm bench serve`, `bench latency`, `bench throughput` and SGLang's bench_serving
    (JSON, JSON lines), folders of `vllm bench sweep`, their printed tables pasted as text, and CSV or Markdown tables.
    """


@serving.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@plot_option
@click.option("--utilisation", "logs", multiple=True, metavar="LOG", help="nvidia-smi, amd-smi or DCGM log to average.")
@form_options
def show(paths: tuple[str, ...], plot: Path | None, logs: tuple[str, ...], form: Form) -> None:
    """Show results as a table over concurrencies, and check that their figures fit together."""
    from traceanalyzer.commands.serving import view
    from traceanalyzer.commands.serving.plot import throughput_curves
    from traceanalyzer.serving.read import read
    from traceanalyzer.serving.result_checks import check, failed
    from traceanalyzer.serving.series import series, show_columns, show_rows
    from traceanalyzer.serving.utilisation import read_utilisation

    given = read(paths)
    utilisation = [row for log in logs for row in read_utilisation(log, Path(log).name)]
    warnings = [*given.warnings, *(w for result in given.results for w in check(result)), *failed(given.results)]
    show_warnings(warnings)
    listed = series(given.results)
    rows = show_rows(listed)
    show_result(
        form,
        view.show_document(listed, utilisation, warnings),
        csv=(show_columns(rows), rows),
        render=lambda width: view.render_show(listed, utilisation, width),
        plot=(plot, lambda: throughput_curves({one.name: one.points for one in listed})),
    )


@serving.command()
@click.argument("sides", nargs=-1, required=True, metavar="BEFORE AFTER | --layouts NAME=PATH...")
@click.option("--select-before", multiple=True, metavar="KEY=VALUE", help="Of BEFORE, only runs with this setting.")
@click.option("--select-after", multiple=True, metavar="KEY=VALUE", help="Of AFTER, only runs with this setting.")
@click.option(
    "--layouts", is_flag=True, help="Compare named results, such as tp=DIR pp=DIR ep=DIR, by ranges of ratios."
)
@click.option("--reference", metavar="NAME", help="With --layouts: compare all others with this one only.")
@plot_option
@click.option(
    "--utilisation",
    "logs",
    multiple=True,
    metavar="NAME=LOG",
    help="nvidia-smi, amd-smi or DCGM log to average; NAME is before, after or a layout.",
)
@form_options
def compare(
    sides: tuple[str, ...],
    select_before: tuple[str, ...],
    select_after: tuple[str, ...],
    layouts: bool,
    reference: str | None,
    plot: Path | None,
    logs: tuple[str, ...],
    form: Form,
) -> None:
    """Compare two sides, each a file, a folder, a pattern or a list with commas.

    Runs are paired by concurrency (or request rate); runs of the same load are repetitions, whose scatter tells a real
    change from noise. Every metric knows whether higher or lower is better.
    """
    if layouts:
        if select_before or select_after:
            raise click.UsageError("--select-before and --select-after do not go with --layouts")
        named = _named(sides, "--layouts")
        _compare_layouts(named, reference, plot, _utilisation(logs, tuple(named)), form)
        return
    if reference is not None:
        raise click.UsageError("--reference goes with --layouts")
    if len(sides) != 2:
        raise click.UsageError(
            f"expected BEFORE and AFTER, got {plural(len(sides), 'path')}; commas join the files of one side"
        )
    from msgspec import structs

    from traceanalyzer.commands.serving import view
    from traceanalyzer.commands.serving.plot import throughput_curves
    from traceanalyzer.declare import csv_columns
    from traceanalyzer.serving.comparison import compare as compare_sides
    from traceanalyzer.serving.grouping import group, select
    from traceanalyzer.serving.read import read
    from traceanalyzer.serving.result import MetricChange

    utilisation = _utilisation(logs, ("before", "after"))
    before, after = (read(side) for side in sides)
    old = select(before.results, select_before, "--select-before")
    new = select(after.results, select_after, "--select-after")
    comparison = compare_sides(old, new, utilisation)
    comparison = structs.replace(comparison, warnings=[*before.warnings, *after.warnings, *comparison.warnings])
    show_warnings(comparison.warnings)
    show_result(
        form,
        comparison,
        csv=(csv_columns(MetricChange), comparison.metrics),
        render=lambda width: view.render_comparison(comparison, width),
        plot=(plot, lambda: throughput_curves({"before": group(old), "after": group(new)})),
    )


def _compare_layouts(
    named: dict[str, str],
    reference: str | None,
    plot: Path | None,
    utilisation: list[GpuUtilisation],
    form: Form,
) -> None:
    from msgspec import structs

    from traceanalyzer.commands.serving import view
    from traceanalyzer.commands.serving.layouts import compare_layouts
    from traceanalyzer.commands.serving.plot import throughput_curves
    from traceanalyzer.commands.serving.result import LayoutRatio
    from traceanalyzer.declare import csv_columns
    from traceanalyzer.serving.grouping import group
    from traceanalyzer.serving.read import read

    if len(named) < 2:
        raise click.UsageError("--layouts needs at least two NAME=PATH")
    if reference is not None and reference not in named:
        raise click.UsageError(f"--reference {reference} is not one of the layouts ({', '.join(named)})")
    sides = {name: read(path) for name, path in named.items()}
    compared = compare_layouts({name: side.results for name, side in sides.items()}, reference, utilisation)
    odd = [warning for side in sides.values() for warning in side.warnings]
    compared = structs.replace(compared, warnings=[*odd, *compared.warnings])
    show_warnings(compared.warnings)
    show_result(
        form,
        compared,
        csv=(csv_columns(LayoutRatio), compared.ratios),
        render=lambda width: view.render_layouts(compared, width),
        plot=(plot, lambda: throughput_curves({name: group(side.results) for name, side in sides.items()})),
    )


def _named(pairs: tuple[str, ...], option: str) -> dict[str, str]:
    """Split NAME=PATH arguments."""
    named: dict[str, str] = {}
    for pair in pairs:
        name, separator, path = pair.partition("=")
        if not (separator and name and path):
            raise click.UsageError(f"{option}: expected NAME=PATH, got {pair}")
        if name in named:
            raise click.UsageError(f"{option}: {name} is given twice; join its paths with commas")
        named[name] = path
    return named


def _utilisation(logs: tuple[str, ...], names: tuple[str, ...]) -> list[GpuUtilisation]:
    from traceanalyzer.serving.utilisation import read_utilisation

    named = _named(logs, "--utilisation")
    unknown = [name for name in named if name not in names]
    if unknown:
        raise click.UsageError(f"--utilisation: {unknown[0]} is not one of {', '.join(names)}")
    return [row for name, path in named.items() for row in read_utilisation(path, name)]
