"""What `traceanalyzer tune configs` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar

from traceanalyzer.declare import Document, Part, told


class NearConfig(Part):
    """A file of the folder for something close."""

    file: Annotated[str, told("Name.")]
    why: Annotated[list[str], told("How it differs.")]


class MissingConfig(Part):
    """A file that the server looked for and did not have."""

    shape: Annotated[str, told("The shape in words.")]
    file: Annotated[str, told("Name of the file looked for.")]
    experts: Annotated[int | None, told("Experts on one rank.", null="not in the name")]
    n: Annotated[int, told("Intermediate size on one rank.")]
    k: Annotated[int | None, told("Hidden size.", null="not in the name")]
    device: Annotated[str, told("GPU in the name.")]
    dtype: Annotated[str | None, told("Quantised type in the name.", null="none")]
    block_shape: Annotated[list[int] | None, told("Block of the scales, n and k.", null="none")]
    lines: Annotated[int, told("Log lines that say so.")]
    first_line: Annotated[int, told("The first of them, from 1.")]
    in_folder: Annotated[bool, told("Whether --folder has this very file.")]
    near: Annotated[list[NearConfig], told("Files of --folder for something close.")]


class TuneConfigsDocument(Document, tag="traceanalyzer/tune-configs/1"):
    """Tuned configuration files that a vLLM server did not find."""

    command: ClassVar[str] = "tune configs"

    log_lines: Annotated[int, told("Log lines that report a missing one.")]
    missing: Annotated[list[MissingConfig], told("Each once, in the order of the log.")]
    used: Annotated[list[str], told("Files that the server took.")]
