"""Which model a trace is of, when the user does not say."""

from __future__ import annotations

from dataclasses import dataclass

from traceanalyzer.model import (
    Architecture,
    Candidate,
    TraceFacts,
    candidates,
    recognise_model,
)

MOST_NAMED = 4


@dataclass(frozen=True)
class ModelChoice:
    """The model used.

    Attributes:
        model: null where neither given nor recognised.
        source: ``option``, ``inferred`` or null.
        message: what it rests on, or what to pass.
    """

    model: Architecture | None
    source: str | None
    message: str


def choose_model(given: Architecture | None, facts: TraceFacts) -> ModelChoice:
    """Return the model given, or the one built-in model that fits what the trace shows."""
    if given is not None:
        return ModelChoice(given, "option", f"model: {given.name}, as given ({given.source})")
    found = recognise_model(facts)
    if found is None:
        return ModelChoice(None, None, _unknown(candidates(facts) if facts != TraceFacts() else []))
    return ModelChoice(found.architecture, "inferred", _inferred(found))


def _inferred(found: Candidate) -> str:
    alike = f"; {', '.join(found.same_shape)} has the same shape" if found.same_shape else ""
    return (
        f"model: {found.architecture.name}, inferred from {', '.join(found.reasons)}{alike}; "
        "pass --model to state it yourself"
    )


def _unknown(possible: list[Candidate]) -> str:
    text = "model: unknown; pass --model NAME or the path of its config.json"
    if not possible:
        return text
    names = ", ".join(candidate.architecture.name for candidate in possible[:MOST_NAMED])
    return f"{text} (of those built in, these would fit: {names})"
