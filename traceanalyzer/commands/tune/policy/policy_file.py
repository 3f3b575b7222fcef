"""Reads what ``tune policy --json`` prints, edited or not, and checks rules."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

from traceanalyzer.commands.tune.formats.point_collector import scalars
from traceanalyzer.commands.tune.policy.compute import Policy, Rule
from traceanalyzer.commands.tune.policy.result import TunePolicyDocument
from traceanalyzer.commands.tune.tile_config import COUNTS, NOT_NEGATIVE, POWERS_OF_TWO, TileConfig, Value
from traceanalyzer.problems import TraceError

TAG = TunePolicyDocument.__struct_config__.tag


def read_policy(path: str | Path) -> Policy | None:
    """Return the policy of a JSON document; ``None`` for a file of another kind.

    Raises:
        TraceError: it is one, but its rules are not usable.
    """
    try:
        document = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    # Rules written by hand need not name their schema.
    if not isinstance(document, dict) or "rules" not in document or document.get("schema", TAG) != TAG:
        return None
    rules = tuple(_rule(rule, str(path)) for rule in _list(document.get("rules")))
    follows = all(low.max_m is not None and low.max_m + 1 == high.min_m for low, high in pairwise(rules))
    if not rules or rules[0].min_m != 1 or rules[-1].max_m is not None or not follows:
        raise TraceError(str(path), "its rules do not cover every m from 1 up, each once, in ascending order")
    return Policy(
        rules=rules,
        kernel=document.get("kernel"),
        shape=scalars(document.get("shape")) or {},
        device=_texts(document.get("device")),
        versions=_texts(document.get("versions")),
        rows=str(document.get("m_counts", "rows")),
        source=str(path),
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(value: Any) -> dict[str, str]:
    return {key: str(text) for key, text in (scalars(value) or {}).items() if text is not None}


def _rule(value: Any, path: str) -> Rule:
    config = scalars(value.get("config")) if isinstance(value, dict) else None
    if not config:
        raise TraceError(path, "a rule has no usable configuration")
    low, high = value.get("min_m"), value.get("max_m")
    if not isinstance(low, int) or not (high is None or (isinstance(high, int) and high >= low)):
        raise TraceError(path, f"a rule cannot hold from m = {low!r} to {high!r}")
    return Rule(low, high, TileConfig(config))


def check_values(policy: Policy, where: str) -> None:
    """Check that a Triton kernel could follow the rules; a file edited by hand may hold others.

    Raises:
        TraceError: a parameter cannot have its value.
    """
    for rule in policy.rules:
        for key, value in rule.config.items():
            if wanted := _wanted(key, value):
                raise TraceError(where, f"{key} must be {wanted}, not {value!r}")


def _wanted(key: str, value: Value) -> str | None:
    """What a parameter must be; ``None`` where the value is, or nothing is known of the parameter."""
    whole = value if isinstance(value, int) and not isinstance(value, bool) else None
    if value is None or key not in (*POWERS_OF_TWO, *COUNTS, *NOT_NEGATIVE):
        return None
    if key in POWERS_OF_TWO:
        return None if whole is not None and whole > 0 and whole & (whole - 1) == 0 else "a power of two"
    if key in COUNTS:
        return None if whole is not None and whole > 0 else "a positive whole number"
    return None if whole is not None and whole >= 0 else "a whole number, 0 or larger"
