"""A window is a part of the buffer that it was collected in: what follows it there is not its own."""

from __future__ import annotations

from typing import Any

from traceanalyzer.read.decode import EventWords, decode_text
from traceanalyzer.read.trace_text import TraceText


def test_windows_are_the_event_list_without_gaps_or_overlap(text: str) -> None:
    windows = list(TraceText([text.encode()], 3_000).windows())
    assert len(windows) > 5
    assert any(len(window.buffer) > len(window.data) for window in windows)
    start = text.index("[", text.index('"traceEvents"')) + 1
    joined = b"".join(window.data for window in windows).decode()
    assert joined == text[start : start + len(joined)]
    assert all(bytes(window.view) == window.data for window in windows)
    assert [window.offset for window in windows[1:]] == [each.offset + len(each.data) for each in windows[:-1]]


def test_only_the_window_is_decoded(text: str) -> None:
    for window in TraceText([text.encode()], 3_000).windows():
        found: Any = decode_text(window.buffer, EventWords(), exact=False, size=window.size)
        assert found.events == decode_text(window.data, EventWords(), exact=False).events
