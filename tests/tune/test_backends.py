"""The parts of the vLLM backends that can be tried without a GPU."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from traceanalyzer.commands.tune.measure.backends import BACKENDS, triton_kernels
from traceanalyzer.commands.tune.tile_config import TileConfig, to_vllm
from traceanalyzer.kernels.problem import Config


@dataclass
class OptFlags:
    block_m: int = 32
    block_n: int = 256
    block_k: int = 128
    num_warps: int = 2
    num_stages: int = 2
    group_m: int = 4
    split_k: int = 1
    xcd_swizzle: int = 8
    is_persistent: bool = False
    target_kernel_kwargs: dict[str, int] = field(default_factory=lambda: {"waves_per_eu": 0, "kpack": 1})


def test_a_configuration_is_imposed_on_the_librarys_own_flags_while_a_call_runs() -> None:
    asked: list[tuple[Any, ...]] = []
    library = SimpleNamespace(make_opt_flags=lambda *arguments: asked.append(arguments) or OptFlags())
    original = library.make_opt_flags
    with triton_kernels._imposed(library, Config(16, 128, 64, num_warps=8, waves_per_eu=3, matrix_instr_nonkdim=16)):
        flags = library.make_opt_flags("bf16", 4)
    assert asked == [("bf16", 4)]
    assert (flags.block_m, flags.block_n, flags.block_k, flags.num_warps) == (16, 128, 64, 8)
    assert flags.xcd_swizzle == 8, "what a configuration does not name stays the library's choice"
    assert flags.target_kernel_kwargs == {"waves_per_eu": 3, "kpack": 1}, "only keys that this version has"
    assert library.make_opt_flags is original


def test_the_flags_are_put_back_when_the_call_fails() -> None:
    library = SimpleNamespace(make_opt_flags=OptFlags)
    with pytest.raises(RuntimeError), triton_kernels._imposed(library, Config(16, 16, 64)):
        raise RuntimeError
    assert library.make_opt_flags is OptFlags


def test_another_package_of_the_same_name_is_not_taken_for_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "triton_kernels").mkdir()
    (tmp_path / "triton_kernels" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] in ("triton_kernels", "vllm")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(RuntimeError, match="not installed"):
        triton_kernels.import_library()
    sys.modules.pop("triton_kernels", None)


def test_fused_moe_gets_the_keys_of_vllms_files() -> None:
    def keys_of(config: Config) -> dict[str, Any]:
        return dict(to_vllm(TileConfig(config.to_dict())))

    keys = keys_of(Config(16, 128, 64, group_m=32, num_warps=8, num_stages=3))
    assert keys == {
        "BLOCK_SIZE_M": 16,
        "BLOCK_SIZE_N": 128,
        "BLOCK_SIZE_K": 64,
        "GROUP_SIZE_M": 32,
        "num_warps": 8,
        "num_stages": 3,
    }
    assert keys_of(Config(16, 16, 64, waves_per_eu=2))["waves_per_eu"] == 2
    assert keys_of(Config(16, 16, 64, split_k=2))["SPLIT_K"] == 2


def test_every_backend_names_a_module() -> None:
    assert set(BACKENDS) == {"builtin", "triton_kernels", "fused_moe"}
