"""Whose kernels can be measured: this package's own, and those that a vLLM installation brings."""

from __future__ import annotations

BACKENDS = {
    "builtin": "traceanalyzer.tune.backends.builtin",
    "triton_kernels": "traceanalyzer.tune.backends.triton_kernels",
    "fused_moe": "traceanalyzer.tune.backends.fused_moe",
}
"""Backend name -> module with ``open_session(device)``."""
