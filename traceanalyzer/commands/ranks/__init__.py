"""Many ranks: pairing of collectives, waiting, pipeline stages, experts, clocks.

`compare(traces)` gives everything the `ranks` command shows.
"""
