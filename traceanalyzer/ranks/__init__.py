"""Many ranks: pairing of collectives, waiting, pipeline stages, experts, clocks.

`compare(traces)` gives everything the `ranks` command shows.
"""

from traceanalyzer.ranks.compare import RankComparison, compare

__all__ = ["RankComparison", "compare"]
