"""Where events and the event list end in the text of a trace."""

from __future__ import annotations

import re

import msgspec

LOOKAHEAD = 4096

EVENT_BOUNDARY = re.compile(rb"\}[\s,]*(?=\{)")
FIRST_KEY = re.compile(rb'[\s,]*\{\s*("[^"\\]{0,100}")')
AFTER_LIST = (
    rb"(?=\s*(?:\Z|\}\s*(?:[^\s,}\]]|\Z)|[^\s,}\]]|"  # the end of the text or of the root; something foreign
    rb",\s*(?:\Z|\"[^\"\\]{0,200}(?:\Z|\"\s*(?::|\Z)))))"  # or another key of the root
)
LIST_END = re.compile(rb"\}\s*,?\s*\]" + AFTER_LIST)
EMPTY_LIST_END = re.compile(rb"[\s,]*\]" + AFTER_LIST)
BRACKET = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
OPENING, CLOSING = frozenset({b"{", b"["}), frozenset({b"}", b"]"})


def border_like(text: bytes) -> re.Pattern[bytes]:
    """Return what matches between two events, of which the second begins with the same key as the text's first."""
    key = FIRST_KEY.match(text)
    return re.compile(rb"\}[\s,]*(?=\{\s*" + re.escape(key[1]) + rb")") if key else EVENT_BOUNDARY


def list_end(text: bytes, limit: int) -> int | None:
    """Return where the bracket is that ends the event list, before ``limit``, or None where the list goes on.

    A bracket inside an event can look the same; it is told apart by whether everything before it is complete.

    Args:
        text: starts at an event of the list; some text after ``limit`` helps to decide.
        limit: where to stop looking.
    """
    empty = EMPTY_LIST_END.match(text)
    if empty:
        return empty.end() - 1
    first = LIST_END.search(text, 0, limit)
    if first is None:
        return None
    bracket = first.end() - 1
    try:
        msgspec.json.decode(b"[" + text[:bracket].strip(b" \t\r\n,") + b"]", type=list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        pass  # it is one inside an event, or the text before it is damaged
    else:
        return bracket
    unmatched = closing(text, 0, limit, depth=1)
    if unmatched is not None and LIST_END.search(text, max(0, unmatched - 64), unmatched + 1):
        return unmatched
    for end in LIST_END.finditer(text, 0, limit):
        if b'"ph"' not in text[end.end() : end.end() + LOOKAHEAD]:
            return end.end() - 1
    return None


def closing(text: bytes, start: int, limit: int, depth: int = 0) -> int | None:
    """Return where the bracket is that brings the nesting back to none, or None where there is none.

    Args:
        text: JSON from ``start`` on.
        start: where to begin, outside of strings.
        limit: where to stop.
        depth: how many brackets are open at ``start``.
    """
    for token in BRACKET.finditer(text, start, limit):
        byte = token[0]
        if byte in OPENING:
            depth += 1
        elif byte in CLOSING:
            depth -= 1
            if depth <= 0:
                return token.start()
    return None
