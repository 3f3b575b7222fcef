"""Terminals that know no Unicode: signs that their encoding lacks are written as plain ones."""

from __future__ import annotations

import codecs
from io import TextIOWrapper

PLAIN = str.maketrans(
    {"·": "-", "µ": "u", "…": "~", "→": "->", "×": "x", "≥": ">=", "≤": "<=", "±": "+-", "–": "-", "—": "-"}
    | dict.fromkeys("─━═╌╴╶╸╺", "-")
    | dict.fromkeys("│┃", "|")
    | dict(zip("▁▂▃▄▅▆▇█", "_.:-=+*#", strict=True))
)
"""Signs of reports and how they look without Unicode; any other becomes a question mark."""

_HANDLER = "traceanalyzer.plain"


def make_plain(stream: TextIOWrapper) -> None:
    """Make a stream write what its encoding lacks in plain signs instead of failing."""
    codecs.register_error(_HANDLER, _replace)
    stream.reconfigure(errors=_HANDLER)


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(PLAIN)
    return "".join(sign if sign.isascii() else "?" for sign in text), error.end
