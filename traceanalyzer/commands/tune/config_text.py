"""Configurations and problems of a sweep in a few words, and commands to run next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from traceanalyzer.commands.tune.policy.compute import Policy, Rule
from traceanalyzer.commands.tune.policy.result import PolicyRule
from traceanalyzer.commands.tune.tile_config import SIDES, Value
from traceanalyzer.wording import visible

_SHORT = {"split_k": "split", "num_warps": "warps", "num_stages": "stages", "group_m": "group"}
_FIRST = ("kernel", "n", "k", "experts", "top_k", "dtype")


def describe_config(config: Mapping[str, Value]) -> str:
    """Return a configuration on one line, such as ``32x32x128, split 1, warps 2``; what is unknown is not in it."""
    known = {key: value for key, value in config.items() if value is not None}
    parts = []
    if all(side in known for side in SIDES):
        parts.append("x".join(str(known.pop(side)) for side in SIDES))
    ordered = [key for key in _SHORT if key in known] + [key for key in known if key not in _SHORT]
    return ", ".join(parts + [f"{_SHORT.get(key, key)} {known[key]}" for key in ordered])


def describe_rows(low: int, high: int | None) -> str:
    """Return a range of m, such as ``m <= 16`` or ``m >= 17``."""
    if high is None:
        return "every m" if low == 1 else f"m >= {low}"
    return f"m <= {high}" if low == 1 else f"m = {low} to {high}"


def describe_rules(rules: Iterable[Rule | PolicyRule]) -> list[str]:
    """Return each rule on a line: its range of m, and its configuration."""
    return [f"{describe_rows(rule.min_m, rule.max_m):<16} {describe_config(rule.config)}" for rule in rules]


def describe_problem(policy: Policy) -> str:
    """Return what a policy is for, as far as that is known."""
    facts = {"kernel": policy.kernel, **policy.shape}
    ordered = [key for key in _FIRST if facts.get(key) is not None]
    ordered += [key for key in facts if key not in _FIRST and facts[key] is not None]
    words = [str(facts[key]) if key == "kernel" else f"{key}={facts[key]}" for key in ordered]
    device = policy.device.get("name") or policy.device.get("target")
    return " ".join(words) + (f" on {device}" if device else "")


def command_lines(lines: Sequence[str]) -> str:
    """Return commands under a heading, one per line and never broken, whatever the terminal's width."""
    return "\n".join(["", "Next", *(f"  {visible(line)}" for line in lines)])
