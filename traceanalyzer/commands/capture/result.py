"""What `traceanalyzer capture` answers, field by field."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from traceanalyzer.commands.ingest.result import SummaryDocument
from traceanalyzer.declare import Document, Part, told
from traceanalyzer.problems import TraceWarning


class AnsweredRequests(Part):
    """How the requests went."""

    completed: Annotated[int, told("Requests answered.")]
    failed: Annotated[int, told("Requests failed.")]
    tokens: Annotated[int, told("Tokens of the answers.")]
    mean_ttft_ms: Annotated[float | None, told("Mean time to the first token.", null="no answer was streamed")]


class CaptureDocument(Document, tag="traceanalyzer/capture/1"):
    """What was recorded from a running server."""

    command: ClassVar[str] = "capture"

    status: Annotated[Literal["ok", "warning"], told("warning where there are warnings.")]
    name: Annotated[str, told("Beginning of the traces' names.")]
    engine: Annotated[str, told("vllm or sglang; unknown where the server does not tell.")]
    version: Annotated[str | None, told("Version of the server.", null="it does not tell")]
    model: Annotated[str, told("The served model.")]
    concurrency: Annotated[int, told("Requests at once.")]
    input_tokens: Annotated[int, told("Tokens of each prompt.", unit="tokens")]
    output_tokens: Annotated[int, told("Tokens of each answer.", unit="tokens")]
    requests: Annotated[AnsweredRequests, told("How the requests went.")]
    files: Annotated[list[str], told("The traces; empty where they are not seen from here.")]
    location: Annotated[str | None, told("Where the server wrote them.", null="they are in files")]
    decode_steps: Annotated[int | None, told("Complete decode steps recorded.", null="the traces were not read")]
    decode_steps_of_batch: Annotated[int | None, told("Those of the batch asked for.", null="the traces were not read")]
    summary: Annotated[
        SummaryDocument | None, told("The document of ingest for the traces.", null="the traces were not read")
    ]
    warnings: Annotated[list[TraceWarning], told("What stands against the figures; also printed on stderr.")]
