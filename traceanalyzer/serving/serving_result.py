"""One run of a serving benchmark, from whatever file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Kind = Literal["serve", "latency", "throughput"]
Setting = str | float | bool

UNLIMITED = "unlimited"


class Load(NamedTuple):
    """Most requests in flight and requests sent per second; None where unlimited or unknown."""

    concurrency: float | None
    request_rate: float | None


@dataclass(frozen=True)
class PerRequest:
    """Details of every request where a result has them; times in seconds."""

    ttfts: tuple[float, ...] = ()
    output_lens: tuple[float, ...] = ()
    latencies: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class ServingResult:
    """One run.

    Attributes:
        source: its file.
        place: where in the file, such as ``line 3``; None if the file has one run.
        kind: which benchmark: serve (over HTTP), latency or throughput (offline).
        metrics: figures by the key that ``vllm bench`` gives them; milliseconds for ``*_ms``, else seconds, tokens/s,
            requests/s. A figure that is absent or NaN in the file is absent here.
        settings: by key; ``max_concurrency`` may be ``unlimited``.
        prompts, completed, failed: requests; None where unknown.
        success_share: share of successful requests, where a file states it without counts; None elsewhere.
        input_tokens, output_tokens: totals over completed requests; None where unknown.
        resolution: half a unit of the last digit of figures from rounded text.
        derived: metrics calculated from the per-request times in the file.
        label: name of the run, or None.
        repeat: whether the file is one of repeated runs of a configuration.
        per_request: details, if there are any.
    """

    source: str
    place: str | None
    kind: Kind
    metrics: Mapping[str, float]
    settings: Mapping[str, Setting]
    prompts: int | None = None
    completed: int | None = None
    failed: int | None = None
    success_share: float | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    resolution: Mapping[str, float] = field(default_factory=dict)
    derived: frozenset[str] = frozenset()
    label: str | None = None
    repeat: bool = False
    per_request: PerRequest = PerRequest()

    @property
    def load(self) -> Load:
        """The load of the run."""
        return Load(as_number(self.settings.get("max_concurrency")), as_number(self.settings.get("request_rate")))

    @property
    def success(self) -> float | None:
        """Share of successful requests; None where unknown."""
        if self.failed is None:
            return self.success_share
        if self.failed == 0:
            return 1.0
        return None if self.completed is None else self.completed / (self.completed + self.failed)

    @property
    def has_failures(self) -> bool:
        """Whether requests are known to have failed, counted or not."""
        return bool(self.failed) or (self.success_share is not None and self.success_share < 1)

    @property
    def where(self) -> str:
        """The file and the place in it, for messages."""
        return f"{self.source}, {self.place}" if self.place else self.source

    @property
    def output_length(self) -> float | None:
        """Mean tokens a completed request produced; None where unknown."""
        if self.output_tokens is not None and self.completed:
            return self.output_tokens / self.completed
        return None

    @property
    def input_length(self) -> float | None:
        """Mean prompt tokens of a completed request; None where unknown."""
        if self.input_tokens is not None and self.completed:
            return self.input_tokens / self.completed
        return None


def as_number(value: object) -> float | None:
    """Return a finite number, also one written as text; None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number - number == 0 else None
