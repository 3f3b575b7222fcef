"""Whose kernels can be measured: this package's own, and those that a vLLM installation brings."""

from __future__ import annotations

BACKENDS = {
    "builtin": "traceanalyzer.commands.tune.measure.backends.builtin",
    "triton_kernels": "traceanalyzer.commands.tune.measure.backends.triton_kernels",
    "fused_moe": "traceanalyzer.commands.tune.measure.backends.fused_moe",
}
"""Backend name -> module with ``open_session(device)``."""
