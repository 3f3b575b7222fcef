"""Everything that one request for estimates yields."""

from __future__ import annotations

from dataclasses import dataclass

from traceanalyzer.commands.estimate.calibrate import Calibration
from traceanalyzer.commands.estimate.compute import Estimate
from traceanalyzer.commands.estimate.from_roofline import Prediction
from traceanalyzer.commands.estimate.gpu_comparison import Shortcut
from traceanalyzer.commands.estimate.parallel import LayoutComparison
from traceanalyzer.problems import TraceWarning


@dataclass(frozen=True)
class Results:
    """Estimates and what was compared with them; null for what was not asked for.

    Attributes:
        estimates: one for each batch.
        second: the first of them on a second GPU.
        shortcut: the same by Amdahl's law.
        layouts: layouts compared.
        calibration: where the efficiencies come from.
        prediction: what a faster hotspot of a trace brings.
        warnings: about the traces and results that were read for it.
    """

    estimates: tuple[Estimate, ...]
    second: Estimate | None
    shortcut: Shortcut | None
    layouts: LayoutComparison | None
    calibration: Calibration | None
    prediction: Prediction | None
    warnings: tuple[TraceWarning, ...] = ()
