"""Benchmarks, outside of the package: ``loading`` and ``analyses`` measure, ``publish`` writes docs/benchmarks.md.

``inputs`` makes the files, ``routes`` are the programs compared and ``answers`` what they must agree on, ``measure``
runs one, ``rounds`` orders and repeats runs, ``results`` keeps them, ``summary`` has the statistics.
"""
