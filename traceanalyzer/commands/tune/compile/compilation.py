"""Worker process: compiles candidates for a GPU that need not be there, and reads what the compiler made of them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from traceanalyzer.files import write_whole
from traceanalyzer.hardware.assembly import Assembly, read_amdgcn, read_sass
from traceanalyzer.hardware.cubin import read_cubin
from traceanalyzer.kernels import find_kernel
from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.kernels.target import Target, find_target
from traceanalyzer.workers import serve

if TYPE_CHECKING:
    from traceanalyzer.kernels.launch import Launch

DISASSEMBLER_TIMEOUT_S = 60
"""One kernel takes well under a second; chosen, not fitted."""


@dataclass(frozen=True)
class CompileFacts:
    """What compiling one candidate gave.

    Attributes:
        name: the kernel's name, as it will stand in a trace.
        shared_bytes: shared memory a program needs.
        assembly: registers, spills and instructions.
    """

    name: str
    shared_bytes: int
    assembly: Assembly


@dataclass(frozen=True)
class Specialized:
    """A launch as Triton's compiler takes it.

    Attributes:
        signature: parameter -> type, such as ``*bf16``, ``i32``, ``constexpr``.
        constants: parameter -> value, for constexpr parameters and integers that are 1.
        attributes: position of a parameter -> what the compiler may assume of it.
    """

    signature: dict[str, str]
    constants: dict[str, Any]
    attributes: dict[tuple[int], list[list[Any]]]


def specialize(launch: Launch, vendor: str) -> Specialized:
    """Do what Triton does at a launch: integers that are 1 become constants, multiples of 16 and buffers are noted."""
    import torch

    signature: dict[str, str] = {}
    constants: dict[str, Any] = {}
    attributes: dict[tuple[int], list[list[Any]]] = {}
    for place, name in enumerate(launch.kernel.arg_names):
        value = launch.args.get(name, launch.constants.get(name))
        if name in launch.constants or (isinstance(value, int) and value == 1):
            signature[name] = "constexpr"
            constants[name] = value
        elif isinstance(value, torch.Tensor):
            signature[name] = f"*{_element(value.dtype)}"
            attributes[place,] = [["tt.divisibility", 16]]
            if vendor == "amd" and value.nbytes < 2**31:
                attributes[place,].append(["tt.pointer_range", 32])
        elif isinstance(value, float):
            signature[name] = "fp32"
        else:
            signature[name] = "i32" if -(2**31) <= int(value) < 2**31 else "i64"
            if value % 16 == 0:
                attributes[place,] = [["tt.divisibility", 16]]
    return Specialized(signature, constants, attributes)


def _element(dtype: object) -> str:
    return {
        "torch.bfloat16": "bf16",
        "torch.float16": "fp16",
        "torch.float32": "fp32",
        "torch.float8_e4m3fn": "fp8e4nv",
        "torch.float8_e4m3fnuz": "fp8e4b8",
        "torch.uint8": "u8",
        "torch.int32": "i32",
    }[str(dtype)]


def launch_key(launch: Launch, target: Target) -> str:
    """Return what decides the facts, hashed: sources, signature, constants, options, compiler and target."""
    import triton

    special = specialize(launch, target.vendor)
    parts = (
        _sources_digest(),
        triton.__version__,
        target.name,
        launch.kernel.__name__,
        special,
        sorted(launch.options.items()),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _sources_digest() -> str:
    """Hash the kernels, and the modules that read the machine code."""
    package = Path(__file__).resolve().parents[3]
    readers = (package / "hardware" / "assembly.py", Path(__file__).resolve(), package / "hardware" / "cubin.py")
    digest = hashlib.sha256()
    for path in (*sorted((package / "kernels").glob("*.py")), *readers):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def compile_launch(launch: Launch, target: Target) -> CompileFacts:
    """Compile a launch and read the machine code.

    Raises:
        Exception: whatever the compiler raises; the caller turns it into a failed candidate.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    special = specialize(launch, target.vendor)
    source = ASTSource(launch.kernel, special.signature, special.constants, special.attributes)
    gpu = GPUTarget(target.backend, target.arch, target.warp_size)
    compiled = triton.compile(source, target=gpu, options=dict(launch.options))
    amd = target.vendor == "amd"
    assembly = read_amdgcn(compiled.asm["amdgcn"]) if amd else _disassemble(compiled.asm["cubin"])
    return CompileFacts(compiled.metadata.name, compiled.metadata.shared, assembly)


def _disassemble(cubin: bytes) -> Assembly:
    kernel = read_cubin(cubin)[0]  # a compiled Triton kernel is the only one of its file
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        return read_sass(kernel, _cuobjdump("-sass", path))


def _cuobjdump(option: str, cubin: Path) -> str:
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    done = subprocess.run(
        [str(tool), option, str(cubin)], capture_output=True, text=True, timeout=DISASSEMBLER_TIMEOUT_S, check=True
    )
    return done.stdout + done.stderr


def main(cache: str) -> None:
    """Answer compile questions; ``cache`` is a directory, or empty for none."""
    # Triton fuses multiply-adds by default up to 3.9 and warns that it will not; servers run with fusion.
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    serve(lambda question, _: answer(question, Path(cache) if cache else None))


def answer(question: dict[str, Any], cache: Path | None) -> dict[str, Any]:
    """Compile the candidate that ``kernel``, ``problem``, ``config`` and ``target`` name, or find it in the cache.

    Raises:
        Exception: whatever the compiler raises.
    """
    spec = find_kernel(question["kernel"])
    target = find_target(question["target"])
    case = spec.compile_case(Problem.from_dict(question["problem"]), target)
    launch = spec.prepare(case, Config.from_dict(question["config"])).launches[0]
    path = cache / f"{launch_key(launch, target)}.json" if cache else None
    if path is not None:
        with suppress(OSError, msgspec.MsgspecError):  # missing or damaged: compiled again
            return {"facts": msgspec.json.decode(path.read_bytes(), type=CompileFacts), "cached": True}
    facts = compile_launch(launch, target)
    if path is not None:
        write_whole(path, msgspec.json.encode(facts), make_folder=True)
    return {"facts": facts, "cached": False}
