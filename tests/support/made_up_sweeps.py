"""Made-up spaces of configurations with times, of several shapes."""

from __future__ import annotations

import itertools

import numpy as np

from traceanalyzer.commands.tune.formats.sweep import Sweep, SweepPoint
from traceanalyzer.commands.tune.tile_config import TileConfig

SHAPES = ("additive", "interacting", "cliffs", "categories", "failures")


def made_up_sweep(shape: str, size: int, seed: int, noise: float = 0.01, samples: int = 6) -> Sweep:
    """Return a sweep of about so many configurations, with implicit constraints; times are e to the sum of effects."""
    rng = np.random.default_rng([seed, SHAPES.index(shape), size])
    levels = [3, 2, 3, 2, 4, 2, 3, 4, 3, 4]
    while np.prod(levels) > 2.5 * size:
        levels.pop(0)
    codes = np.array(list(itertools.product(*map(range, levels))))
    unit = codes / (np.array(levels) - 1)
    forbidden = unit[:, 0] + unit[:, -1] > 1.6
    codes, unit = codes[~forbidden], unit[~forbidden]
    kept = np.sort(rng.choice(len(codes), min(size, len(codes)), replace=False))
    codes, unit = codes[kept], unit[kept]
    log_time = rng.normal(0, 0.02, len(codes))
    for column in range(len(levels)):
        if shape == "categories":
            log_time += rng.normal(0, 0.3, levels[column])[codes[:, column]]
        else:
            log_time += rng.gamma(1, 0.4) * np.abs(unit[:, column] - rng.uniform())
    for _ in range(len(levels) if shape in {"interacting", "categories"} else 0):
        a, b = rng.choice(len(levels), 2, replace=False)
        log_time += rng.normal(0, 0.2, (levels[a], levels[b]))[codes[:, a], codes[:, b]]
    for _ in range(4 if shape == "cliffs" else 0):
        a, b = rng.choice(len(levels), 2, replace=False)
        log_time += rng.uniform(0.3, 1.5) * (unit[:, a] + unit[:, b] > rng.uniform(0.8, 1.4))
    fails = np.zeros(len(codes), bool)
    for _ in range(2 if shape == "failures" else 0):
        a, b = rng.choice(len(levels), 2, replace=False)
        fails |= unit[:, a] + unit[:, b] > 1.3
    times = 5 * np.exp(log_time)
    points = []
    for row, time, failed in zip(codes, times, fails, strict=True):
        config = {f"p{i}": f"kind{code}" if shape == "categories" else 2 ** int(code) for i, code in enumerate(row)}
        drawn = tuple(float(t) for t in time * np.exp(rng.normal(0, noise, samples)))
        reason = "out of shared memory" if failed else None
        points.append(
            SweepPoint("made_up", 64, None, TileConfig(config), rounds=() if failed else (drawn,), reason=reason)
        )
    return Sweep(tuple(points), source=f"{shape} {size}")
