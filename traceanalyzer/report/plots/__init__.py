"""Matplotlib plots, one module a view, in one style: colour-blind-safe, legible at half size.

Every function returns a ``matplotlib.figure.Figure``; ``save`` writes one to a file.
"""

from traceanalyzer.report.plots.blocks import block_strip
from traceanalyzer.report.plots.diff import change_by_role
from traceanalyzer.report.plots.estimate import time_by_bound
from traceanalyzer.report.plots.idle import gaps_by_kernel
from traceanalyzer.report.plots.kernels import kernels_by_time
from traceanalyzer.report.plots.ranks import time_by_rank
from traceanalyzer.report.plots.roofline import roofline_figure
from traceanalyzer.report.plots.serving import throughput_curves
from traceanalyzer.report.plots.style import save

__all__ = [
    "block_strip",
    "change_by_role",
    "gaps_by_kernel",
    "kernels_by_time",
    "roofline_figure",
    "save",
    "throughput_curves",
    "time_by_bound",
    "time_by_rank",
]
