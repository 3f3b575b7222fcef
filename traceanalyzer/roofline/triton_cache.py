"""What the Triton cache of the server that made a trace says about its kernels.

``$TRITON_CACHE_DIR/<hash>/<kernel>.json`` holds the name that the trace shows, warps, stages and shared memory;
``.ttir`` beside it the tile of the matrix product; ``.amdgcn`` (AMD) or ``.cubin`` (NVIDIA) registers and spills.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from traceanalyzer.findings import LEAST_SHARE, NAME_WIDTH, Finding
from traceanalyzer.hardware.assembly import read_amdgcn
from traceanalyzer.hardware.cubin import read_cubin
from traceanalyzer.names import short_name
from traceanalyzer.problems import TraceError
from traceanalyzer.trace import Trace

LARGEST_METADATA = 1 << 20
"""Bytes of a JSON file beyond which it is not a kernel's metadata."""

LARGEST_CUBIN = 1 << 28
"""Bytes beyond which a file is not a kernel's machine code."""

_DOT = re.compile(r"tt\.dot(?:_scaled)?\b[^\n]*?: *[^\n]*?-> *tensor<(\d+)x(\d+)x")
_DOT_A = re.compile(r"tt\.dot(?:_scaled)?\b[^\n]*?: *tensor<(\d+)x(\d+)x")


@dataclass(frozen=True)
class CompiledKernel:
    """One compiled variant of a Triton kernel. What the cache does not hold is None.

    Attributes:
        name: as in the trace.
        target: ``gfx942``, ``sm_90`` ...
        num_warps, num_stages, warp_size: launch and pipeline settings.
        shared_bytes: shared memory of a program.
        block_m, block_n, block_k: tile of its matrix product, elements; None without one, or with several that differ.
        registers: vector registers per thread.
        spills: vector registers per thread that did not fit; on NVIDIA bytes of stack / 4.
        folder: name of its folder in the cache.
    """

    name: str
    target: str | None
    num_warps: int | None
    num_stages: int | None
    warp_size: int | None
    shared_bytes: int | None
    block_m: int | None
    block_n: int | None
    block_k: int | None
    registers: int | None
    spills: int | None
    folder: str


def read_triton_cache(directory: Path, names: Iterable[str]) -> tuple[CompiledKernel, ...]:
    """Read every variant that a Triton cache directory holds of the kernels named.

    Raises:
        TraceError: it is not a directory, or holds no compiled Triton kernel at all.
    """
    if not directory.is_dir():
        raise TraceError(str(directory), "is not a directory; give the TRITON_CACHE_DIR of the server")
    wanted = {name.removesuffix(".kd") for name in names}
    metadata = [read for path in sorted(directory.glob("**/*.json")) if (read := _metadata(path))]
    if not metadata:
        raise TraceError(str(directory), "holds no compiled Triton kernel (expected <hash>/<kernel>.json)")
    return tuple(_kernel(path, facts) for path, facts in metadata if facts["name"] in wanted)


def compiled_kernels(trace: Trace, directory: Path) -> dict[str, CompiledKernel]:
    """Read the Triton cache of the server that made a trace: the variant of each kernel name that ran.

    Raises:
        TraceError: the directory is not a Triton cache.
    """
    kernels = trace.device_events.filter("is_kernel")
    names = kernels["name"].unique().cast(pl.String).to_list()
    return match(kernels, read_triton_cache(directory, names))


def spill_findings(rows: pl.DataFrame, compiled: Mapping[str, CompiledKernel]) -> list[Finding]:
    """Warn of kernels with a noticeable share of the time whose registers spill.

    Args:
        rows: ``Hotspots.rows`` by kernel.
        compiled: as ``compiled_kernels`` returns it.
    """
    findings = []
    for row in rows.filter(pl.col("share") >= LEAST_SHARE).iter_rows(named=True):
        kernel = compiled.get(row["name"])
        if kernel is not None and kernel.spills:
            findings.append(
                Finding(
                    "register_spills",
                    f"{short_name(row['name'], NAME_WIDTH)} spills {kernel.spills} registers per thread at "
                    f"{kernel.num_warps or 'an unknown number of'} warps ({row['share'] * 100:.1f} % of kernel time): "
                    "a smaller tile or more warps would keep them (measured at compile time, Triton cache).",
                )
            )
    return findings


