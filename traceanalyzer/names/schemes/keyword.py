"""The last resort: the words of the name, whoever wrote the kernel."""

from __future__ import annotations

import re

from traceanalyzer.names.build import by_words
from traceanalyzer.names.cpp_text import NameView
from traceanalyzer.names.kernel_name import KernelName
from traceanalyzer.names.registry import register

_IDENTIFIER = re.compile(r"[A-Za-z_][\w:.]{0,4096}$")


@register("keyword", order=1000, pattern="")
def read(view: NameView, _match: re.Match[str]) -> KernelName | None:
    """Kind and family from the vocabulary; nothing else. Text that is not an identifier is not read."""
    if not _IDENTIFIER.match(view.function):
        return None
    return by_words(view, "keyword")
