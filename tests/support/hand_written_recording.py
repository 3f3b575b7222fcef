"""Small recordings, written kernel by kernel, with the markers and launches a test asks for."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traceanalyzer.segment import Segmentation
from traceanalyzer.segment.segmentation import cut_up
from traceanalyzer.trace import open_trace

HOST = 4100


@dataclass
class Recording:
    """Host and device events in µs; every kernel takes `length` and is launched one by one unless told otherwise."""

    events: list[dict[str, Any]] = field(default_factory=list)
    now: float = 1000.0
    correlation: int = 0

    def host(self, name: str, start: float, end: float, *, cat: str = "user_annotation", thread: int = HOST) -> None:
        """Add an event of the host."""
        self.events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": HOST, "tid": thread, "ts": start, "dur": end - start}
        )

    def launch(self, *names: str, length: float = 3.0, launched: bool = True, thread: int = HOST) -> None:
        """Launch kernels with one call, as a graph does where there are several."""
        self.correlation += 1
        call = "cudaLaunchKernel" if len(names) == 1 else "cudaGraphLaunch"
        if launched:
            self.host(call, self.now, self.now + 1, cat="cuda_runtime", thread=thread)
            self.events[-1]["args"] = {"correlation": self.correlation}
        self.now += 2
        for name in names:
            arguments = {"device": 0, "stream": 7, "correlation": self.correlation}
            self.events.append(
                {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": self.now, "dur": length}
                | {"args": arguments}
            )
            self.now += length + 1

    def step(self, names: list[str], marker: str | None = None, *, launched: bool = True, thread: int = HOST) -> None:
        """Launch kernels one by one within a marker."""
        begin = self.now
        self.now += 1
        for name in names:
            self.launch(name, launched=launched, thread=thread)
        if marker is not None:
            self.host(marker, begin, self.now, thread=thread)
        self.now += 10

    def segment(self, folder: Path) -> Segmentation:
        """Write the recording and cut it up."""
        return cut_up(open_trace(self.write(folder)))

    def write(self, folder: Path) -> Path:
        """Write the recording and return its file."""
        path = folder / "recording.json"
        properties = [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "warpSize": 32, "numSms": 132}]
        path.write_text(json.dumps({"deviceProperties": properties, "traceEvents": self.events}))
        return path
