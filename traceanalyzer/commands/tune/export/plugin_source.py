"""Tile rules for triton_kernels' matmul, applied when vLLM starts; nothing of vLLM is edited.

vLLM calls ``register`` in each of its processes (entry point group ``vllm.general_plugins``). The rules in
``rules.json`` say which tile is taken for which m (rows of the product: tokens x top-k). They are handed to
triton_kernels as its own constraints, at the top of ``make_default_opt_flags_amd`` and
``make_default_opt_flags_nvidia``. What the installed triton_kernels cannot take leaves it as it was, and the log says
so. Nothing here raises into vLLM.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib.abc
import importlib.util
import inspect
import json
import logging
import sys
import textwrap
from pathlib import Path
from typing import Any

logger = logging.getLogger(f"vllm.{__name__}")

HOMES = ("triton_kernels", "vllm.third_party.triton_kernels")
MODULES = tuple(f"{home}.{package}.opt_flags" for home in HOMES for package in ("matmul_ogs_details", "matmul_details"))
FUNCTIONS = {"amd": "make_default_opt_flags_amd", "nvidia": "make_default_opt_flags_nvidia"}

SET_AFTERWARDS = {"amd": ("num_warps", "num_stages", "group_m"), "nvidia": ()}
"""What may be set on the finished flags where it is not a constraint. On NVIDIA the weights' layout depends on them."""

COMPILER_OPTIONS = {"amd": ("waves_per_eu", "matrix_instr_nonkdim"), "nvidia": ()}

MINE_TO_SET = ("block_m", "block_n", "block_k", "num_warps", "num_stages")
"""Replaced even where vLLM has fixed them for every call; whatever else it has fixed stays."""


def register() -> None:
    """Apply the rules now, or as soon as triton_kernels is imported; called by vLLM."""
    try:
        _register()
    except Exception:
        logger.exception("tile rules not active: unexpected error; vLLM goes on without them")


def _register() -> None:
    rules = load_rules()
    if any(isinstance(finder, _AfterImport) for finder in sys.meta_path):
        return
    home = next((name for name in HOMES if _is_installed(name)), None)
    if home is None:
        logger.warning("tile rules not active: this vLLM has no triton_kernels (neither %s nor %s)", *HOMES)
        return
    sys.meta_path.insert(0, _AfterImport(rules))
    loaded = [name for name in MODULES if name in sys.modules]
    for name in loaded:
        apply_rules(sys.modules[name], rules)
    if not loaded:
        logger.info("tile rules ready: %d rules will be applied when %s is imported", len(rules), home)


def load_rules(path: Path | None = None) -> list[dict[str, Any]]:
    """Read and check ``rules.json``.

    Raises:
        ValueError: it holds no rules that cover every m.
    """
    text = (path or Path(__file__).with_name("rules.json")).read_text(encoding="utf-8")
    rules: list[dict[str, Any]] = json.loads(text)["rules"]
    expected = 1
    for number, rule in enumerate(rules):
        last = number == len(rules) - 1
        if rule["min_m"] != expected or (rule["max_m"] is None) != last or not rule["config"]:
            raise ValueError(f"rule {number} does not follow the one before it, or is empty")
        expected = 0 if last else rule["max_m"] + 1
    if not rules:
        raise ValueError("there are no rules")
    return rules


def rule_for(rules: list[dict[str, Any]], m: int) -> dict[str, Any]:
    """Return the rule for m rows."""
    return next(rule for rule in rules if rule["max_m"] is None or m <= rule["max_m"])


def apply_rules(module: Any, rules: list[dict[str, Any]]) -> dict[str, str | None]:
    """Wrap the functions of an ``opt_flags`` module that can take every key of the rules.

    Returns:
        Vendor -> why its function was left as it was; ``None`` where it was wrapped.
    """
    outcome: dict[str, str | None] = {}
    for vendor, name in FUNCTIONS.items():
        function = getattr(module, name, None)
        if getattr(function, "tile_rules", None):
            outcome[vendor] = None
            continue
        reason = f"{name} is not there" if function is None else unfit(function, vendor, rules)
        if reason is None:
            setattr(module, name, _wrapped(function, vendor, rules, module))
        outcome[vendor] = reason
        _tell(vendor, module, rules, reason)
    return outcome


def unfit(function: Any, vendor: str, rules: list[dict[str, Any]]) -> str | None:
    """Return why a function cannot take the rules; ``None`` when it can."""
    missing = {"m", "constraints"} - set(inspect.signature(function).parameters)
    if missing:
        return f"{function.__name__} has no parameter {' and '.join(sorted(missing))}"
    keys = constraint_keys(function)
    if keys is None:
        return f"{function.__name__} does not say which constraints it takes"
    known = {*keys, *SET_AFTERWARDS[vendor], *COMPILER_OPTIONS[vendor]}
    unknown = sorted({key for rule in rules for key in rule["config"]} - known)
    return f"{function.__name__} of this version cannot set {', '.join(unknown)}" if unknown else None


