"""What `traceanalyzer tune export` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from traceanalyzer.commands.tune.policy.result import PolicyRule
from traceanalyzer.declare import Document, told

ExportKind = Literal["vllm-moe", "patch", "plugin"]


class TuneExportDocument(Document, tag="traceanalyzer/export/1"):
    """What was written for a server."""

    command: ClassVar[str] = "tune export ..."
    page: ClassVar[str] = "tune-export"

    kind: Annotated[ExportKind, told("Form of the rules.")]
    files: Annotated[list[str], told("Files written; empty where the patch is in this document.")]
    m_counts: Annotated[
        Literal["rows", "requests"], told("What m counts: rows of the product, or requests where no top-k is known.")
    ]
    rules: Annotated[list[PolicyRule], told("Cases over m, ascending, without gaps.")]
    next: Annotated[list[str], told("Commands to run next.")]
    patch: Annotated[
        str | None,
        told("The patch, where tune export patch writes none to a file.", null="--output was given, or another form"),
    ]
