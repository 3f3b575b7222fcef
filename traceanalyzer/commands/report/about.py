"""Sections on the report itself: warnings with their places, what to run next, how every figure was obtained."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.commands.report.gather import PageData, TraceView
from traceanalyzer.commands.report.page_parts import Listing, Paragraph, Section, bullets, section
from traceanalyzer.commands.report.page_tables import Spec, table
from traceanalyzer.names import parse
from traceanalyzer.wording import place_of, visible

MEASURED = (
    ("Times of kernels, gaps, steps.", "Measured: start and duration of the events in the trace."),
    (
        "A step.",
        "From the engine's markers where there are some, else inferred; a kernel belongs to the step that launched it. "
        "Steps cut off by the recording, and dummy steps, enter no average.",
    ),
    (
        "A block.",
        "From nn.Module events, or from the pattern of kernel names. The confidence approximates the chance "
        "that every block of the step is exactly right.",
    ),
    ("A role.", "Derived from the kernel's name, and where that tells nothing from its place in the block."),
    ("A tile and types.", "Read off the kernel's name."),
    (
        "Time per step, share.",
        "Mean over the complete steps of the phase; a share is of the kernel time of these steps. Copies and "
        "memsets are not kernels.",
    ),
)
ROOFLINE = (
    "Floor, limit, headroom.",
    "FLOP and bytes from shapes in the trace or from the model, against the peaks of the GPU. The floor is the larger "
    "of FLOP over peak and bytes over bandwidth; headroom is the time above floor and launch latency.",
)
IDLE = (
    "Idle time.",
    "Stretches in which neither kernel nor copy ran. The cause is the host where the event that ends the gap was "
    "launched during it, the device where it had been launched before.",
)


def warnings_section(views: Sequence[TraceView], data: PageData) -> Section:
    """Everything odd about the input, each with its place."""
    warnings = [warning for view in views for warning in view.warnings] + list(data.warnings)
    if data.serving is not None:
        warnings += data.serving.warnings
    if data.sides is not None:
        warnings += data.sides.diff.warnings
    if not warnings:
        return section("warnings", "Warnings", [Paragraph("None.")])
    specs = [
        Spec("what", "long", "message"),
        Spec("events", "count", "count"),
        Spec("place", "text", place_of),
        Spec("file", "text", "source"),
        Spec("code", "text", "code"),
    ]
    return section(
        "warnings", "Warnings", [table("warning-table", "Warnings about the input", specs, dict.fromkeys(warnings))]
    )


def next_section(data: PageData) -> Section | None:
    """Command lines that go on from here."""
    view = data.trace or (data.sides.after if data.sides else None)
    if view is None:
        return None
    path = data.again
    held = view.roofline
    lines = []
    missing = []
    if held is None or held.model is None:
        missing.append("--model NAME")
    if (held is None or held.ceilings is None) and not view.trace.cpu_only:
        missing.append("--gpu NAME")
    if missing:
        lines.append(
            (f"traceanalyzer report {path} {' '.join(missing)} -o report.html", "adds what this page cannot know")
        )
    names = view.kernels.rows["name"].head(20).to_list()
    if any(name and parse(name).retunable for name in names):
        lines.append(
            (f"traceanalyzer tune plan {path}", "the shapes of the top retunable kernel, and what tuning can save")
        )
    phase = f" --phase {view.phase}" if view.phase else ""
    lines += [
        (f"traceanalyzer hotspots {path}{phase} --limit 0", "every kernel, in the terminal; --csv for a spreadsheet"),
        (
            f"traceanalyzer export perfetto {path} -o trace-steps.json.gz",
            "the trace with steps, blocks and roles, for ui.perfetto.dev",
        ),
        (f"traceanalyzer export xlsx {path} -o tables.xlsx", "all tables as a workbook"),
    ]
    if data.sides is None:
        lines.append(
            (f"traceanalyzer report --diff {path} AFTER.json.gz -o diff.html", "after a change: what it brought")
        )
    return section("next", "What to run next", [Listing(tuple(lines), "commands")], short="Next")


def how_section(views: Sequence[TraceView], data: PageData) -> Section:
    """What every figure rests on."""
    items: list[tuple[str, str]] = []
    if views:
        items = [*MEASURED, ROOFLINE, IDLE]
    if data.ranks is not None:
        items.append(
            (
                "Waiting.",
                "The last rank to enter a collective sets the time of its transfer; what the others spend in it beyond "
                f"that is waiting. Clocks were aligned by {data.ranks.clocks.method}.",
            )
        )
    if data.serving is not None:
        items.append(("Serving results.", "As the benchmarks wrote them; repeated runs are averaged."))
    basis = [("", visible(line)) for view in views if view.roofline for line in view.roofline.basis]
    return section(
        "how",
        "How every figure was obtained",
        [
            bullets(items),
            Paragraph("For the roofline of this trace:") if basis else None,
            bullets(basis),
        ],
        short="Method",
    )
