"""What `traceanalyzer name` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar

from traceanalyzer.declare import Document, told
from traceanalyzer.names import KernelName


class NamesDocument(Document, tag="traceanalyzer/names/1"):
    """What kernel names say. What a name does not hold is null."""

    command: ClassVar[str] = "name"

    names: Annotated[list[KernelName], told("In the order given.")]
