"""Missing configuration files as a JSON document and as text."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.configs.compute import Lookup, Missing
from traceanalyzer.commands.tune.configs.result import MissingConfig, NearConfig, TuneConfigsDocument
from traceanalyzer.declare import part_of
from traceanalyzer.wording import plural, visible


def document(lookup: Lookup) -> TuneConfigsDocument:
    """Return the JSON document of ``tune configs``."""
    return part_of(TuneConfigsDocument, lookup, missing=[_missing(missing) for missing in lookup.missing])


def _missing(missing: Missing) -> MissingConfig:
    name = missing.name
    return MissingConfig(
        shape=name.label,
        file=str(name),
        experts=name.experts,
        n=name.n,
        k=name.k,
        device=name.device,
        dtype=name.dtype,
        block_shape=list(name.block_shape) if name.block_shape else None,
        lines=missing.lines,
        first_line=missing.first_line,
        in_folder=missing.present,
        near=[NearConfig(file=file, why=list(why)) for file, why in missing.near],
    )


def render(lookup: Lookup) -> Group:
    """Return each missing file, and close ones below it."""
    if not lookup.missing:
        used = f"; {plural(len(lookup.used), 'file')} used" if lookup.used else ""
        return Group(Text(f"the log reports no missing configuration{used}"))
    lines = plural(lookup.log_lines, "log line")
    parts = [Text(f"{plural(len(lookup.missing), 'shape')} without a tuned configuration ({lines})", style="bold")]
    for missing in lookup.missing:
        parts.append(Text(visible(f"  {missing.name.label} on {missing.name.device}")))
        parts.append(Text(visible(f"    wanted {missing.name}")))
        if missing.present:
            parts.append(Text("    the folder has this file: set VLLM_TUNED_CONFIG_FOLDER to it"))
        for file, why in missing.near:
            parts.append(Text(visible(f"    there is {file}, not used: {'; '.join(why)}")))
    return Group(*parts)
