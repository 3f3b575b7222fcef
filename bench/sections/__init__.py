"""The sections of docs/benchmarks.md: one module each, made from one file of results.

A module has ``RESULTS`` (the benchmark it is made from), ``ORDER`` (its place in the list of sections), and
``render(document) -> str``, Markdown from the results only; it may have ``images(document) -> dict[str, bytes]``.
"""
