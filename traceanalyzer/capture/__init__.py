"""Recording a trace of a running server: start its profiler, drive it, stop it, find the files."""

from traceanalyzer.capture.http import Client, Endpoint
from traceanalyzer.capture.load import Workload
from traceanalyzer.capture.session import Capture, capture

__all__ = ["Capture", "Client", "Endpoint", "Workload", "capture"]
