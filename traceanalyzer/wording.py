"""Small pieces of text: times, shares, names and warnings, safe to show on a terminal."""

from __future__ import annotations

from traceanalyzer.problems import TraceWarning

MINUS = "−"
"""The sign for pages and plots; terminals get a hyphen, which can be searched and pasted."""


def us(ns: float | int | None) -> float | None:
    """Nanoseconds to microseconds; integers give exact thousandths."""
    return None if ns is None else ns / 1000


UNITS = (("s", 1e9), ("ms", 1e6), ("µs", 1e3))


def duration(ns: float | int | None) -> str:
    """A time for people, in the unit that fits, with two decimals, such as ``10.74 ms``."""
    if ns is None:
        return "n/a"
    for unit, size in UNITS:
        if abs(ns) >= size:
            return f"{ns / size:,.2f} {unit}"
    return f"{ns:,.0f} ns"


def duration_us(value: float | None) -> str:
    """A time in µs for people, in the unit that fits."""
    return duration(None if value is None else value * 1000)


def signed(ns: float, minus: str = "-") -> str:
    """A change of time for people, with its sign; no change has none."""
    return f"{'+' if ns > 0 else minus if ns < 0 else ''}{duration(abs(ns))}"


def signed_us(value: float) -> str:
    """A change of time in µs for people, with its sign."""
    return signed(value * 1000)


def step_of(phase: str | None) -> str:
    """A step with its phase; None for steps of several phases."""
    return "step" if phase is None else "step (phase unknown)" if phase == "unknown" else f"{phase} step"


def percent(share: float | None) -> str:
    """A share of 1 for people, such as ``35.2 %``."""
    return "n/a" if share is None else f"{bounded(share * 100, 1)} %"


def bounded(value: float, digits: int) -> str:
    """A number with some decimals; one that would read as zero without being it is bounded instead: ``<0.1``."""
    least = 10**-digits
    if value and abs(value) < least / 2:
        return f"<{least:.{digits}f}" if value > 0 else f">-{least:.{digits}f}"
    return f"{value:,.{digits}f}"


def plural(count: int, noun: str) -> str:
    """``1 step``, ``2 steps``, ``1,000 launches``."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun}{'es' if noun.endswith(('s', 'ch', 'x')) else 's'}"


def cut_middle(text: str, width: int) -> str:
    """Text that has at most ``width`` characters: beyond that its middle is replaced by an ellipsis."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def visible(text: str) -> str:
    """Untrusted text with control and bidirectional characters written out, so that a terminal shows it as it is."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def place_of(warning: TraceWarning) -> str:
    """Where in its file a warning is about, such as ``byte 1024, line 7``; empty where that is unknown."""
    places = (("byte", warning.byte_offset), ("line", warning.line))
    return ", ".join(f"{name} {value}" for name, value in places if value is not None)


def warning_line(warning: TraceWarning) -> str:
    """One line for stderr that names the file, the place and what is wrong."""
    where = ": ".join(part for part in (warning.source, place_of(warning)) if part)
    return visible(f"warning: {where + ': ' if where else ''}{warning.message} [{warning.code}]")