def constraint_keys(function: Any) -> frozenset[str] | None:
    """Return the constraints that a function accepts, from its own list of them; ``None`` when it has none."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None
    return listed_keys(tree)


def listed_keys(tree: ast.AST) -> frozenset[str] | None:
    """Return the names in a function's own list of constraints; ``None`` when it has none."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and "constraints_supported" in map(ast.unparse, node.targets):
            try:
                return frozenset(ast.literal_eval(node.value))
            except ValueError:
                return None
    return None


def _wrapped(function: Any, vendor: str, rules: list[dict[str, Any]], module: Any) -> Any:
    signature = inspect.signature(function)
    keys = constraint_keys(function) or frozenset()
    told: set[str] = set()

    def once(level: int, message: str, *values: object) -> None:
        if message % values not in told:
            told.add(message % values)
            logger.log(level, message, *values)

    @functools.wraps(function)
    def with_rules(*arguments: Any, **named: Any) -> Any:
        try:
            bound = signature.bind(*arguments, **named)
            rule = rule_for(rules, int(bound.arguments["m"]))
            asked = dict(bound.arguments["constraints"])
            fixed = getattr(module, "_opt_flags_constraints", None) or {}
            free = {k: v for k, v in rule["config"].items() if _is_free(k, asked, fixed)}
            bound.arguments["constraints"] = {**asked, **{k: v for k, v in free.items() if k in keys}}
            flags = _finish(function(*bound.args, **bound.kwargs), free, keys, vendor)
        except Exception as error:
            once(logging.WARNING, "tile rules: a rule could not be applied (%s: %s)", type(error).__name__, error)
            return function(*arguments, **named)
        kept = sorted(set(rule["config"]) - set(free))
        if kept:
            once(logging.INFO, "tile rules: %s stays as vLLM has fixed it", ", ".join(kept))
        last = rule["max_m"] if rule["max_m"] is not None else "any"
        once(logging.INFO, "tile rules: m = %s to %s now takes %s", rule["min_m"], last, json.dumps(free))
        return flags

    with_rules.tile_rules = True  # type: ignore[attr-defined]
    return with_rules


def _is_free(key: str, asked: dict[str, Any], fixed: dict[str, Any]) -> bool:
    """Return whether a rule may set a constraint.

    What this one call demands is needed for a right result. What vLLM fixed for all calls is kept too, but for tile
    sides and launch parameters, which are the rule's to choose.
    """
    if asked.get(key) is None:
        return True
    return key in MINE_TO_SET and fixed.get(key) == asked[key]


def _finish(flags: Any, config: dict[str, Any], keys: frozenset[str], vendor: str) -> Any:
    """Set what is no constraint; a result that is not as the rule says is an error."""
    own = {key: config[key] for key in SET_AFTERWARDS[vendor] if key in config and key not in keys}
    if own:
        flags = dataclasses.replace(flags, **own)
    extra = {key: config[key] for key in COMPILER_OPTIONS[vendor] if key in config}
    if extra:
        flags = dataclasses.replace(flags, target_kernel_kwargs={**flags.target_kernel_kwargs, **extra})
    for key in ("block_m", "block_n", "block_k", "num_warps", "num_stages"):
        if key in config and getattr(flags, key) != config[key]:
            raise ValueError(f"{key} came out as {getattr(flags, key)}, not {config[key]}")
    return flags


def _tell(vendor: str, module: Any, rules: list[dict[str, Any]], reason: str | None) -> None:
    """Log whether a vendor's function was changed; the vendor that is not here only matters to debugging."""
    present = _vendor_here()
    level = logging.DEBUG if present not in {None, vendor} else logging.INFO if reason is None else logging.WARNING
    if reason is None:
        logger.log(level, "tile rules active for %s: %d rules in %s", vendor, len(rules), module.__file__)
    else:
        logger.log(level, "tile rules not active for %s: %s", vendor, reason)


def _vendor_here() -> str | None:
    version = getattr(sys.modules.get("torch"), "version", None)
    if getattr(version, "hip", None):
        return "amd"
    return "nvidia" if getattr(version, "cuda", None) else None


def _is_installed(name: str) -> bool:
    try:
        return name in sys.modules or importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


class _AfterImport(importlib.abc.MetaPathFinder):
    """Finds the modules as usual, and has the rules applied once one was imported."""

    def __init__(self, rules: list[dict[str, Any]]) -> None:
        self._rules = rules
        self._looking = False

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """Return the usual spec with a loader that applies the rules."""
        if fullname not in MODULES or self._looking:
            return None
        self._looking = True
        try:
            spec = importlib.util.find_spec(fullname)
        except (ImportError, ValueError):
            return None
        finally:
            self._looking = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._rules)
        return spec


class _Loader(importlib.abc.Loader):
    """Loads as the original does, then applies the rules."""

    def __init__(self, original: Any, rules: list[dict[str, Any]]) -> None:
        self._original = original
        self._rules = rules

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def create_module(self, spec: Any) -> Any:
        """Leave it to the original loader."""
        return self._original.create_module(spec)

    def exec_module(self, module: Any) -> None:
        """Run the module, then change it; a failure of ours does not fail the import."""
        self._original.exec_module(module)
        try:
            apply_rules(module, self._rules)
        except Exception:
            logger.exception("tile rules not active: %s could not be changed", module.__name__)
