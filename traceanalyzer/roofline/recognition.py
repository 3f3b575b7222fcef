"""Which model a trace is of, when the user does not say."""

from __future__ import annotations

from dataclasses import dataclass

from traceanalyzer.model import Architecture, Candidate, TraceFacts, candidates, recognise_model

MOST_NAMED = 4


@dataclass(frozen=True)
class ModelChoice:
    """The model used.

    Attributes:
        model: None where neither given nor recognised.
        source: ``option``, ``inferred`` or None.
        message: what it rests on, or what to pass.
    """

    model: Architecture | None
    source: str | None
    message: str


def choose_model(given: Architecture | None, facts: TraceFacts) -> ModelChoice:
    """Return the model given, or the one built-in model that fits what the trace shows."""
    if given is not None:
        return ModelChoice(given, "option", f"model: {given.name}, as given ({given.source})")
    candidate = recognise_model(facts)
    if candidate is None:
        return ModelChoice(None, None, _unknown(candidates(facts) if facts != TraceFacts() else []))
    return ModelChoice(candidate.architecture, "inferred", _inferred(candidate))


def _inferred(candidate: Candidate) -> str:
    alike = f"; {', '.join(candidate.same_shape)} has the same shape" if candidate.same_shape else ""
    return (
        f"model: {candidate.architecture.name}, inferred from {', '.join(candidate.reasons)}{alike}; "
        "pass --model to state it yourself"
    )


def _unknown(possible: list[Candidate]) -> str:
    text = "model: unknown; pass --model NAME or the path of its config.json"
    if not possible:
        return text
    names = ", ".join(candidate.architecture.name for candidate in possible[:MOST_NAMED])
    return f"{text} (built-in models that would fit: {names})"
