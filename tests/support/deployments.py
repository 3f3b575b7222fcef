"""Deployments for tests."""

from __future__ import annotations

from typing import Any

from traceanalyzer.commands.estimate.deployment import Deployment
from traceanalyzer.commands.estimate.efficiencies import default_efficiencies, default_link
from traceanalyzer.hardware import find_gpu
from traceanalyzer.model import format_named, load, with_formats


def deployment(model: str, gpu: str, weights: str | None = None, kv: str | None = None, **more: Any) -> Deployment:
    chosen = find_gpu(gpu)
    formats = {
        "weights": format_named(weights) if weights else None,
        "kv": format_named(kv) if kv else None,
    }
    more.setdefault("link", default_link(chosen))
    more.setdefault("efficiencies", default_efficiencies(chosen))
    return Deployment(with_formats(load(model), **formats), chosen, **more)
