"""models.md: the built-in models."""

from __future__ import annotations

from docs.generate.markdown import figure, join, note, table
from traceanalyzer.model import ModelError, known_names, kv_bytes_per_token, named, parameters
from traceanalyzer.model.architecture import Architecture
from traceanalyzer.model.known import KNOWN

HEAD = """
# Models

What `--model NAME` knows without a file; the path of any config.json does as well. Names are matched without regard to
case and organisation, and a format can be added (`llama-3.1-8b-fp8`). Only keys that decide work and memory are kept.
Parameters are counted from the architecture. KV cache: bytes a token of all layers, in the stated format; sliding
windows hold less once they are full.
"""

GRADES = {
    "A": "the published config.json",
    "B": "a second-hand copy",
    "C": "derived, or a single weak source",
    "D": "unconfirmed; the parameters add up to the published count",
}


def page() -> str:
    """Return the page's text."""
    models = {name: named(name) for name in known_names()}
    sizes = table(
        (
            *("model", "type", "blocks", "hidden", "heads", "KV heads", "head", "experts", "a token", "vocabulary"),
            *("weights", "parameters, 10^9", "active, 10^9", "KV, bytes a token"),
        ),
        (_row(name, one) for name, one in models.items()),
    )
    known = {entry.name: entry for entry in KNOWN}
    sources = table(
        ("model", "confidence", "source", "not modelled, or assumed"),
        ((n, known[n].confidence, known[n].source, "; ".join(models[n].notes)) for n in models),
    )
    used = {entry.confidence for entry in KNOWN}
    grades = "\n".join(f"- {grade}: {meaning}" for grade, meaning in GRADES.items() if grade in used)
    return join(
        note("traceanalyzer/model/known.py"),
        HEAD.strip(),
        "## Sizes",
        sizes,
        "## Sources",
        "Confidence:",
        grades,
        sources,
    )


def _row(name: str, model: Architecture) -> tuple[str, ...]:
    counted, experts = parameters(model), model.moe
    try:
        kv = figure(kv_bytes_per_token(model))
    except ModelError:
        kv = ""
    return (
        *(name, model.model_type, str(len(model.layers)), str(model.hidden), str(model.heads), str(model.kv_heads)),
        *(str(model.head_dim), str(experts.experts) if experts else "", str(experts.top_k) if experts else ""),
        *(f"{model.vocab:,}", ", ".join(dict.fromkeys(one.name for one in vars(model.weights).values()))),
        *(_billions(counted.total), _billions(counted.active), kv),
    )


def _billions(count: int | None) -> str:
    return "" if count is None else f"{count / 1e9:,.2f}"
