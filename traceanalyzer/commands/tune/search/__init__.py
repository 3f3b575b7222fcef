"""Search of a discrete space of kernel configurations with few measurements.

    result = search(configs, measure, budget=200, seed=0)
    configs[result.best], result.history.times[found.best]

``measure(index)`` returns one evaluation's samples in milliseconds, none when the configuration cannot run.
"""

from __future__ import annotations

from traceanalyzer.commands.tune.search.search_loop import STRATEGIES, SearchResult, search

__all__ = ["STRATEGIES", "SearchResult", "search"]
