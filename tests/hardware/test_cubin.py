"""Registers and spills of NVIDIA kernels, from hand-made ELF files and from what Triton compiles."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import warnings
from pathlib import Path

import pytest

from traceanalyzer.hardware.cubin import read_cubin
from traceanalyzer.roofline.triton_cache import read_triton_cache

NAMES = ("", ".strtab", ".symtab", ".nv.info", ".text.first", ".text.second", ".nv.shared.first")
REGISTERS, MIN_STACK, FRAME = 0x2F, 0x12, 0x11


def sized(kind: int, symbol: int, value: int) -> bytes:
    """An attribute with a length of its own."""
    return struct.pack("<BBHII", 4, kind, 8, symbol, value)


def elf(attributes: bytes, registers_in_section: int = 0) -> bytes:
    """A cubin with two kernels, whose symbols are 1 (first) and 2 (second); the first has 2048 bytes shared memory."""
    strings = b"\0".join(name.encode() for name in NAMES) + b"\0"
    symbols = b"".join(struct.pack("<IBBHQQ", 0, 3, 0, place, 0, 0) for place in (0, 4, 5))
    bodies = {".strtab": strings, ".symtab": symbols, ".nv.info": attributes}
    sections, data, at = [], b"", 64
    for name in NAMES:
        kind = {"": 0, ".strtab": 3, ".symtab": 2, ".nv.shared.first": 8}.get(name, 1)
        body = bodies.get(name, b"")
        size = 2048 if name == ".nv.shared.first" else len(body)
        info = registers_in_section << 24 if name.startswith(".text") else 0
        named = strings.index(name.encode() + b"\0") if name else 0
        sections.append(struct.pack("<IIQQQQIIQQ", named, kind, 0, 0, at, size, 0, info, 0, 0))
        data, at = data + body, at + len(body)
    head = b"\x7fELF" + bytes((2, 1, 1, 51, 7)) + bytes(7)
    head += struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, at, 0, 64, 56, 0, 64, len(NAMES), 1)
    return head + data + b"".join(sections)


def test_each_kernel_has_its_registers_stack_and_shared_memory() -> None:
    plain = struct.pack("<BBH", 1, REGISTERS, 8)  # a format without a length: the last two bytes are its value
    listed = plain + sized(REGISTERS, 1, 168) + sized(MIN_STACK, 1, 120) + sized(REGISTERS, 2, 32)
    first, second = read_cubin(elf(listed + sized(FRAME, 2, 8)))
    assert (first.name, first.registers, first.stack_bytes, first.spills) == ("first", 168, 120, 30)
    assert (second.name, second.registers, second.spills) == ("second", 32, 2)
    assert (first.shared_bytes, second.shared_bytes) == (2048, 0)


def test_older_files_have_the_registers_beside_the_section() -> None:
    first, _ = read_cubin(elf(b"", registers_in_section=40))
    assert (first.registers, first.stack_bytes, first.spills) == (40, None, None)


@pytest.mark.parametrize("length", [0, 3, 40, 64, 200, 400])
def test_what_is_no_cubin_or_cut_off_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="cubin"):
        read_cubin(elf(sized(REGISTERS, 1, 168))[:length])
    with pytest.raises(ValueError, match="cubin"):
        read_cubin(b"PK\x03\x04" + bytes(200))


def test_the_cache_of_an_nvidia_server_gives_registers_and_spills(tmp_path: Path) -> None:
    home = tmp_path / "HASH"
    home.mkdir()
    target = {"backend": "cuda", "arch": 90, "warp_size": 32}
    facts = {"name": "second", "num_warps": 4, "num_stages": 3, "shared": 4096, "target": target}
    (home / "second.json").write_text(json.dumps(facts))
    (home / "second.cubin").write_bytes(elf(sized(REGISTERS, 2, 255) + sized(MIN_STACK, 2, 96)))
    (found,) = read_triton_cache(tmp_path, ["second"])
    assert (found.registers, found.spills, found.target) == (255, 24, "sm_90")
    (home / "second.cubin").write_bytes(b"damaged")
    (found,) = read_triton_cache(tmp_path, ["second"])
    assert (found.registers, found.spills) == (None, None)


@pytest.mark.parametrize("most_registers", [32, None])
def test_what_triton_compiles_reads_as_the_disassembler_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_registers: int | None
) -> None:
    triton = pytest.importorskip("triton", reason="Triton is not installed")
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    if not tool.exists():
        pytest.skip("this Triton ships no cuobjdump")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from tests.support.spilling_kernel import product_kernel

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    types = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "k_size": "i32", "size": "constexpr"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Triton, about its own settings
        source = ASTSource(product_kernel, types, {"size": 32}, {})
        options = {"num_warps": 4, "maxnreg": most_registers}
        cubin = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["cubin"]
    (tmp_path / "kernel.cubin").write_bytes(cubin)
    command = [str(tool), "-res-usage", str(tmp_path / "kernel.cubin")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    told = re.search(r"REG:(\d+) STACK:(\d+) SHARED:(\d+)", printed)
    assert told
    (found,) = read_cubin(cubin)
    assert (found.registers, found.stack_bytes, found.shared_bytes) == tuple(int(group) for group in told.groups())
    assert bool(found.spills) is (most_registers is not None)
    (cached,) = read_triton_cache(tmp_path, ["product_kernel"])
    assert (cached.registers, cached.spills) == (found.registers, found.spills)
