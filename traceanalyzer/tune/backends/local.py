"""What every backend on a local GPU shares."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata

from traceanalyzer.tune.session import Description, Operation, OperationSession, Task, local_target
from traceanalyzer.tune.timing import GpuTimer


def versions(*packages: str) -> dict[str, str]:
    """Return the installed versions of packages; what is not installed is left out."""
    found = {}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def gpu_session(open_operation: Callable[[Task], Operation], *packages: str) -> OperationSession:
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
    where = Description(device, versions("triton", "torch", *packages), measured=True)
    return OperationSession(open_operation, GpuTimer(), where)
