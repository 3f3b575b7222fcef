"""JSON that the strict decoder refuses, or hands on without a look into it, as far as Python's own can read it."""

from __future__ import annotations

import json
import re
from typing import Any

ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.", re.DOTALL
)


def whole_characters(text: bytes) -> bytes:
    r"""Replace escaped halves of characters (``\ud800``), which no encoding can write."""
    if b"\\u" not in text:
        return text
    return ESCAPE.sub(lambda escape: rb"\ufffd" if _is_half(escape[0]) else escape[0], text)


def _is_half(escape: bytes) -> bool:
    return len(escape) == 6 and escape[1:2] == b"u"


def loose_value(text: bytes) -> Any:
    """Return a value; None where it cannot be read, too."""
    try:
        return json.loads(whole_characters(text).decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
