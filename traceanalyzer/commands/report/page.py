"""The page: sections in order, written by the templates, everything from the trace escaped."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from traceanalyzer import __version__
from traceanalyzer.commands.ingest.view import ENGINE_NAMES
from traceanalyzer.commands.ranks.rank_findings import findings as ranks_findings
from traceanalyzer.commands.report.about import how_section, next_section, warnings_section
from traceanalyzer.commands.report.gather import PageData, TraceView
from traceanalyzer.commands.report.jobs import diff_section, ranks_section, serving_section
from traceanalyzer.commands.report.page_parts import Facts, Paragraph, Part, Section, bullets, section
from traceanalyzer.commands.report.trace_sections import trace_sections
from traceanalyzer.commands.report.verdict import diff_figures, diff_verdict, key_figures, verdict
from traceanalyzer.wording import cut_middle, duration_us, visible

if TYPE_CHECKING:
    from jinja2 import Environment

LONGEST_LINE = 400


@dataclass(frozen=True)
class Page:
    """What the templates get.

    Attributes:
        title: of the browser's window.
        kicker: the line above the verdict.
        verdict: sentences; the first one is the heading.
        subject: names and values that say what was recorded.
        sections: the page's content.
        kernels: what scripts need: the kernels of the blocks.
    """

    title: str
    kicker: str
    verdict: tuple[str, ...]
    subject: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    kernels: dict[str, Any]


def render(data: PageData) -> str:
    """Return the page as one HTML document that needs nothing else."""
    page = page_of(data)
    environment = _environment()
    script = _source(environment, "page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    text = environment.get_template("page.html.j2").render(
        page=page,
        version=__version__,
        css=Markup(_source(environment, "page.css")),
        script=Markup(script),
        # Only this script may run: its hash is in the page's policy.
        script_hash=f"sha256-{digest}",
        kernels=Markup(_embedded(page.kernels)),
    )
    return "\n".join(line.strip() for line in text.splitlines() if line.strip()) + "\n"


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("traceanalyzer.commands.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _source(environment: Environment, name: str) -> str:
    assert environment.loader is not None
    text = environment.loader.get_source(environment, name)[0]
    # As it stands in the page, where blank lines and indents are left out.
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def _embedded(value: dict[str, Any]) -> str:
    """JSON that no name can end early or turn into markup."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def page_of(data: PageData) -> Page:
    """Decide what the page says."""
    if data.sides is not None:
        return _diff_page(data)
    if data.trace is not None:
        return _trace_page(data, data.trace)
    return _serving_page(data)


def _trace_page(data: PageData, view: TraceView) -> Page:
    sections, kernels = trace_sections(view)
    told = [
        ("" if finding.worth_us is None else f"{duration_us(finding.worth_us)} per step:", visible(finding.message))
        for finding in view.findings[:-1]
    ]
    start = section(
        "overview",
        "At a glance",
        [Facts(key_figures(view)), bullets(told), _about_ranks(data, view)],
        short="Overview",
    )
    return Page(
        title=f"{_name(view)}: where a step's time goes",
        kicker=f"traceanalyzer report on {visible(cut_middle(view.path, LONGEST_LINE))}",
        verdict=_lines(verdict(view)),
        subject=_subject(view),
        sections=_known(
            start,
            *sections,
            ranks_section(data.ranks),
            serving_section(data.serving),
            warnings_section([view], data),
            next_section(data),
            how_section([view], data),
        ),
        kernels=kernels,
    )


def _about_ranks(data: PageData, view: TraceView) -> Part | None:
    if data.ranks is None:
        return None
    told = next((finding.message for finding in ranks_findings(data.ranks) if finding.worth_us is not None), "")
    rank = "one rank" if view.trace.rank is None else f"rank {view.trace.rank}"
    text = f"Everything here is about {rank}; the section Ranks compares all {len(data.ranks.members)} ranks."
    return Paragraph(visible(f"{text} Largest finding there: {told}." if told else text))


def _diff_page(data: PageData) -> Page:
    sides = data.sides
    assert sides is not None
    kernels: dict[str, Any] = {"names": [], "strips": {}}
    nested = []
    for prefix, title, view in (("after-", "After", sides.after), ("before-", "Before", sides.before)):
        own, listed = trace_sections(view, prefix)
        offset = len(kernels["names"])
        kernels["names"] += listed["names"]
        for key, strip in listed["strips"].items():
            kernels["strips"][key] = {
                block: [[name + offset, *rest] for name, *rest in rows] for block, rows in strip.items()
            }
        parts: list[Part | None] = [Paragraph(visible(view.path), "note"), Facts(key_figures(view))]
        nested.append(section(f"{prefix}trace", f"{title}: {_name(view)}", parts, own, short=title))
    return Page(
        title="Two traces compared",
        kicker=f"traceanalyzer report: {visible(cut_middle(sides.before.path, 180))} → "
        f"{visible(cut_middle(sides.after.path, 180))}",
        verdict=_lines(diff_verdict(sides)),
        subject=_subject(sides.after),
        sections=_known(
            diff_section(sides, diff_figures(sides)),
            *nested,
            serving_section(data.serving),
            warnings_section([sides.before, sides.after], data),
            next_section(data),
            how_section([sides.after], data),
        ),
        kernels=kernels,
    )


def _serving_page(data: PageData) -> Page:
    serving = data.serving
    assert serving is not None
    return Page(
        title="Serving results",
        kicker="traceanalyzer report on serving results",
        verdict=("Output tokens/s over concurrency",),
        subject=(),
        sections=_known(serving_section(serving), warnings_section([], data), how_section([], data)),
        kernels={"names": [], "strips": {}},
    )


def _known(*sections: Section | None) -> tuple[Section, ...]:
    return tuple(one for one in sections if one is not None)


def _lines(sentences: list[str]) -> tuple[str, ...]:
    return tuple(cut_middle(visible(sentence), LONGEST_LINE) for sentence in sentences)


def _name(view: TraceView) -> str:
    return visible(cut_middle(view.path.rsplit("/", 1)[-1], 80))


def _subject(view: TraceView) -> tuple[tuple[str, str], ...]:
    from datetime import datetime, timezone

    held, metadata = view.roofline, view.trace.metadata
    gpus = sorted({t.device_name.name for t in view.timelines if t.device_name.name})
    facts = [("engine", ENGINE_NAMES.get(view.engine, "unknown"))]
    if held is not None and held.model is not None:
        facts.append(("model", held.model.name + (" (inferred)" if held.model_source == "inferred" else "")))
    else:
        facts.append(("model", "unknown"))
    facts.append(("GPU", ", ".join(gpus) or ("none, CPU only" if view.trace.cpu_only else "unknown")))
    if metadata.rank is not None:
        world = f" of {metadata.world_size} ranks" if (metadata.world_size or 1) > 1 else ""
        facts.append(("rank", f"{metadata.rank}{world}"))
    if view.trace.synthetic:
        facts.append(("recorded", "never: a synthetic trace, generated"))
    elif metadata.base_time_ns:
        try:
            at = datetime.fromtimestamp((metadata.base_time_ns + metadata.base_ns) / 1e9, tz=timezone.utc)
            facts.append(("recorded", f"{at:%Y-%m-%d %H:%M} UTC"))
        except (OverflowError, OSError, ValueError):
            pass
    return tuple((name, visible(cut_middle(value, 120))) for name, value in facts)
