"""Taking samples: on a GPU with events around a captured graph and a cold L2 cache, else with a clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Any, Protocol

WARM_UP = 3
"""Calls before samples are taken; chosen, not fitted."""

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
    fails the plain call is timed. Overwriting the cache takes the GPU longer than the host needs to launch what
    follows, so that the first event is not waited for by an idle GPU. A sample holds the GPU's own start of a graph, a
    few microseconds that all candidates have alike.
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
    current, side = torch.cuda.current_stream(), stream()
    side.wait_stream(current)
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            run()
    current.wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            run()
    except torch.cuda.OutOfMemoryError:
        raise
    except RuntimeError:
        torch.cuda.set_stream(current)  # a capture that fails may leave its own stream behind
        torch.cuda.synchronize()  # raises where it was no matter of capturing
        return run
    return graph.replay
