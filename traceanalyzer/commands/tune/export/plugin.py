"""A vLLM plugin as a package: the rules, the code that applies them, and what installing it needs."""

from __future__ import annotations

import json
import re
from pathlib import Path

from traceanalyzer.commands.tune.config_text import describe_config
from traceanalyzer.commands.tune.policy.compute import Policy
from traceanalyzer.files import write_whole
from traceanalyzer.problems import TraceError

ENTRY_POINT_GROUP = "vllm.general_plugins"
VERSION = "1.0.0"

_PYPROJECT = """\
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "{distribution}"
version = "{version}"
description = "Tile rules for triton_kernels, applied when vLLM starts"
requires-python = ">=3.10"

[project.entry-points."{group}"]
{name} = "{name}:register"

[tool.setuptools]
packages = ["{name}"]

[tool.setuptools.package-data]
{name} = ["rules.json"]
"""

_README = """\
# {distribution}

Tile rules for the matmul of triton_kernels (gpt-oss and other mxfp4 models in vLLM), applied when vLLM starts.

    pip install .                  # in vLLM's environment; or, without installing:
    PYTHONPATH=$PWD vllm serve ...

vLLM's log says whether the rules are active, or why not. Where `VLLM_PLUGINS` is set, `{name}` must be in it.
To take the rules out: `pip uninstall {distribution}`. The rules are in `{name}/rules.json`; m counts rows of the
product (tokens x top-k).

{table}
"""


def plugin_files(policy: Policy, name: str = "vllm_tile_rules") -> dict[str, str]:
    """Return the package of rules whose m counts rows: path in its folder -> text.

    Beside the sources there is the metadata of an installed distribution, so that the folder works on ``PYTHONPATH``.

    Raises:
        TraceError: no module can have that name.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise TraceError("tune export plugin", f"{name!r} is not a name for a module (lower-case letters, digits, _)")
    distribution = name.replace("_", "-")
    source = Path(__file__).with_name("plugin_source.py").read_text(encoding="utf-8")
    values = {"name": name, "distribution": distribution, "version": VERSION, "group": ENTRY_POINT_GROUP}
    info = f"{name}-{VERSION}.dist-info"
    return {
        "pyproject.toml": _PYPROJECT.format(**values),
        "README.md": _README.format(**values, table=_table(policy)),
        f"{name}/__init__.py": source,
        f"{name}/rules.json": json.dumps(rules_document(policy), indent=2) + "\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {VERSION}\n",
        f"{info}/entry_points.txt": f"[{ENTRY_POINT_GROUP}]\n{name} = {name}:register\n",
    }


def rules_document(policy: Policy) -> dict[str, object]:
    """Return what the plugin reads."""
    rules = [{"min_m": rule.min_m, "max_m": rule.max_m, "config": dict(rule.config)} for rule in policy.rules]
    return {"kernel": policy.kernel, "device": dict(policy.device), "rules": rules}


def _table(policy: Policy) -> str:
    lines = ["| m | configuration |", "|---|---|"]
    for rule in policy.rules:
        last = "and above" if rule.max_m is None else f"to {rule.max_m}"
        lines.append(f"| {rule.min_m} {last} | {describe_config(rule.config)} |")
    return "\n".join(lines)


def write_plugin(folder: Path, files: dict[str, str]) -> list[Path]:
    """Write the package into a folder, which must be new, empty, or an earlier export.

    Raises:
        TraceError: the folder holds something else, or cannot be written.
    """
    try:
        others = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        if others and not {path.split("/")[0] for path in files} & set(others):
            raise TraceError(str(folder), "holds other files; give a new folder")
        written = []
        for name, text in files.items():
            path = folder / name
            write_whole(path, text, make_folder=True)
            written.append(path)
    except OSError as error:
        raise TraceError(str(folder), error.strerror or "cannot be written") from None
    return written