def match(kernels: pl.DataFrame, compiled: Sequence[CompiledKernel]) -> dict[str, CompiledKernel]:
    """Find the variant of each kernel name that ran.

    Args:
        kernels: kernel events: name, thread_block (JSON text), shared_memory.
        compiled: what the cache holds.

    Returns:
        By name as in the trace. Variants that contradict the threads per block or the shared memory of the events are
        out; where several remain, a field on which they differ is None.
    """
    seen = kernels.select(
        pl.col("name").cast(pl.String), pl.col("thread_block").cast(pl.String), "shared_memory"
    ).unique()
    matched: dict[str, CompiledKernel] = {}
    for (name,), events in seen.group_by("name"):
        variants = [c for c in compiled if c.name == str(name).removesuffix(".kd") and _could_be(c, events)]
        if variants:
            matched[str(name)] = _agreed(variants)
    return matched


def _could_be(compiled: CompiledKernel, events: pl.DataFrame) -> bool:
    threads = {count for text in events["thread_block"].drop_nulls() if (count := _threads(text)) is not None}
    shared = set(events["shared_memory"].drop_nulls().to_list())
    if threads and compiled.num_warps and compiled.warp_size:
        return compiled.num_warps * compiled.warp_size in threads and (not shared or compiled.shared_bytes in shared)
    return not shared or compiled.shared_bytes is None or compiled.shared_bytes in shared


def _threads(block: str) -> int | None:
    """Threads of a block from its JSON text; Triton's blocks have one dimension. None for anything else."""
    try:
        extents = json.loads(block)
    except (ValueError, RecursionError):
        return None
    return _integer(extents[0]) if isinstance(extents, list) and extents else None


def _agreed(variants: Sequence[CompiledKernel]) -> CompiledKernel:
    first = variants[0]
    differing = {
        field: None
        for field in CompiledKernel.__dataclass_fields__
        if field not in {"name", "folder"} and len({getattr(v, field) for v in variants}) > 1
    }
    return replace(first, **differing)  # type: ignore[arg-type]


def _metadata(path: Path) -> tuple[Path, dict[str, object]] | None:
    if path.name.startswith("__grp__"):
        return None
    try:
        facts = json.loads(path.read_bytes()) if path.stat().st_size <= LARGEST_METADATA else None
    except (OSError, ValueError, RecursionError):
        return None
    if isinstance(facts, dict) and isinstance(facts.get("name"), str) and "num_warps" in facts:
        return path, facts
    return None


def _kernel(path: Path, facts: dict[str, object]) -> CompiledKernel:
    target = facts.get("target")
    target = target if isinstance(target, dict) else {}
    arch = target.get("arch")
    tile = _tile(path.with_suffix(".ttir"))
    registers, spills = _registers(path, str(facts["name"]))
    return CompiledKernel(
        name=str(facts["name"]),
        target=f"sm_{arch}" if isinstance(arch, int) else arch,
        num_warps=_integer(facts.get("num_warps")),
        num_stages=_integer(facts.get("num_stages")),
        warp_size=_integer(facts.get("warp_size", target.get("warp_size"))),
        shared_bytes=_integer(facts.get("shared")),
        block_m=tile[0],
        block_n=tile[1],
        block_k=tile[2],
        registers=registers,
        spills=spills,
        folder=path.parent.name,
    )


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _tile(ttir: Path) -> tuple[int | None, int | None, int | None]:
    """Tile of the matrix products in a kernel's IR, if all have the same."""
    try:
        text = ttir.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None, None, None
    outputs = {(int(m), int(n)) for m, n in _DOT.findall(text)}
    depths = {int(k) for _, k in _DOT_A.findall(text)}
    m, n = outputs.pop() if len(outputs) == 1 else (None, None)
    return m, n, depths.pop() if len(depths) == 1 else None


def _registers(metadata: Path, name: str) -> tuple[int | None, int | None]:
    """Registers and spills from the machine code beside a kernel's metadata."""
    assembly, cubin = metadata.with_suffix(".amdgcn"), metadata.with_suffix(".cubin")
    try:
        if assembly.is_file():
            read = read_amdgcn(assembly.read_text(encoding="utf-8", errors="replace"))
            return read.registers, read.spills
        if cubin.is_file() and cubin.stat().st_size <= LARGEST_CUBIN:
            own = [kernel for kernel in read_cubin(cubin.read_bytes()) if kernel.name == name]
            return (own[0].registers, own[0].spills) if own else (None, None)
    except (OSError, ValueError):
        pass
    return None, None
