"""Missing configuration files as text."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from traceanalyzer.commands.tune.configs.result import TuneConfigsDocument
from traceanalyzer.wording import plural, visible


def render(lookup: TuneConfigsDocument) -> Group:
    """Return each missing file, and close ones below it."""
    if not lookup.missing:
        used = f"; {plural(len(lookup.used), 'file')} used" if lookup.used else ""
        return Group(Text(f"the log reports no missing configuration{used}"))
    lines = plural(lookup.log_lines, "log line")
    parts = [Text(f"{plural(len(lookup.missing), 'shape')} without a tuned configuration ({lines})", style="bold")]
    for missing in lookup.missing:
        parts.append(Text(visible(f"  {missing.shape} on {missing.device}")))
        parts.append(Text(visible(f"    wanted {missing.file}")))
        if missing.in_folder:
            parts.append(Text("    the folder has this file: set VLLM_TUNED_CONFIG_FOLDER to it"))
        for near in missing.near:
            parts.append(Text(visible(f"    there is {near.file}, not used: {'; '.join(near.why)}")))
    return Group(*parts)
