"""Registers, stack and static shared memory of NVIDIA kernels, from the ELF file of their machine code (cubin).

No tool of CUDA is needed. Every kernel has a section ``.text.KERNEL``; the section ``.nv.info`` lists attributes,
each a format (1 byte), a kind (1 byte) and, in the only format of interest, a length (2 bytes) with the index of a
symbol and a value (4 bytes each). Older compilers leave the register count to the upper byte of ``sh_info`` of the
``.text`` section. Layout of ELF: System V ABI, chapter 4.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

BYTES_PER_REGISTER = 4
"""A register of a thread; what does not fit is spilled to the stack in units of it."""

_TEXT, _SHARED, _INFO = ".text.", ".nv.shared.", ".nv.info"
_SYMBOLS = 2  # sh_type of the symbol table
_NO_BITS = 8  # sh_type of a section without bytes in the file
_SIZED = 4  # format of an attribute that gives its own length
_FRAME, _MIN_STACK, _REGISTERS = 0x11, 0x12, 0x2F  # kinds of attributes
_HEADER = struct.Struct("<4s5B7xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_ATTRIBUTE = struct.Struct("<BBH")
_VALUE = struct.Struct("<II")


@dataclass(frozen=True)
class CubinKernel:
    """What one kernel of a cubin occupies. What the file does not say is ``None``.

    Attributes:
        name: of the kernel, as in the file.
        registers: per thread.
        stack_bytes: stack per thread, including functions it calls. A kernel without arrays of its own, such as
            Triton's, has one only for registers that did not fit.
        shared_bytes: static shared memory of a program.
    """

    name: str
    registers: int | None
    stack_bytes: int | None
    shared_bytes: int

    @property
    def spills(self) -> int | None:
        """Registers per thread that did not fit."""
        return None if self.stack_bytes is None else self.stack_bytes // BYTES_PER_REGISTER


@dataclass(frozen=True)
class _Section:
    name: str
    type: int
    offset: int
    size: int
    info: int


def read_cubin(data: bytes) -> tuple[CubinKernel, ...]:
    """Read every kernel of a cubin, in order of its sections.

    Raises:
        ValueError: it is not a 64-bit ELF file, or is cut off.
    """
    try:
        sections = _sections(data)
        symbols = _symbol_names(data, sections)
        attributes = {kind: values for kind, values in _attributes(data, sections, symbols).items() if values}
    except (struct.error, IndexError) as error:
        raise ValueError(f"a damaged cubin: {error}") from error
    shared = {one.name.removeprefix(_SHARED): one.size for one in sections if one.name.startswith(_SHARED)}
    kernels = []
    for one in sections:
        name = one.name.removeprefix(_TEXT)
        if name == one.name:
            continue
        stack = attributes.get(_MIN_STACK, {}).get(name, attributes.get(_FRAME, {}).get(name))
        registers = attributes.get(_REGISTERS, {}).get(name) or (one.info >> 24) or None
        kernels.append(CubinKernel(name, registers, stack, shared.get(name, 0)))
    return tuple(kernels)


def _sections(data: bytes) -> list[_Section]:
    magic, wide, order, *_rest = _HEADER.unpack_from(data)
    if magic != b"\x7fELF" or wide != 2 or order != 1:
        raise ValueError("not a cubin: not a 64-bit little-endian ELF file")
    *_, table, _flags, _header, _entry, _count, size, count, names = _HEADER.unpack_from(data)
    if size < _SECTION.size:
        raise ValueError("not a cubin: no section table")
    raw = [_SECTION.unpack_from(data, table + size * number) for number in range(count)]
    texts = raw[names]
    return [_Section(_text(data, texts[4] + one[0]), one[1], one[4], one[5], one[7]) for one in raw]


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode("utf-8", "replace")


def _symbol_names(data: bytes, sections: list[_Section]) -> dict[int, str]:
    """Name of each symbol that names a section of code, by its index in the symbol table."""
    names: dict[int, str] = {}
    for table in (one for one in sections if one.type == _SYMBOLS):
        for index in range(table.size // _SYMBOL.size):
            place = _SYMBOL.unpack_from(data, table.offset + index * _SYMBOL.size)[3]
            if place < len(sections) and sections[place].name.startswith(_TEXT):
                names[index] = sections[place].name.removeprefix(_TEXT)
    return names


def _attributes(data: bytes, sections: list[_Section], symbols: dict[int, str]) -> dict[int, dict[str, int]]:
    """Values of the attributes read here, by kind and kernel."""
    attributes: dict[int, dict[str, int]] = {kind: {} for kind in (_FRAME, _MIN_STACK, _REGISTERS)}
    for section in (one for one in sections if one.name == _INFO and one.type != _NO_BITS):
        for kind, value in _entries(data, section):
            if kind not in attributes or len(value) != _VALUE.size:
                continue
            symbol, amount = _VALUE.unpack(value)
            if symbol in symbols:
                attributes[kind][symbols[symbol]] = amount
    return attributes


def _entries(data: bytes, section: _Section) -> Iterator[tuple[int, bytes]]:
    """Kind and bytes of each attribute; those of a fixed length have their value where others have the length."""
    at, end = section.offset, section.offset + section.size
    while at + _ATTRIBUTE.size <= end:
        form, kind, length = _ATTRIBUTE.unpack_from(data, at)
        at += _ATTRIBUTE.size
        if form == _SIZED:
            yield kind, data[at : at + length]
            at += length
