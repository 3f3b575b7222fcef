"""What every backend on a local GPU shares."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata

from traceanalyzer.commands.tune.measure.measuring import (
    Description,
    MeasuringTask,
    Operation,
    OperationSession,
    local_target,
)
from traceanalyzer.commands.tune.measure.timing import GpuTimer


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of triton, torch and other packages; what is not installed is left out.

    The first two say their own: builds for ROCm are distributed under other names.
    """
    import torch
    import triton

    known: dict[str, str] = {"triton": triton.__version__, "torch": str(torch.__version__)}
    for package in packages:
        try:
            known[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return known


def gpu_session(open_operation: Callable[[MeasuringTask], Operation], *packages: str) -> OperationSession:
    """Open operations on the local GPU.

    Args:
        open_operation: task -> operation.
        packages: whose versions are recorded, beside triton and torch.

    Raises:
        RuntimeError: there is none.
    """
    target = local_target()
    import torch

    device = {"name": torch.cuda.get_device_name(0), "target": target.name}
    where = Description(device, versions(*packages), measured=True)
    return OperationSession(open_operation, GpuTimer(), where)
