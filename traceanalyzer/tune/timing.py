"""Taking samples: on a GPU with events around a captured graph and a cold L2 cache, else with a clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Any, Protocol

WARM_UP = 3
FLUSH_BYTES = 512 << 20
"""Written before every sample; more than the largest last-level cache (MI300X: 256 MiB)."""


class Timer(Protocol):
    """Takes samples of something that can be run."""

    def sample(self, key: Hashable, run: Callable[[], object], count: int) -> list[float]:
        """Return ``count`` times in milliseconds; ``key`` tells what is run, for what is kept between calls."""

    def forget(self, key: Hashable) -> None:
        """Drop what is kept for a key."""

    def forget_all(self) -> None:
        """Drop everything kept."""


class ClockTimer:
    """Wall-clock times of a call; for the interpreter, where they mean nothing."""

    def sample(self, key: Hashable, run: Callable[[], object], count: int) -> list[float]:
        """Run and time."""
        del key
        samples = []
        for _ in range(count):
            start = time.perf_counter()
            run()
            samples.append(1e3 * (time.perf_counter() - start))
        return samples

    def forget(self, key: Hashable) -> None:
        """Keep nothing."""

    def forget_all(self) -> None:
        """Keep nothing."""


class GpuTimer:
    """Device times of a call: every sample starts with a cold L2 cache, as a layer of a decode step does.

    The call is captured as a CUDA (HIP) graph once, so that the host's launch time does not count; where capturing
    fails the plain call is timed.
    """

    def __init__(self) -> None:
        import torch

        self._flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
        self._graphs: dict[Hashable, Callable[[], object]] = {}

    def sample(self, key: Hashable, run: Callable[[], object], count: int) -> list[float]:
        """Warm up, then take ``count`` samples."""
        import torch

        if key not in self._graphs:
            self._graphs[key] = _captured(run)
        replay = self._graphs[key]
        for _ in range(WARM_UP):
            replay()
        event: Any = torch.cuda.Event
        pairs = [(event(enable_timing=True), event(enable_timing=True)) for _ in range(count)]
        for start, end in pairs:
            self._flush.zero_()
            start.record()
            replay()
            end.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) for start, end in pairs]

    def forget(self, key: Hashable) -> None:
        """Free the graph of a key."""
        self._graphs.pop(key, None)

    def forget_all(self) -> None:
        """Free every graph."""
        self._graphs.clear()


def _captured(run: Callable[[], object]) -> Callable[[], object]:
    import torch

    stream: Any = torch.cuda.Stream
    side = stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            run()
    except RuntimeError:
        torch.cuda.synchronize()
        return run
    return graph.replay
