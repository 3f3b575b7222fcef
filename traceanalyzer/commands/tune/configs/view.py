"""Missing configuration files as JSON and as text."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.configs.compute import Lookup, Missing
from traceanalyzer.wording import plural, visible

SCHEMA = "traceanalyzer/tune-configs/1"


def document(found: Lookup) -> dict[str, Any]:
    """Return the JSON document of ``tune configs``."""
    return {
        "schema": SCHEMA,
        "log_lines": found.log_lines,
        "missing": [_missing(missing) for missing in found.missing],
        "used": list(found.used),
    }


def _missing(missing: Missing) -> dict[str, Any]:
    name = missing.name
    return {
        "shape": name.label,
        "file": str(name),
        "experts": name.experts,
        "n": name.n,
        "k": name.k,
        "device": name.device,
        "dtype": name.dtype,
        "block_shape": list(name.block_shape) if name.block_shape else None,
        "lines": missing.lines,
        "first_line": missing.first_line,
        "in_folder": missing.present,
        "near": [{"file": file, "why": list(why)} for file, why in missing.near],
    }


def render(found: Lookup) -> Group:
    """Return each missing file, and the near ones below it."""
    if not found.missing:
        used = f"; {plural(len(found.used), 'file')} used" if found.used else ""
        return Group(Text(f"the log reports no missing configuration{used}"))
    lines = plural(found.log_lines, "log line")
    parts = [Text(f"{plural(len(found.missing), 'shape')} without a tuned configuration ({lines})", style="bold")]
    for missing in found.missing:
        parts.append(Text(visible(f"  {missing.name.label} on {missing.name.device}")))
        parts.append(Text(visible(f"    wanted {missing.name}")))
        if missing.present:
            parts.append(Text("    the folder has this file: set VLLM_TUNED_CONFIG_FOLDER to it"))
        for file, why in missing.near:
            parts.append(Text(visible(f"    there is {file}, not used: {'; '.join(why)}")))
    return Group(*parts)
