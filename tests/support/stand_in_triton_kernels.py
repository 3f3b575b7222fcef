"""A stand-in for an installed triton_kernels: heuristics of the same signature and contract, with other arithmetic."""

from __future__ import annotations

from pathlib import Path

_SOURCE = '''\
from dataclasses import dataclass, field


@dataclass
class OptFlags:
    block_m: int
    block_n: int
    block_k: int
    split_k: int
    num_warps: int
    num_stages: int = 2
    group_m: int = 4
    fused_scatter: bool = False
    target_kernel_kwargs: dict = field(default_factory=lambda: {{"waves_per_eu": 0}})

    def __post_init__(self):
        if self.fused_scatter and self.split_k != 1:
            raise ValueError("Not supported")


def _choose(m, constraints, block_n):
    chosen = {{"block_m": 64, "block_n": block_n, "block_k": 128, "split_k": 1, "num_warps": 2 if m <= 16 else 8}}
    chosen.update({{key: value for key, value in constraints.items() if value is not None}})
    chosen.pop("is_persistent", None)
    return OptFlags(**chosen)


def make_default_opt_flags_amd(out_dtype, precision_config, m, n, k, constraints):
    """Choose for AMD."""
    constraints_supported = {amd}
    assert not [key for key in constraints if key not in constraints_supported], constraints
    return _choose(m, constraints, 256)


def make_default_opt_flags_nvidia(out_dtype, precision_config, m, n, k, constraints):
    constraints_supported = {nvidia}
    assert not [key for key in constraints if key not in constraints_supported], constraints
    return _choose(m, constraints, 128)


_opt_flags_constraints = dict()


def update_opt_flags_constraints(constraints):
    _opt_flags_constraints.update(constraints)


def make_opt_flags(vendor, m, block_k=None):
    demanded = dict(_opt_flags_constraints)
    if block_k is not None:
        demanded.update(block_k=block_k)
    function = make_default_opt_flags_amd if vendor == "amd" else make_default_opt_flags_nvidia
    return function("bf16", None, m, 5760, 2880, demanded)
'''

_COMMON = ["block_m", "block_k", "split_k", "is_persistent", "epilogue_subtile"]
VERSIONS = {
    "3.5.0": {"amd": [*_COMMON, "block_n", "fused_scatter"], "nvidia": [*_COMMON, "fused_scatter", "num_stages"]},
    "newer": {"amd": {*_COMMON, "block_n", "num_warps"}, "nvidia": {*_COMMON, "num_warps", "num_stages"}},
}


def opt_flags_source(version: str) -> str:
    """Return the text of an ``opt_flags.py``."""
    return _SOURCE.format(amd=VERSIONS[version]["amd"], nvidia=VERSIONS[version]["nvidia"])


def install(folder: Path, version: str, home: str = "triton_kernels") -> Path:
    """Write a package under a folder that stands for site-packages; return its ``opt_flags.py``."""
    package = "matmul_ogs_details" if version == "3.5.0" else "matmul_details"
    path = folder.joinpath(*home.split("."), package, "opt_flags.py")
    path.parent.mkdir(parents=True)
    for parent in list(path.parents)[: len(home.split(".")) + 1]:
        (parent / "__init__.py").touch()
    path.write_text(opt_flags_source(version), encoding="utf-8")
    return path
