"""Parameter names of other tuners, under the names that sweeps use."""

from __future__ import annotations

from collections.abc import Mapping

from traceanalyzer.commands.tune.formats.sweep import Value

_SAME = {
    "block_size_m": "block_m",
    "block_size_n": "block_n",
    "block_size_k": "block_k",
    "block_m": "block_m",
    "block_n": "block_n",
    "block_k": "block_k",
    "group_size_m": "group_m",
    "group_m": "group_m",
    "split_k": "split_k",
    "num_warps": "num_warps",
    "num_stages": "num_stages",
}
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
"""Our name -> the key of a vLLM fused_moe file."""


def block_names(config: Mapping[str, Value]) -> dict[str, Value]:
    """Return a configuration with the usual spellings of tile sides under one name; others keep theirs."""
    return {_SAME.get(key.lower(), key): value for key, value in config.items()}
