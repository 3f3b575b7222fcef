"""Plot of an estimate: what bounds a decode step over the batch, in shares of its time."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from traceanalyzer.problems import TraceError
from traceanalyzer.report.text import visible

FORMATS = (".png", ".svg")
LABELS = {
    "memory": "bound by memory",
    "compute": "bound by arithmetic",
    "latency": "bound by launching",
    "communication": "communication",
    "host": "host",
}
COLOURS = {
    "memory": "#56B4E9",
    "compute": "#D55E00",
    "latency": "#BBBBBB",
    "communication": "#009E73",
    "host": "#666666",
}


def save_plot(rows: Sequence[Mapping[str, float]], path: Path, title: str) -> None:
    """Write the plot as PNG or SVG, by the suffix of the path.

    Args:
        rows: for each batch its ``batch`` and the time of a step by bound, in ns.
        path: where to.
        title: shown above.

    Raises:
        TraceError: the file cannot be written.
    """
    data = _draw(rows, title, path.suffix.lower().lstrip("."))
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        Path(temporary).replace(path)
    except OSError as error:
        raise TraceError(str(path), f"cannot be written: {error.strerror or error}") from error


def _draw(rows: Sequence[Mapping[str, float]], title: str, form: str) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullLocator

    figure = Figure(figsize=(7.2, 4.6), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    batches = [row["batch"] for row in rows]
    shown = [bound for bound in LABELS if any(row.get(bound) for row in rows)]
    axes.stackplot(
        batches,
        [[100 * row.get(bound, 0.0) / sum(row.get(one, 0.0) for one in LABELS) for row in rows] for bound in shown],
        labels=[LABELS[bound] for bound in shown],
        colors=[COLOURS[bound] for bound in shown],
        edgecolor="white",
        linewidth=0.6,
    )
    axes.set_xscale("log", base=2)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlim(batches[0], batches[-1])
    axes.set_ylim(0, 100)
    axes.set_xlabel("sequences of a decode step", fontsize=14)
    axes.set_ylabel("% of the step's time", fontsize=14)
    axes.tick_params(labelsize=13)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(visible(title).replace("$", r"\$"), fontsize=13, loc="left")
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], fontsize=13, loc="lower left")
    out = io.BytesIO()
    figure.savefig(out, format=form, metadata={"Date": None} if form == "svg" else None)
    return out.getvalue()
