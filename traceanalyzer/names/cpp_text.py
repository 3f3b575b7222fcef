"""Cheap, linear readings of C++ names: function, template arguments, identifiers of mangled names."""

from __future__ import annotations

import re
from functools import cached_property

from traceanalyzer.names.demangle import demangle

TEXT_LIMIT = 32_768
"""Characters of a name that are looked at; longer names are read as far as this."""

_LAUNCH_SUFFIX = re.compile(r"(?:\.kd|\s{0,3}\[clone [^\]]{0,200}\])+$")
_ENABLE_IF = re.compile(r"std::enable_if<.{0,2000}?>::type ", re.DOTALL)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[a-z]+|[0-9]+")
_BRACKET = re.compile(r"[<>(){}\[\],]")
_INTEGER = re.compile(r"(?:\((?:unsigned )?(?:int|long|short|char|long long)\))?([0-9]{1,18})[uUlL]{0,3}")
_MANGLED_TOKEN = re.compile(r"L[a-z]n?\d{1,18}E|E\d{1,9}E|L(?=[NS\d])|\d{1,4}")


class NameView:
    """A kernel name prepared for the schemes: every derived text is worked out at most once."""

    def __init__(self, raw: str) -> None:
        self.raw = raw
        text = raw[:TEXT_LIMIT].strip()
        self.text = _LAUNCH_SUFFIX.sub("", text) if text.endswith((".kd", "]")) else text
        self.lower = self.text.lower()

    @property
    def is_mangled(self) -> bool:
        """Whether the name is in the Itanium C++ form (`_Z...`)."""
        return self.text.startswith("_Z")

    @cached_property
    def cxx(self) -> str:
        """The text with a mangled name demangled, as far as that is covered."""
        return demangle(self.text) or self.text

    @cached_property
    def tokens(self) -> list[str | int]:
        """Identifiers (text) and integer literals (int) of a mangled name, in order; empty otherwise."""
        return mangled_tokens(self.text) if self.is_mangled else []

    @cached_property
    def function(self) -> str:
        """Qualified function name: no return type, template arguments or parameters."""
        return mangled_function(self.text) if self.is_mangled else demangled_function(self.text)

    @cached_property
    def identifier(self) -> str:
        """The text to look for words in: the function, and the template arguments where it only wraps them."""
        last = self.function.rsplit("::", 1)[-1]
        if last not in WRAPPERS:
            return self.function
        if self.is_mangled:
            return "::".join(token for token in self.tokens if isinstance(token, str))
        return self.text

    @cached_property
    def template(self) -> list[str]:
        """Top-level template arguments of the function, as text."""
        last = self.function.rsplit("::", 1)[-1]
        at = self.cxx.find(last + "<")
        return [] if at < 0 else template_arguments(self.cxx, at + len(last))


WRAPPERS = frozenset({"device_kernel", "kentry", "Kernel", "Kernel2", "kernel_entry", "trampoline_kernel"})
"""Functions that do nothing but call the kernel named in their template arguments."""


def demangled_function(text: str) -> str:
    """`void a::f<int>(float)` -> `a::f`; a name that is not C++ comes back whole."""
    text = text.replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    if text.startswith("std::enable_if<"):
        text = _ENABLE_IF.sub("", text, count=1)
    ends = [at for at in (text.find("<"), text.find("(")) if at > 0]
    head = text[: min(ends)] if ends else text
    if not ends or head.endswith(" "):
        return text.removeprefix("void ").strip()
    return head.split()[-1]


def mangled_function(text: str) -> str:
    """`_ZN5aiter3addILi1EEEvPf` -> `aiter::add`: the leading run of names, without arguments."""
    at = 2
    while at < len(text) and text[at] in "NKLVrSt":
        at += 1
    parts: list[str] = []
    while at < len(text) and text[at].isdecimal() and len(parts) < 64:
        part, at = _source_name(text, at)
        if part is None:
            break
        if not part.startswith("_GLOBAL__N_"):
            parts.append(part)
    return "::".join(parts) if parts else text


def mangled_tokens(text: str) -> list[str | int]:
    """Identifiers and integer literals of a mangled name; substitutions and types are skipped."""
    tokens: list[str | int] = []
    at, open_literals = 2, 0
    while match := _MANGLED_TOKEN.search(text, at):
        token, at = match.group(), match.end()
        if token[0] == "L":
            if len(token) == 1:
                open_literals += 1
            else:
                tokens.append(int(token[2:-1].replace("n", "-")))
        elif token[0] == "E":
            if open_literals:
                open_literals -= 1
                tokens.append(int(token[1:-1]))
            else:
                at = match.start() + 1
        else:
            part, end = _source_name(text, match.start())
            if part is not None:
                tokens.append(part)
                at = end
    return tokens


def _source_name(text: str, at: int) -> tuple[str | None, int]:
    """Return the length-prefixed identifier at `at`, if there is one, and where it ends."""
    digits = at
    while digits < len(text) and digits - at < 5 and text[digits] in "0123456789":
        digits += 1
    if digits == at:
        return None, at
    end = digits + int(text[at:digits])
    part = text[digits:end]
    if end > len(text) or not part.isidentifier():
        return None, digits
    return part, end


def template_arguments(text: str, start: int) -> list[str]:
    """Top-level arguments of the bracket that opens at `start`; what is open at the end is closed there."""
    arguments: list[str] = []
    depth, begin = 0, start + 1
    for match in _BRACKET.finditer(text, start):
        token, at = match.group(), match.start()
        if token in "<({[":
            depth += 1
        elif token in ">)}]":
            depth -= 1
            if depth == 0:
                arguments.append(text[begin:at].strip())
                return arguments
        elif depth == 1:
            arguments.append(text[begin:at].strip())
            begin = at + 1
    arguments.append(text[begin:].strip())
    return arguments


def integers(arguments: list[str]) -> list[int | None]:
    """Each argument as an integer (`128u`, `(int)128`, `0`), or ``None`` where it is something else.

    A value of an enumeration (`(cute::UMMA::Major)0`) is something else.
    """
    return [int(match[1]) if (match := _INTEGER.fullmatch(argument)) else None for argument in arguments]


def words(identifier: str) -> list[str]:
    """Lower-case words of an identifier, cut at underscores, digits and camel humps."""
    return _WORD.findall(_CAMEL.sub("_", identifier).lower())
