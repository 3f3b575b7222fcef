"""GPUs: their limits with sources, and which one a trace ran on."""

from traceanalyzer.hardware.gpus import DTYPES, Gpu, HardwareError, known_gpus
from traceanalyzer.hardware.lookup import find_gpu, read_gpus
from traceanalyzer.hardware.recognise_gpu import DeviceName, recognise
from traceanalyzer.hardware.roofs import SHORTEST_KERNEL_NS, Roofs, roofs

__all__ = [
    "DTYPES",
    "SHORTEST_KERNEL_NS",
    "DeviceName",
    "Gpu",
    "HardwareError",
    "Roofs",
    "find_gpu",
    "known_gpus",
    "read_gpus",
    "recognise",
    "roofs",
]
