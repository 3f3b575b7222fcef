"""What `traceanalyzer source` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from traceanalyzer.declare import Document, Part, told
from traceanalyzer.problems import TraceWarning

Via = Literal["launch", "annotation", "capture", "position"]
Level = Literal["same_name", "exact", "helper", "kind", "neighbour"]
Reason = Literal["no_stacks", "graph_without_source", "no_launch"]
NONE = "nothing states it"


class SourceLine(Part):
    """Another place that some kernels of a row come from."""

    file: Annotated[str | None, told("File.", null="no Python stack")]
    line: Annotated[int | None, told("Line on which the function begins.", null="no Python stack")]
    function: Annotated[str | None, told("Function.", null="no Python stack")]
    op: Annotated[str | None, told("Op.", null="none recorded")]
    share: Annotated[float, told("Of the row's kernels.")]


class SourceRow(Part):
    """Kernels that do the same at the same place, and where they come from."""

    csv_title: ClassVar[str] = "source --csv"

    id: Annotated[str, told("Stable within a trace: section, role, number in the role, or what --by groups by.")]
    role: Annotated[str | None, told("Role.", null="the row's kernels have several")]
    section: Annotated[str | None, told("prologue, block or epilogue.", null="several, or the step has no blocks")]
    ordinal: Annotated[int | None, told("Number of the kernel within its role and block.", null="several")]
    kernel: Annotated[str | None, told("Kernel name.", null="several")]
    short: Annotated[str, told("The name as a table shows it, or what --by groups by.", heading="kernel", csv=False)]
    count: Annotated[int, told("Kernels.")]
    per_step_us: Annotated[float, told("Kernel time per step.")]
    share: Annotated[float, told("Of the kernel time.")]
    op: Annotated[str | None, told("Innermost op around the launch.", null="none recorded")]
    module: Annotated[str | None, told("Classes of the modules around it, outer to inner.", null="none recorded")]
    module_class: Annotated[str | None, told("The innermost of them.", null="none recorded", heading="module")]
    function: Annotated[str | None, told("Innermost Python function that is not plumbing.", null="no Python stack")]
    file: Annotated[str | None, told("Its file, from the package on.", null="no Python stack")]
    line: Annotated[int | None, told("Line on which it begins.", null="no Python stack")]
    model_function: Annotated[str | None, told("Innermost function of the model's own code.", null="none in the stack")]
    model_file: Annotated[str | None, told("Its file.", null="none in the stack")]
    model_line: Annotated[int | None, told("Line on which it begins.", null="none in the stack")]
    compiled: Annotated[bool, told("Whether a compiler wrote the code that launched it: its lines are not shown.")]
    via: Annotated[
        Via | None,
        told(
            "launch: its own launch; annotation: a note on the graph's node; capture: the launch at the graph's "
            "capture; position: its counterpart in a step that states its sources.",
            null=NONE,
        ),
    ]
    level: Annotated[
        Level | None,
        told(
            "Of a position: the counterpart has the same name; stands at the same place; is finished by this kernel; "
            "is of another block of the kind; has the same name and neighbours.",
            null="not by position",
        ),
    ]
    reason: Annotated[Reason | None, told("Why the source is unknown.", null="it is known")]
    agreement: Annotated[
        float | None,
        told(
            "Share of the row's kernels with this source.",
            null="unknown source",
            unit="share, 1 is all",
            heading="agree",
        ),
    ]
    others: Annotated[list[SourceLine], told("Where the rest comes from, most first.", csv=False)]


class SourceVia(Part):
    """Shares of the kernel time by how its source is known."""

    launch: Annotated[float, told("Its own launch.", unit="share, 1 is all")]
    annotation: Annotated[float, told("A note on the graph's node.", unit="share, 1 is all")]
    capture: Annotated[float, told("The capture of the graph.", unit="share, 1 is all")]
    position: Annotated[float, told("The counterpart in another step.", unit="share, 1 is all")]
    none: Annotated[float, told("Unknown.", unit="share, 1 is all")]


class SourceMapping(Part):
    """The step whose sources explain others by position."""

    source: Annotated[str | None, told("Path of its trace.", null="no step states its sources")]
    step: Annotated[int | None, told("Index.", null="no step")]
    phase: Annotated[str | None, told("Phase.", null="no step")]
    blocks: Annotated[int | None, told("Transformer blocks.", null="no step")]
    confidence: Annotated[
        float | None, told("That the blocks of both are right, times the agreement.", null="no step", unit="0 to 1")
    ]
    same_model: Annotated[bool | None, told("Whether number and kinds of blocks agree.", null="no step")]
    reason: Annotated[str | None, told("Why no step could be used.", null="one was")]


class SourceDocument(Document, tag="traceanalyzer/source/1"):
    """Which op, module and line launched each kernel, also inside a graph."""

    command: ClassVar[str] = "source"

    phase: Annotated[str | None, told("Phase of the steps looked at.", null="steps of several")]
    steps: Annotated[int, told("Complete steps looked at.")]
    total_us: Annotated[float, told("Their kernel time.")]
    resolved_share: Annotated[float, told("Share of it whose source is known.", unit="share, 1 is all")]
    by_via: Annotated[SourceVia, told("How it is known.")]
    line_is: Annotated[
        Literal["function"], told("Lines are those on which functions begin: the profiler writes no others.")
    ]
    mapping: Annotated[SourceMapping | None, told("What positions were taken from.", null="nothing had to be mapped")]
    rows: Annotated[list[SourceRow], told("By time.")]
    warnings: Annotated[list[TraceWarning], told("What stands against it.")]
