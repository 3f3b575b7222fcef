"""vLLM's fused_moe configuration file from a policy: the right name, and every M pinned to its rule."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from traceanalyzer.commands.tune.formats.point_collector import whole
from traceanalyzer.commands.tune.formats.vllm_moe_files import KERNEL, VERSION_KEY, FileName
from traceanalyzer.commands.tune.policy.compute import Policy
from traceanalyzer.commands.tune.tile_config import VLLM, TileConfig, Value, to_vllm
from traceanalyzer.files import write_whole
from traceanalyzer.problems import TraceError

REQUIRED = ("block_m", "block_n", "block_k", "group_m", "num_warps", "num_stages")
"""What vLLM needs in every configuration."""

MEASURED_WITH_VLLM = "fused_moe"
"""The kernel of ``tune run --kernel fused_moe``, whose n counts gate and up together: twice vLLM's N."""

_NOT_QUANTISED = ("bf16", "fp16", "fp32", "bfloat16", "float16", "float32", "torch.bfloat16", "torch.float16")
_QUANTISED = re.compile(r"[a-z0-9]+_w\d+a\d+")


def file_name(
    policy: Policy,
    experts: int | None = None,
    n: int | None = None,
    device: str | None = None,
    dtype: str | None = None,
    block_shape: tuple[int, int] | None = None,
) -> FileName:
    """Return the name under which vLLM looks a configuration up; what is not given comes from the sweep.

    Args:
        policy: of one kernel.
        experts: on one rank (all of them, without expert parallelism).
        n: the experts' intermediate size on one rank: the model's, divided by the tensor-parallel size.
        device: as ``torch.cuda.get_device_name`` has it.
        dtype: such as ``fp8_w8a8``; ``None`` for weights that are not quantised.
        block_shape: of block-wise scales.

    Raises:
        TraceError: a part is neither given nor known.
    """
    experts = experts if experts is not None else whole(policy.shape.get("experts"))
    n = n if n is not None else _known_n(policy)
    device = device or policy.device.get("name")
    for what, value in (("--experts", experts), ("--n", n), ("--device-name", device)):
        if not value:
            raise TraceError("tune export vllm-moe", f"{what} is needed: the sweep does not record it")
    assert experts is not None
    assert n is not None
    sides = block_shape or _sides(policy.shape.get("block_shape"))
    return FileName(
        experts=experts,
        n=n,
        device=device_in_name(str(device)),
        dtype=dtype or _dtype_in_name(policy.shape.get("dtype")),
        block_shape=sides,
    )


def _dtype_in_name(dtype: Value) -> str | None:
    """Return what a file's name says of a sweep's type; weights that are not quantised are not named.

    Raises:
        TraceError: vLLM's word for it is not known.
    """
    if dtype is None or dtype in _NOT_QUANTISED:
        return None
    if _QUANTISED.fullmatch(str(dtype)):
        return str(dtype)
    raise TraceError("tune export vllm-moe", f"vLLM names quantised types such as fp8_w8a8, not {dtype}; pass --dtype")


def device_in_name(device: str) -> str:
    """Return a device's name as vLLM writes it into file names; every H200 is one device to it."""
    name = re.sub(r"[\s/]+", "_", device)
    return "NVIDIA_H200" if "H200" in name.split("_") else name


def moe_document(
    policy: Policy, triton_version: str | None = None, given: Mapping[str, int] | None = None
) -> dict[str, object]:
    """Return the file's content.

    vLLM takes the M (tokens) that is nearest to the batch's, so the last token count of a rule and the first of the
    next are both there: no batch is nearer to a neighbour's configuration than to its own.

    A policy over rows is divided by the top-k of its shape. The version, and the parameters ``given``, are what the
    sweep does not say.

    Raises:
        TraceError: a parameter is missing or unknown to vLLM, or top-k or the version is not known.
    """
    where = "tune export vllm-moe"
    version = triton_version or policy.versions.get("triton")
    if not version:
        raise TraceError(where, "the sweep does not record its Triton version; pass --triton-version")
    divisor = 1 if policy.rows == "requests" else whole(policy.shape.get("top_k"))
    if not divisor:
        raise TraceError(
            where, "vLLM counts tokens, the sweep rows (tokens x top-k), and top-k is unknown; pass --top-k"
        )
    configs = {}
    for tokens in _tokens(policy, divisor):
        configs[tokens] = _vllm_config(policy.config(tokens * divisor).over(given or {}))
    return {VERSION_KEY: version, **{str(tokens): configs[tokens] for tokens in sorted(configs)}}


def _tokens(policy: Policy, divisor: int) -> set[int]:
    """Return the token counts to pin: the measured ones, and both sides of every boundary."""
    tokens = {choice.m // divisor for choice in policy.choices if choice.m >= divisor}
    for rule in policy.rules:
        tokens.add(max(1, -(-rule.min_m // divisor)))
        if rule.max_m is not None and rule.max_m >= divisor:
            tokens.add(rule.max_m // divisor)
    return tokens


def _vllm_config(config: TileConfig) -> dict[str, Value]:
    where = "tune export vllm-moe"
    missing = [key for key in REQUIRED if config.get(key) is None]
    if missing:
        sets = " ".join(f"--set {key}=.." for key in missing)
        raise TraceError(where, f"vLLM needs {', '.join(missing)}, which the sweep lacks; measure them, or pass {sets}")
    unknown = sorted(key for key in config if key not in VLLM)
    if unknown:
        raise TraceError(where, f"vLLM's fused_moe has no parameter {', '.join(unknown)}")
    return to_vllm(config)


def write_moe_file(folder: Path, name: FileName, document: Mapping[str, object]) -> Path:
    """Write the file into a folder for ``VLLM_TUNED_CONFIG_FOLDER``.

    Raises:
        TraceError: it cannot be written.
    """
    path = folder / str(name)
    write_whole(path, json.dumps(document, indent=4) + "\n", make_folder=True)
    return path


def _known_n(policy: Policy) -> int | None:
    n = whole(policy.shape.get("n"))
    if n is None or policy.kernel == KERNEL:
        return n
    return n // 2 if policy.kernel == MEASURED_WITH_VLLM else None


def _sides(text: Value) -> tuple[int, int] | None:
    sides = [int(side) for side in str(text).split(",") if side.strip().isdecimal()] if text else []
    return (sides[0], sides[1]) if len(sides) == 2 else None
