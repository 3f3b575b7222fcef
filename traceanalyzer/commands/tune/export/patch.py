"""A patch of an installed triton_kernels: rules at the top of its heuristics, as a unified diff."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path

from traceanalyzer.commands.tune.export.plugin_source import COMPILER_OPTIONS, FUNCTIONS, SET_AFTERWARDS, listed_keys
from traceanalyzer.commands.tune.policy.compute import Policy
from traceanalyzer.commands.tune.tile_config import TILE, TileConfig
from traceanalyzer.problems import TraceError

MARK = "# Rules by traceanalyzer; reverse this patch to remove them."
_CANDIDATES = ("matmul_ogs_details/opt_flags.py", "matmul_details/opt_flags.py")

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


def known_keys(version: str, vendor: str) -> frozenset[str]:
    """Return the constraints of a version whose source is not at hand."""
    return KNOWN_KEYS["3.5.0" if version.startswith("3.5") else "newer"][vendor]


def keys_in_source(text: str) -> dict[str, frozenset[str]]:
    """Return the constraints that an installed ``opt_flags.py`` takes, by vendor, from the lists in its functions."""
    vendors = {name: vendor for vendor, name in FUNCTIONS.items()}
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    listed = {vendors[one.name]: listed_keys(one) for one in functions if one.name in vendors}
    return {vendor: keys for vendor, keys in listed.items() if keys is not None}


def asked_keys(policy: Policy) -> set[str]:
    """Return the parameters that a policy's rules set."""
    return {key for rule in policy.rules for key in rule.config}


def keys_beyond_plugin(policy: Policy, keys: Iterable[str], vendor: str) -> list[str]:
    """Return the parameters that the plugin cannot set: neither a constraint nor a field of the finished flags."""
    return sorted(asked_keys(policy) - {*keys, *SET_AFTERWARDS[vendor], *COMPILER_OPTIONS[vendor]})


def vendor_of(device: Mapping[str, str | None]) -> str | None:
    """Return the vendor that a sweep's device is of; ``None`` where it does not say."""
    text = " ".join(str(value).lower() for value in device.values() if value)
    if any(word in text for word in ("gfx", "amd", "radeon", "instinct", "mi3")):
        return "amd"
    return "nvidia" if any(word in text for word in ("nvidia", "sm_", "sm8", "sm9", "sm1", "cuda", "geforce")) else None


def find_opt_flags(path: Path) -> Path:
    """Return ``opt_flags.py`` itself, or that of a triton_kernels folder or of a site-packages folder that has one.

    Raises:
        TraceError: there is none.
    """
    if path.is_file():
        return path
    homes = (
        path,
        path / "triton_kernels",
        path / "vllm/third_party/triton_kernels",
        path / "third_party/triton_kernels",
    )
    for candidate in (home / name for home in homes for name in _CANDIDATES):
        if candidate.is_file():
            return candidate
    raise TraceError(
        str(path), "holds no triton_kernels (no matmul_ogs_details/opt_flags.py or matmul_details/opt_flags.py)"
    )


def make_patch(policy: Policy, source: str, vendor: str, path: str) -> str:
    """Return a unified diff that puts the rules, whose m counts rows, into the function of a vendor.

    Raises:
        TraceError: the file is something else, is patched already, or has no constraint for a parameter of the rules.
    """
    if MARK in source:
        raise TraceError(path, "already holds rules; reverse the earlier patch first (patch -R)")
    try:
        keys = keys_in_source(source).get(vendor)
        function = next(
            node
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.FunctionDef) and node.name == FUNCTIONS[vendor]
        )
    except (SyntaxError, StopIteration):
        raise TraceError(path, f"is not an opt_flags.py of triton_kernels: {FUNCTIONS[vendor]} is not in it") from None
    if keys is None or not {"m", "constraints"} <= {argument.arg for argument in function.args.args}:
        raise TraceError(path, f"{FUNCTIONS[vendor]} takes no constraints by m; this version is not supported")
    check_keys(policy, keys, vendor, path)
    lines = source.splitlines(keepends=True)
    first = function.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    at = (first.end_lineno or first.lineno) if is_docstring else first.lineno - 1
    indent = " " * first.col_offset
    inserted = [f"{indent}{line}\n" for line in rule_lines(policy)]
    changed = lines[:at] + inserted + lines[at:]
    return "".join(difflib.unified_diff(lines, changed, f"a/{path.lstrip('/')}", f"b/{path.lstrip('/')}"))


def check_keys(policy: Policy, keys: frozenset[str], vendor: str, where: str) -> None:
    """Check that every parameter of the rules is a constraint.

    Raises:
        TraceError: one is not.
    """
    if lacking := sorted(asked_keys(policy) - keys):
        more = "; the plugin can set more" if vendor == "amd" else ""
        raise TraceError(
            where,
            f"on {vendor} this triton_kernels has no constraint for {', '.join(lacking)}, only for "
            f"{', '.join(sorted(keys))}; leave parameters out with --leave-out{more}",
        )


def rule_lines(policy: Policy) -> list[str]:
    """Return the rules as Python statements, without indentation of their own."""
    lines = [MARK, "constraints = dict(constraints)"]
    for number, rule in enumerate(policy.rules):
        if len(policy.rules) == 1:
            lines += [f"constraints.update({_arguments(rule.config)})"]
            continue
        head = "else:" if rule.max_m is None else f"{'if' if number == 0 else 'elif'} m <= {rule.max_m}:"
        lines += [head, f"    constraints.update({_arguments(rule.config)})"]
    return lines


def _arguments(config: TileConfig) -> str:
    names = [key for key in TILE if key in config] + sorted(key for key in config if key not in TILE)
    return ", ".join(f"{name}={config[name]!r}" for name in names)
