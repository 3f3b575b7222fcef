"""What was odd about a trace's text, as warnings with places."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from traceanalyzer.problems import TraceWarning
from traceanalyzer.read.window import Place, WindowReport
from traceanalyzer.wording import plural


def reading_warnings(reports: Sequence[WindowReport], events: int, cut_at: Place | None) -> list[TraceWarning]:
    """Return what happened to events on the way in.

    Args:
        reports: in the order of the file.
        events: how many were read.
        cut_at: where the event list breaks off, or None where it is complete.
    """
    warnings = []
    if cut_at is not None:
        message = f"the file is incomplete (truncated); the {events} complete events before that were kept"
        warnings.append(_warning("truncated", message, events, cut_at))
    lost = [place for report in reports for place in report.lost]
    if lost:
        message = f"skipped {plural(len(lost), 'unreadable event')} (invalid JSON)"
        warnings.append(_warning("unreadable_events", message, len(lost), lost[0]))
    return [*warnings, *_repairs(reports), *_times(reports)]


def _repairs(reports: Sequence[WindowReport]) -> Iterator[TraceWarning]:
    kinds: dict[str, tuple[int, Place]] = {}
    for report in reports:
        for what, (count, place) in report.repaired.items():
            before, first = kinds.get(what, (0, place))
            kinds[what] = (before + count, first)
    for what, (count, place) in kinds.items():
        yield _warning("repaired_events", f"repaired {plural(count, 'event')} with {what} (invalid JSON)", count, place)


def _times(reports: Sequence[WindowReport]) -> Iterator[TraceWarning]:
    for code, what, counts in (
        ("invalid_gpu_times", "GPU", [(report.bad_device, report.bad_device_at) for report in reports]),
        ("invalid_host_times", "host", [(report.bad_host, report.bad_host_at) for report in reports]),
    ):
        total = sum(count for count, _ in counts)
        if total:
            message = f"skipped {plural(total, f'{what} event')} with unusable ts or dur (missing, zero, negative, NaN)"
            yield _warning(code, message, total, next((place for _, place in counts if place is not None), None))


def _warning(code: str, message: str, count: int, place: Place | None) -> TraceWarning:
    offset, line = place or (None, None)
    return TraceWarning(code, message, count=count, byte_offset=offset, line=line)


def placed(
    warnings: Sequence[TraceWarning], restart: Callable[[], Iterable[bytes]] | None, source: str
) -> Iterator[TraceWarning]:
    """Complete the warnings of a trace: its name, and the lines that were not counted.

    Args:
        warnings: with byte offsets.
        restart: gives the text once more; None where lines were counted on the way.
        source: the file.
    """
    truncated = any(warning.code == "truncated" for warning in warnings)
    offsets = {w.byte_offset for w in warnings if w.byte_offset is not None}
    lines = _lines(restart(), sorted(offsets)) if restart is not None and offsets else {}
    for warning in warnings:
        if truncated and warning.code == "truncated_tail":
            continue  # the same fact
        if warning.byte_offset is None:
            yield warning.at(source)
            continue
        line = lines.get(warning.byte_offset, warning.line)
        yield msgspec.structs.replace(warning, line=line, source=source)


def _lines(text: Iterable[bytes], offsets: Sequence[int]) -> dict[int, int]:
    """Return the 1-based line of each byte offset."""
    lines: dict[int, int] = {}
    waiting = list(offsets)
    start, line = 0, 1
    for block in text:
        while waiting and waiting[0] < start + len(block):
            at = waiting.pop(0)
            lines[at] = line + block.count(b"\n", 0, at - start)
        if not waiting:
            break
        line += block.count(b"\n")
        start += len(block)
    return lines | dict.fromkeys(waiting, line)
