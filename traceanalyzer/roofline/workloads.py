"""The work of each step: from its marker, completed or replaced by what the user states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from traceanalyzer.model import Group, ModelError, Workload, from_marker, from_sums
from traceanalyzer.roofline.roofline_result import RooflineError

PASS_WORKLOAD = "the step's work is unknown: pass --requests, --tokens and --kv-tokens"


@dataclass(frozen=True)
class Stated:
    """What the user states of a step; None leaves it to the marker.

    Attributes:
        requests: sequences.
        tokens: new tokens of all of them.
        kv_tokens: tokens of all contexts, the new ones included.
    """

    requests: int | None = None
    tokens: int | None = None
    kv_tokens: int | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing is stated."""
        return (self.requests, self.tokens, self.kv_tokens) == (None, None, None)


def workloads_of(steps: pl.DataFrame, stated: Stated) -> list[Workload | None]:
    """Return the work of each step, None where it is unknown.

    Args:
        steps: rows of ``segment.STEP_SCHEMA``.
        stated: what the user states; replaces what the markers say.

    Raises:
        RooflineError: what is stated contradicts itself, or does not say which part of a mixed step it is of.
    """
    columns = ("label", "phase", "requests", "tokens", "kv_tokens")
    return [_workload(row, stated) for row in steps.select(columns).iter_rows(named=True)]


def _workload(row: dict[str, Any], stated: Stated) -> Workload | None:
    marked = _marked(row)
    if stated.empty:
        return marked
    if len(marked.groups) > 1 if marked is not None else row["phase"] == "mixed":
        raise RooflineError(
            "requests, tokens or KV tokens were stated for a mixed step, where it is unknown whether they are of its "
            "prompts or of its decoding sequences; pick decode or prefill steps with --phase"
        )
    group = marked.groups[0] if marked is not None else None
    return _completed(row, stated, group) or marked


def _marked(row: dict[str, Any]) -> Workload | None:
    """The work that a step's marker tells, as text or as sums."""
    marked = from_marker(row["label"])
    if marked is None and row["tokens"] and row["requests"] and row["phase"] in ("decode", "prefill"):
        own = (row["requests"], row["tokens"], row["kv_tokens"])
        return _sums(own, row["phase"] == "decode", "from the step's marker")
    return marked


def _completed(row: dict[str, Any], stated: Stated, group: Group | None) -> Workload | None:
    """What is stated, completed from the marker (``group``: what it tells); None where that is too little."""
    decode = group.decode if group else row["phase"] != "prefill"
    # Some markers tell how many sequences there are, but not their tokens.
    requests = stated.requests or (group.requests if group else row["requests"])
    tokens = stated.tokens or _tokens(group, requests, decode)
    if requests is None and decode:
        requests = tokens
    if requests is None or tokens is None:
        return None
    kv = stated.kv_tokens if stated.kv_tokens is not None else (group.kv_tokens if group else None)
    return _sums((requests, tokens, kv), decode, "as stated by the user, the rest from the step's marker")


def _tokens(group: Group | None, requests: int | None, decode: bool) -> int | None:
    if group is not None and requests == group.requests:
        return group.tokens
    return requests if decode else None


def _sums(own: tuple[int, int, int | None], decode: bool, basis: str) -> Workload:
    try:
        return from_sums(generation=own, basis=basis) if decode else from_sums(context=own, basis=basis)
    except ModelError as error:
        raise RooflineError(str(error)) from error
