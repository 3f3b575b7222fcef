"""The configuration of one kernel launch, and the names that every format read or written has for its parameters."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Annotated

from traceanalyzer.declare import told

Value = int | float | str | None
"""What a shape or a configuration may hold: a JSON scalar."""

ConfigValues = Annotated[
    dict[str, int | float | str | bool | None],
    told(
        "Meta-parameters by name: block_m, block_n, block_k, split_k, group_m, num_warps, num_stages, ...; "
        "null: left to the kernel, or not known."
    ),
]
"""A configuration as a document declares it."""

ShapeValues = Annotated[
    dict[str, int | float | str | bool | None],
    told("The rest of the problem (n, k, dtype, experts, top_k), as far as known."),
]
"""A problem without its rows, likewise."""


class TileConfig(Mapping[str, Value]):
    """Meta-parameters by our names (those of ``VLLM``); immutable, and equal whatever their order.

    Parameters that only one tuner knows keep that tuner's names. ``None`` means that the source does not say, or that
    the kernel decides. What may be launched is a ``kernels.problem.Config``, whose values are checked.
    """

    __slots__ = ("_hash", "_values")

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = dict(values)
        self._hash: int | None = None

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._values.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self._values == (other._values if isinstance(other, TileConfig) else other)

    def __repr__(self) -> str:
        return f"TileConfig({self._values!r})"

    @property
    def known(self) -> TileConfig:
        """The parameters whose value is known."""
        return TileConfig({name: value for name, value in self.items() if value is not None})

    def without(self, names: Container[str]) -> TileConfig:
        """Return the configuration with some parameters left to the kernel."""
        return TileConfig({name: value for name, value in self.items() if name not in names})

    def over(self, fallback: Mapping[str, Value]) -> TileConfig:
        """Return the configuration, with the values of another where it lacks a parameter."""
        return TileConfig({**fallback, **self})


SIDES = ("block_m", "block_n", "block_k")
"""The sides of a tile, in the order in which a tile is written."""
TILE = (*SIDES, "split_k")

POWERS_OF_TWO = (*SIDES, "num_warps")
COUNTS = ("split_k", "group_m", "num_stages")
NOT_NEGATIVE = ("waves_per_eu", "matrix_instr_nonkdim")

VLLM = {
    "block_m": "BLOCK_SIZE_M",
    "block_n": "BLOCK_SIZE_N",
    "block_k": "BLOCK_SIZE_K",
    "group_m": "GROUP_SIZE_M",
    "split_k": "SPLIT_K",
    "num_warps": "num_warps",
    "num_stages": "num_stages",
    "waves_per_eu": "waves_per_eu",
    "matrix_instr_nonkdim": "matrix_instr_nonkdim",
    "kpack": "kpack",
}
"""Our name -> the key in a vLLM fused_moe file."""

TRITON = {
    **{VLLM[ours].lower(): ours for ours in (*TILE, "group_m", "num_warps", "num_stages")},
    **{ours: ours for ours in (*TILE, "group_m")},
}
"""Spelling in a Triton kernel, in lower case -> our name."""

LOG = {
    "block_m": "bm",
    "block_n": "bn",
    "block_k": "bk",
    "split_k": "sk",
    "num_warps": "nw",
    "num_stages": "ns",
    "group_m": "gm",
}
"""Our name -> the word in a log of a hand-written sweep, in the order in which a line has them."""

LOG_READ = {theirs: ours for ours, theirs in LOG.items()} | {"warps": "num_warps", "stages": "num_stages"}
"""Word in such a log -> our name."""

INDUCTOR = {
    "bm": "block_m",
    "bn": "block_n",
    "bk": "block_k",
    "split_k": "split_k",
    "group_m": "group_m",
    "warps": "num_warps",
    "stages": "num_stages",
}
"""Column of a published Inductor table -> our name."""

AITER_DENSE = ("libtype", "solidx", "kernelId", "splitK", "kernelName")
AITER_MOE = ("block_m", "ksplit", "run_1stage", "kernelId", "kernelName1", "kernelName2")
"""Columns of AITER's tables; they keep their names, as what splitK and ksplit count differs by kernel."""

TRITON_LAUNCH = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""What Triton's autotuner keeps beside a kernel's own constants."""


def from_triton(config: Mapping[str, Value]) -> TileConfig:
    """Return a Triton kernel's constants under our names, in any spelling; parameters of its own keep their names."""
    return TileConfig({TRITON.get(key.lower(), key): value for key, value in config.items()})


def from_columns(cells: Mapping[str, Value], names: Mapping[str, str]) -> TileConfig:
    """Return the known values among the cells of a row, column -> our name."""
    return TileConfig({ours: cells[theirs] for theirs, ours in names.items() if cells.get(theirs) is not None})


def from_log(words: Mapping[str, Value]) -> TileConfig:
    """Return the words of a log's line under our names; words of its own keep theirs."""
    return TileConfig({LOG_READ.get(key.lower(), key): value for key, value in words.items()})


def to_vllm(config: TileConfig) -> dict[str, Value]:
    """Return a configuration under vLLM's keys.

    SPLIT_K is named only where it splits: vLLM sets it itself, and versions without it reject the key.
    """
    known = config.known
    return {
        theirs: known[ours] for ours, theirs in VLLM.items() if ours in known and (ours, known[ours]) != ("split_k", 1)
    }


def to_log(config: TileConfig) -> dict[str, Value]:
    """Return a configuration under a log's words: the tile always, the rest where it is known."""
    return {theirs: config.get(ours) for ours, theirs in LOG.items() if ours in TILE or config.get(ours) is not None}
