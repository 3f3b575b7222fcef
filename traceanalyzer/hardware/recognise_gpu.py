"""Which GPU a trace ran on, from its deviceProperties.

ROCm often leaves the name empty or writes a generic one; compute units, memory, compute capability and warp size
together then tell the model, as long as only one in the table has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from traceanalyzer.hardware.gpus import Gpu, known_gpus
from traceanalyzer.hardware.lookup import words

GENERIC_NAMES = frozenset({"", "amd radeon graphics", "amd radeon(tm) graphics", "amd instinct"})
"""Names that drivers give to many different GPUs, in lower case."""

MEMORY_SHARE = (0.85, 1.09)
"""Reported bytes over nominal decimal GB: part is reserved, and nominal sizes may mean GiB (1.074 GB). Chosen, not
fitted."""


@dataclass(frozen=True)
class DeviceName:
    """What is known of one device's identity.

    Attributes:
        name: as the trace gives it or as recognised; ``None`` when unknown.
        source: ``trace``, ``fingerprint``, ``option`` or ``None``.
        gpu: the table's row; ``None`` when the device is not in it.
    """

    name: str | None
    source: str | None
    gpu: Gpu | None


def recognise(device_properties: Sequence[dict[str, Any]], device: int | None) -> DeviceName:
    """Identify a device of a trace.

    Args:
        device_properties: the trace's ``deviceProperties``.
        device: the device id of its kernels; an id that the properties lack is the model listed, if there is only one.
    """
    if device is None:
        return DeviceName(None, None, None)
    properties = _properties_of(device_properties, device)
    if properties is None:
        return DeviceName(None, None, None)
    name = str(properties.get("name") or "").strip()
    if name.lower() not in GENERIC_NAMES:
        return DeviceName(name, "trace", _by_name(name) or _by_part_of_name(name, properties))
    if gpu := _only(gpu for gpu in known_gpus() if _matches(gpu, properties)):
        return DeviceName(gpu.name, "fingerprint", gpu)
    return DeviceName(name or None, "trace" if name else None, None)


def _properties_of(device_properties: Sequence[dict[str, Any]], device: int) -> dict[str, Any] | None:
    listed = [properties for properties in device_properties if isinstance(properties, dict)]
    for properties in listed:
        if properties.get("id") == device:
            return properties
    models = {tuple(sorted((k, repr(v)) for k, v in properties.items() if k != "id")) for properties in listed}
    return listed[0] if len(models) == 1 else None


def _by_name(name: str) -> Gpu | None:
    told = words(name)
    return _only(gpu for gpu in known_gpus() if told in {words(own) for own in (gpu.name, *gpu.device_names)})


def _by_part_of_name(name: str, properties: dict[str, Any]) -> Gpu | None:
    """Recognise ``AMD Instinct MI300X VF`` as an MI300X, but only if its size agrees."""
    told = set(words(name))
    return _only(gpu for gpu in known_gpus() if set(words(gpu.name)) <= told and _matches(gpu, properties))


def _only(fitting: Iterable[Gpu]) -> Gpu | None:
    """Return the only GPU that fits; ``None`` where several do, or none."""
    gpus = list(fitting)
    return gpus[0] if len(gpus) == 1 else None


def _matches(gpu: Gpu, properties: dict[str, Any]) -> bool:
    units, memory, warp = (properties.get(key) for key in ("numSms", "totalGlobalMem", "warpSize"))
    if not isinstance(units, int) or not isinstance(memory, int):
        return False
    if gpu.compute_units is None or gpu.memory_gb is None:
        return False
    capability = f"{properties.get('computeMajor')}.{properties.get('computeMinor')}"
    # RDNA reports work-group processors, two compute units each.
    unit_counts = (
        {gpu.compute_units, gpu.compute_units // 2}
        if (gpu.architecture or "").startswith("RDNA")
        else {gpu.compute_units}
    )
    low, high = MEMORY_SHARE
    return (
        units in unit_counts
        and capability == gpu.compute_capability
        and (warp is None or warp == gpu.warp_size)
        and low <= memory / (gpu.memory_gb * 1e9) <= high
    )
