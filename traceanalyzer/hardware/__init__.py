"""GPUs: their limits with sources, and which one a trace ran on."""

from traceanalyzer.hardware.gpus import Gpu, known_gpus
from traceanalyzer.hardware.recognise import DeviceName, recognise

__all__ = ["DeviceName", "Gpu", "known_gpus", "recognise"]
