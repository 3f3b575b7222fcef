"""What every command says before any kernel: that the GPU idles, and what a trace that is no inference allows."""

from __future__ import annotations

from collections.abc import Iterable

from traceanalyzer.findings import Finding
from traceanalyzer.segment.idle_share import idle_share
from traceanalyzer.segment.recorded_work import EXPECTED
from traceanalyzer.segment.segmentation_result import Segmentation

OPENING_CODES = ("idle", "workload")
"""Codes of the findings that stand first."""

KEEP_BUSY = "Keep the GPU busy first (CUDA graphs, fewer launches, less host work between steps)."
"""What to do about a GPU that idles most of the time; `idle` says what it waits for."""

_NOT_INFERENCE = ("training", "graph_capture")
"""Workloads for which advice would be wrong."""


def opening(
    cut: Segmentation, *, phase: str | None = None, step: int | None = None, every: bool = False
) -> list[Finding]:
    """Return what to know first; nothing for a busy GPU that serves a model.

    Args:
        cut: the trace.
        phase, step: the steps looked at.
        every: whether to say of every workload but language models what it allows; else only where advice is wrong.
    """
    kind = cut.workload.kind
    said = kind not in EXPECTED if every else kind in _NOT_INFERENCE
    sentence = [Finding("workload", cut.workload.sentence)] if said else []
    if kind == "graph_capture":
        return sentence
    idle = idle_share(cut, phase=phase, step=step)
    return [*([idle.finding()] if idle is not None and idle.mostly else []), *sentence]


def without_opening(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that do not stand first."""
    return [finding for finding in findings if finding.code not in OPENING_CODES]


def only_opening(findings: Iterable[Finding]) -> list[Finding]:
    """Return those that do."""
    return [finding for finding in findings if finding.code in OPENING_CODES]


def is_idle(findings: Iterable[Finding]) -> bool:
    """Whether the findings begin by saying that the GPU idles most of the time."""
    return any(finding.code == "idle" for finding in findings)
