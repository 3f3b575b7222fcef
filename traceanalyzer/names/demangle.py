"""Enough of Itanium C++ demangling to read template arguments: names, types, literals, packs, substitutions.

Written after the Itanium C++ ABI, chapter "External Names". Expressions, lambdas, local names and operators
are not covered: such a name is not demangled, and stays as it is.
"""

from __future__ import annotations

_BUILTIN = {
    "v": "void",
    "w": "wchar_t",
    "b": "bool",
    "c": "char",
    "a": "signed char",
    "h": "unsigned char",
    "s": "short",
    "t": "unsigned short",
    "i": "int",
    "j": "unsigned int",
    "l": "long",
    "m": "unsigned long",
    "x": "long long",
    "y": "unsigned long long",
    "f": "float",
    "d": "double",
    "e": "long double",
    "z": "...",
}
_STANDARD = {"Sa": "std::allocator", "Ss": "std::string", "Sb": "std::basic_string", "Sd": "std::iostream"}
_SUFFIX = {"i": "", "j": "u", "l": "l", "m": "ul", "x": "ll", "y": "ull"}
_QUALIFIERS = {"P": "*", "R": "&", "O": "&&", "K": " const", "V": " volatile"}
_MAX_DEPTH = 120
_MAX_LENGTH = 65_536
_MAX_WORK = 2_000_000


class _NotCoveredError(Exception):
    """The name uses a part of the grammar that is not covered, or breaks it, or grows too large."""


def demangle(name: str) -> str | None:
    """`_ZN4cute5tupleIJNS_1CILi1EEEEEE` -> `cute::tuple<cute::C<1>>`; no parameters; ``None`` if not covered."""
    if not name.startswith("_Z"):
        return None
    try:
        return _Reader(name).encoding()
    except _NotCoveredError:
        return None


class _Reader:
    """Reads left to right; `known` is the table that `S_`, `S0_`, ... refer to."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 2
        self.depth = 0
        self.work = 0
        self.known: list[str] = []

    def encoding(self) -> str:
        if self._peek() == "N":
            return self._nested()
        name = self._unscoped()
        if self._peek() == "I":
            self.known.append(name)
            name += self._arguments()
        return name

    def _peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.text[at] if at < len(self.text) else ""

    def _take(self, expected: str) -> bool:
        if self.text.startswith(expected, self.at):
            self.at += len(expected)
            return True
        return False

    def _require(self, expected: str) -> None:
        if not self._take(expected):
            raise _NotCoveredError

    def _made(self, text: str) -> str:
        self.work += len(text)
        if len(text) > _MAX_LENGTH or self.work > _MAX_WORK:
            raise _NotCoveredError
        return text

    def _source(self) -> str:
        start = self.at
        while self._peek() in set("0123456789") and self.at - start < 6:
            self.at += 1
        if self.at == start:
            raise _NotCoveredError
        end = self.at + int(self.text[start : self.at])
        part = self.text[self.at : end]
        if end > len(self.text) or not part.isidentifier():
            raise _NotCoveredError
        self.at = end
        return "(anonymous namespace)" if part.startswith("_GLOBAL__N_") else part

    def _unscoped(self) -> str:
        return "std::" + self._source() if self._take("St") else self._source()

    def _nested(self) -> str:
        """`N prefix... E`; every prefix enters the table, the whole name only where it is a type."""
        self._require("N")
        while self._peek() and self._peek() in "KVr":
            self.at += 1
        name = ""
        while not self._take("E"):
            if self._peek() == "I":
                name = self._made(name + self._arguments())
            elif self._peek() == "S" and not name:
                name = "std" if self._take("St") else self._substitution()
                continue
            else:
                part = self._source()
                name = self._made(f"{name}::{part}" if name else part)
            self.known.append(name)
        if not name:
            raise _NotCoveredError
        return name

    def _substitution(self) -> str:
        for short, long in _STANDARD.items():
            if self._take(short):
                return long
        self._require("S")
        digits = ""
        while (character := self._peek()) and character in "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ":
            digits += character
            self.at += 1
            if len(digits) > 4:
                raise _NotCoveredError
        self._require("_")
        index = int(digits, 36) + 1 if digits else 0
        if index >= len(self.known):
            raise _NotCoveredError
        return self._made(self.known[index])

    def _arguments(self) -> str:
        self._require("I")
        return self._made(f"<{', '.join(self._argument_list())}>")

    def _argument_list(self) -> list[str]:
        arguments: list[str] = []
        while not self._take("E"):
            if self._take("J"):
                arguments += self._argument_list()
            elif self._peek() == "L":
                arguments.append(self._literal())
            else:
                arguments.append(self._type())
        return arguments

    def _literal(self) -> str:
        self._require("L")
        kind = self._peek()
        of_builtin = kind in _BUILTIN
        type_name = self._type()
        end = self.text.find("E", self.at, self.at + 24)
        if end < 0:
            raise _NotCoveredError
        value = self.text[self.at : end].replace("n", "-", 1)
        self.at = end + 1
        if not value.removeprefix("-").isdecimal():
            raise _NotCoveredError
        if kind == "b":
            return "true" if value == "1" else "false"
        return value + _SUFFIX[kind] if of_builtin and kind in _SUFFIX else f"({type_name}){value}"

    def _type(self) -> str:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise _NotCoveredError
        name = self._made(self._type_inside())
        self.depth -= 1
        return name

    def _type_inside(self) -> str:
        character = self._peek()
        if character in _BUILTIN:
            self.at += 1
            return _BUILTIN[character]
        if character and character in _QUALIFIERS:
            self.at += 1
            name = self._type() + _QUALIFIERS[character]
            self.known.append(name)
            return name
        if character == "D":
            return self._extended()
        if character == "N":
            return self._nested()
        if character == "S" and self._peek(1) != "t":
            name = self._substitution()
        else:
            name = self._unscoped()
            self.known.append(name)
        if self._peek() == "I":
            name += self._arguments()
            self.known.append(name)
        return name

    def _extended(self) -> str:
        for short, long in (("DF16b", "__bf16"), ("DF16_", "_Float16"), ("Dh", "half"), ("Dn", "std::nullptr_t")):
            if self._take(short):
                return long
        if self._take("DB") or self._take("DU"):
            end = self.text.find("_", self.at, self.at + 6)
            bits = self.text[self.at : end] if end > 0 else ""
            if not bits.isdecimal():
                raise _NotCoveredError
            self.at = end + 1
            return f"_BitInt({bits})"
        raise _NotCoveredError
