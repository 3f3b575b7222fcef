"""What compiled code says before it runs: registers, spills, and the instructions of the main loop."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from traceanalyzer.hardware.cubin import CubinKernel

KINDS = ("matrix", "vector", "scalar", "memory", "shared", "scratch")


@dataclass(frozen=True)
class Instructions:
    """Static instruction counts of one kernel, by what they occupy.

    Attributes:
        matrix: matrix unit (HMMA, HGMMA, WMMA, MFMA).
        vector: per-lane arithmetic and moves.
        scalar: per-warp arithmetic and control flow.
        memory: loads and stores of device memory.
        shared: loads and stores of shared memory.
        scratch: loads and stores of spilled registers.
    """

    matrix: int = 0
    vector: int = 0
    scalar: int = 0
    memory: int = 0
    shared: int = 0
    scratch: int = 0


@dataclass(frozen=True)
class Assembly:
    """What was read from one kernel's machine code.

    Attributes:
        registers: vector registers per thread.
        spills: vector registers that did not fit; on NVIDIA stack bytes / 4, which is what ptxas spills to.
        scratch_bytes: stack or scratch bytes per thread.
        shared_bytes: static shared memory of a program, where the code says so.
        whole: instructions of the whole kernel.
        loop: instructions of the main loop: the one with the most matrix instructions (without any: the longest).
    """

    registers: int | None
    spills: int | None
    scratch_bytes: int | None
    shared_bytes: int | None
    whole: Instructions
    loop: Instructions


@dataclass(frozen=True)
class _Line:
    opcode: str
    target: str | None  # where a branch goes
    label: str | None  # labels or the address of this place


def read_amdgcn(text: str) -> Assembly:
    """Read the assembly that Triton keeps as ``.amdgcn``.

    Raises:
        ValueError: it holds no kernel descriptor.
    """
    fields = {name: _amd_field(text, name) for name in ("vgpr_count", "vgpr_spill_count", "private_segment_fixed_size")}
    if fields["vgpr_count"] is None:
        raise ValueError("not the assembly of an AMD kernel: .vgpr_count is missing")
    accumulators = _amd_field(text, "agpr_count") or 0
    lines = list(_amd_lines(text))
    return Assembly(
        registers=max(fields["vgpr_count"], accumulators),
        spills=fields["vgpr_spill_count"],
        scratch_bytes=fields["private_segment_fixed_size"],
        shared_bytes=_amd_field(text, "group_segment_fixed_size"),
        whole=_count(lines, amd_kind),
        loop=_count(_main_loop(lines, amd_kind), amd_kind),
    )


def read_sass(kernel: CubinKernel, sass: str) -> Assembly:
    """Add to what a cubin says of its kernel the instructions that ``cuobjdump -sass`` prints of it."""
    lines = list(_sass_lines(sass))
    return Assembly(
        registers=kernel.registers,
        spills=kernel.spills,
        scratch_bytes=kernel.stack_bytes,
        shared_bytes=kernel.shared_bytes,
        whole=_count(lines, sass_kind),
        loop=_count(_main_loop(lines, sass_kind), sass_kind),
    )


def _amd_field(text: str, name: str) -> int | None:
    field = re.search(rf"^\s*-?\s*\.{name}:\s*(\d+)", text, re.MULTILINE)
    return int(field.group(1)) if field else None


def _amd_lines(text: str) -> Iterable[_Line]:
    label = None
    for raw in text.splitlines():
        line = raw.partition(";")[0].strip()
        if line.endswith(":") and not line.startswith("-"):
            label = line[:-1]
        elif re.match(r"(v|s|ds|global|buffer|flat|scratch|image|tensor)_\w+", line):
            opcode, _, rest = line.partition(" ")
            jump = rest.split()[-1] if "branch" in opcode and rest else None
            yield _Line(opcode, jump, label)
            label = None


def _sass_lines(text: str) -> Iterable[_Line]:
    for line in text.splitlines():
        parts = re.match(r"\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(.*)", line)
        if parts:
            address, opcode, rest = parts.groups()
            jump = re.search(r"0x([0-9a-f]+)", rest) if opcode.startswith("BRA") else None
            yield _Line(opcode, jump.group(1).lstrip("0") if jump else None, address.lstrip("0"))


def amd_kind(opcode: str) -> str:
    """Return what an AMD instruction occupies, one of ``KINDS``."""
    if opcode.startswith(("v_wmma", "v_mfma", "v_swmmac", "v_smfmac")):
        return "matrix"
    for prefix, kind in (("scratch_", "scratch"), ("ds_", "shared"), ("s_", "scalar"), ("v_", "vector")):
        if opcode.startswith(prefix):
            return kind
    return "memory"


_SASS_CONTROL = frozenset(
    {"BRA", "EXIT", "NOP", "BAR", "BSSY", "BSYNC", "DEPBAR", "LDGDEPBAR", "WARPSYNC", "CALL", "RET", "YIELD"}
    | {"ERRBAR", "CCTL", "MEMBAR", "FENCE", "SYNCS", "WARPGROUP", "ACQBULK", "PREEXIT", "NANOSLEEP", "S2UR"}
)


def sass_kind(opcode: str) -> str:
    """Return what an NVIDIA instruction occupies, one of ``KINDS``."""
    stem = opcode.partition(".")[0]
    if "MMA" in stem:
        return "matrix"
    if stem in {"LDL", "STL"}:
        return "scratch"
    if stem in {"LDS", "STS", "LDSM", "STSM", "ATOMS", "LDTM", "STTM", "UTCCP"}:
        return "shared"
    if stem.startswith(("LDG", "STG", "LD", "ST", "UTMA", "UBLKCP", "RED", "ATOM")) and stem != "LDGDEPBAR":
        return "scalar" if stem.startswith("LDC") else "memory"
    if stem in _SASS_CONTROL or stem.startswith("U"):
        return "scalar"
    return "vector"


def _main_loop(lines: Sequence[_Line], kind: Callable[[str], str]) -> Sequence[_Line]:
    """Return the innermost loop with the most matrix instructions; a loop ends at a branch to an earlier place."""
    places = {line.label: i for i, line in enumerate(lines) if line.label is not None}
    best: tuple[tuple[int, int], Sequence[_Line]] = ((0, 0), ())
    for end, line in enumerate(lines):
        start = places.get(line.target) if line.target is not None else None
        if start is None or start >= end:
            continue
        body = lines[start : end + 1]
        matrix = sum(kind(inside.opcode) == "matrix" for inside in body)
        longest_first = len(body) if not matrix else -len(body)
        best = max(best, ((matrix, longest_first), body), key=lambda ranked: ranked[0])
    return best[1]


def _count(lines: Iterable[_Line], kind: Callable[[str], str]) -> Instructions:
    return Instructions(**Counter(kind(line.opcode) for line in lines))
