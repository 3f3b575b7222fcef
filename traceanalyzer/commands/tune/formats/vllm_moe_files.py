"""vLLM's fused_moe configuration files: the chosen configuration per M, without timings.

M counts the tokens of a batch, before each goes to its top-k experts: with ``top_k`` known, m = M x top-k rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from traceanalyzer.commands.tune.formats.point_collector import PointCollector, number, scalars
from traceanalyzer.commands.tune.formats.sweep import SweepPoint
from traceanalyzer.commands.tune.formats.sweep_source import SweepSource
from traceanalyzer.commands.tune.tile_config import Value, from_triton

NAME = "vllm-moe"
TITLE = "a vLLM fused_moe configuration (E=..,N=..,device_name=...json)"

VERSION_KEY = "triton_version"
KERNEL = "fused_moe_kernel"

_PART = re.compile(r"(?:^|,)(E|N|K|device_name|dtype|block_shape)=")


@dataclass(frozen=True)
class FileName:
    """What the name of a configuration file says.

    Attributes:
        experts: on this rank; ``None`` for a dense product.
        n: intermediate size per rank (for a dense product: output columns per rank).
        k: reduced dimension; only names of dense products have it.
        device: the GPU, with _ for spaces.
        dtype: of activations and weights, such as ``fp8_w8a8``; ``None`` for the model's own.
        block_shape: of block-wise scales, ``(n, k)``; ``None`` where there are none.
    """

    experts: int | None
    n: int
    device: str
    k: int | None = None
    dtype: str | None = None
    block_shape: tuple[int, ...] | None = None

    def __str__(self) -> str:
        size = [("E", self.experts), ("N", self.n), ("K", self.k)]
        parts = [f"{key}={value}" for key, value in size if value is not None] + [f"device_name={self.device}"]
        if self.dtype:
            parts.append(f"dtype={self.dtype}")
        if self.block_shape:
            parts.append(f"block_shape=[{','.join(map(str, self.block_shape))}]")
        return ",".join(parts) + ".json"

    @property
    def label(self) -> str:
        """The shape in a few words, such as ``E=128,N=192 fp8_w8a8 block [128,128]``."""
        size = [("E", self.experts), ("N", self.n), ("K", self.k)]
        words = [",".join(f"{key}={value}" for key, value in size if value is not None)]
        words += [self.dtype] if self.dtype else []
        words += [f"block [{','.join(map(str, self.block_shape))}]"] if self.block_shape else []
        return " ".join(words)


def parse_file_name(name: str) -> FileName | None:
    """Read a configuration file's name; ``None`` for every other name."""
    stem = name.removesuffix(".json")
    parts = list(_PART.finditer(stem))
    if not parts:
        return None
    ends = [part.start() for part in parts[1:]] + [len(stem)]
    values = {part.group(1): stem[part.end() : end] for part, end in zip(parts, ends, strict=True)}
    whole = {key: _whole(values.get(key)) for key in ("E", "N", "K")}
    sides = [_whole(side) for side in values.get("block_shape", "").strip("[]").replace(" ", "").split(",") if side]
    if whole["N"] is None or "device_name" not in values or None in sides or name == stem:
        return None
    return FileName(
        experts=whole["E"],
        n=whole["N"],
        k=whole["K"],
        device=values["device_name"],
        dtype=values.get("dtype"),
        block_shape=tuple(side for side in sides if side is not None) or None,
    )


def batch_keys(document: Mapping[str, object]) -> list[int]:
    """Return the batch sizes of a file, in its order, without ``triton_version``."""
    return [int(key) for key in document if key.isdecimal()]


def recognises(source: SweepSource) -> bool:
    """Return whether every key is a batch size, or the Triton version, over a configuration with tile sides."""
    document = source.document
    if not isinstance(document, dict) or not any(key.isdecimal() for key in document):
        return False
    return all(key == VERSION_KEY or (key.isdecimal() and isinstance(value, dict)) for key, value in document.items())


def read(source: SweepSource, into: PointCollector) -> None:
    """Add the configuration of every M; nothing was timed."""
    name = parse_file_name(source.name)
    version = source.document.get(VERSION_KEY)
    shape = _shape(name, source.top_k)
    for key in batch_keys(source.document):
        config = scalars(source.document[str(key)]) if str(key) in source.document else None
        if not config or key < 1:
            into.malformed(f"batch size {key} has no usable configuration")
            continue
        point = SweepPoint(
            kernel=KERNEL,
            m=key * (source.top_k or 1),
            concurrency=key,
            config=from_triton(config),
            shape=shape,
            device={"name": name.device.replace("_", " ")} if name else {},
            versions={"triton": str(version)} if version else {},
            measured=False,
        )
        into.add(point, [])
    if source.top_k is None and (name is None or name.experts is not None):
        into.count("rows_are_tokens", "without --top-k, m is vLLM's M: tokens, not rows of the product")


def _shape(name: FileName | None, top_k: int | None) -> dict[str, Value]:
    """Return what the file's name and the user say of the product."""
    named: dict[str, Value] = {}
    if name is not None:
        sides = ",".join(map(str, name.block_shape)) if name.block_shape else None
        named = {"experts": name.experts, "n": name.n, "k": name.k, "dtype": name.dtype, "block_shape": sides}
    return {key: value for key, value in {**named, "top_k": top_k}.items() if value is not None}


def _whole(text: str | None) -> int | None:
    value = number(text) if text else None
    return value if isinstance(value, int) else None
