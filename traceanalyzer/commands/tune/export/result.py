"""What `traceanalyzer tune export` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from traceanalyzer.declare import Document, Part, told


class TuneExportRule(Part):
    """TODO"""

    min_m: Annotated[int, told("From this m on.")]
    max_m: Annotated[int | None, told("Up to this m.", null="no limit")]
    config: Annotated[
        dict[str, int | float | str | bool | None],
        told(
            "Meta-parameters by name: block_m, block_n, block_k, split_k, group_m, num_warps, num_stages, ...; null: left to the kernel, or not known."
        ),
    ]


class TuneExportDocument(Document, tag="traceanalyzer/export/1"):
    """What was written for a server."""

    command: ClassVar[str] = "tune export ..."
    page: ClassVar[str] = "tune-export"

    kind: Annotated[Literal["vllm-moe", "patch", "plugin"], told("Form of the rules.")]
    files: Annotated[list[str], told("Files written; empty where the patch is in this document.")]
    m_counts: Annotated[
        Literal["rows", "requests"], told("What m counts: rows of the product, or requests where no top-k is known.")
    ]
    rules: Annotated[list[TuneExportRule], told("Cases over m, ascending, without gaps.")]
    next: Annotated[list[str], told("Commands to run next.")]
    patch: Annotated[
        str | None,
        told("The patch, where tune export patch writes none to a file.", null="--output was given, or another form"),
    ]
