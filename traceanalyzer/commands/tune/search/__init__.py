"""Search of a discrete space of kernel configurations with few measurements.

    history = search(configs, measure, budget=200, seed=0)
    for best in history.best(1):
        print(configs[best], history.times[best])

``measure(index)`` returns one evaluation's samples in milliseconds, none when the configuration cannot run.
"""

from __future__ import annotations

from traceanalyzer.commands.tune.search.search_loop import STRATEGIES, search

__all__ = ["STRATEGIES", "search"]
