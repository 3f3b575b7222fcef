"""Which constraints the versions of triton_kernels take, and checking that rules ask for nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from traceanalyzer.commands.tune.export.plugin_source import COMPILER_OPTIONS, FUNCTIONS, SET_AFTERWARDS
from traceanalyzer.commands.tune.policy.compute import Policy
from traceanalyzer.commands.tune.tile_config import Value
from traceanalyzer.commands.tune.tile_keys import COUNTS, NOT_NEGATIVE, POWERS_OF_TWO
from traceanalyzer.problems import TraceError

_COMMON_3_5 = {"block_m", "block_k", "split_k", "fused_scatter", "is_persistent", "epilogue_subtile"}
_COMMON_LATER = {"block_m", "block_k", "split_k", "is_persistent", "epilogue_subtile", "max_allowable_mn", "num_warps"}

KNOWN_KEYS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "3.5.0": {
        "amd": frozenset(_COMMON_3_5 | {"block_n"}),
        "nvidia": frozenset(_COMMON_3_5 | {"num_stages", "idle_sms"}),
    },
    "newer": {
        "amd": frozenset(_COMMON_LATER | {"block_n"}),
        "nvidia": frozenset(_COMMON_LATER | {"num_stages", "idle_sms"}),
    },
}
"""Version -> vendor -> constraints, read off the sources: 3.5.0 is what vLLM 0.13 to 0.32 bring; ``newer`` is Triton's
main branch after ``matmul_ogs`` became ``matmul``."""


def keys_in_source(text: str) -> dict[str, frozenset[str]]:
    """Return the constraints that an installed ``opt_flags.py`` takes, by vendor, from the lists in its functions."""
    keys = {}
    for node in ast.walk(ast.parse(text)):
        vendor = next(
            (v for v, name in FUNCTIONS.items() if isinstance(node, ast.FunctionDef) and node.name == name), None
        )
        if vendor is None:
            continue
        for statement in ast.walk(node):
            if isinstance(statement, ast.Assign) and "constraints_supported" in map(_name, statement.targets):
                keys[vendor] = frozenset(ast.literal_eval(statement.value))
    return keys


def _name(target: ast.expr) -> str | None:
    return target.id if isinstance(target, ast.Name) else None


def asked_keys(policy: Policy) -> list[str]:
    """Return the parameters that a policy's rules set, sorted."""
    return sorted({key for rule in policy.rules for key in rule.config})


def keys_without_constraint(policy: Policy, keys: Iterable[str]) -> list[str]:
    """Return the parameters that no constraint can set."""
    return sorted(set(asked_keys(policy)) - set(keys))


def keys_beyond_plugin(policy: Policy, keys: Iterable[str], vendor: str) -> list[str]:
    """Return the parameters that the plugin cannot set: neither a constraint nor a field of the finished flags."""
    return sorted(set(asked_keys(policy)) - {*keys, *SET_AFTERWARDS[vendor], *COMPILER_OPTIONS[vendor]})


def vendor_of(device: Mapping[str, str | None]) -> str | None:
    """Return the vendor that a sweep's device is of; ``None`` where it does not say."""
    text = " ".join(str(value).lower() for value in device.values() if value)
    if any(word in text for word in ("gfx", "amd", "radeon", "instinct", "mi3")):
        return "amd"
    return "nvidia" if any(word in text for word in ("nvidia", "sm_", "sm8", "sm9", "sm1", "cuda", "geforce")) else None


def check_values(policy: Policy, where: str) -> None:
    """Check that a Triton kernel could follow the rules; a file edited by hand may hold others.

    Raises:
        TraceError: a parameter cannot have its value.
    """
    for rule in policy.rules:
        for key, value in rule.config.items():
            wanted = _wanted(key, value)
            if wanted is not None:
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
    return None if whole is not None and whole >= 0 else "a whole number from 0 on"
