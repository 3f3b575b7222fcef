"""A random forest for small tables of level numbers; all trees grow together, one depth at a time.

Breiman, "Random Forests" (2001): every tree sees a bootstrap sample, every split a part of the parameters; the spread
of the trees' answers is a measure of how little is known about a configuration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traceanalyzer.commands.tune.search.level_space import Codes, Floats, Indices

# Chosen, not fitted; `python -m bench.replay` shows what they give on recorded spaces.

TREES = 24
DEPTH = 10
SMALLEST_LEAF = 2
SHARE_OF_PARAMETERS = 0.6
LEAF = -1
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Forest:
    """Trees in one table of nodes; the first ``trees`` nodes are the roots.

    Attributes:
        parameter: which column a node splits on; ``LEAF`` for a leaf.
        threshold: the highest level number that goes left.
        left: the node on the left; the one on the right follows it.
        value: mean target of the node's training points.
        trees: how many there are.
        depth: of the deepest tree.
    """

    parameter: Indices
    threshold: Indices
    left: Indices
    value: Floats
    trees: int
    depth: int

    def predict(self, codes: Codes) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the trees' answers for each row of codes."""
        # A leaf sends everything to itself, so that all rows can walk the full depth without asking where they are.
        leaf = self.parameter == LEAF
        parameter = np.where(leaf, 0, self.parameter)
        threshold = np.where(leaf, NEVER, self.threshold)
        left = np.where(leaf, np.arange(len(leaf)), self.left)
        flat, width = codes.ravel(), codes.shape[1]
        start = (np.arange(len(codes)) * width)[None, :]
        node = np.repeat(np.arange(self.trees)[:, None], len(codes), axis=1)
        for _ in range(self.depth):
            right = flat.take(start + parameter.take(node)) > threshold.take(node)
            node = left.take(node) + right
        answers = self.value.take(node)
        return answers.mean(axis=0), answers.std(axis=0)


def fit_forest(codes: Codes, target: Floats, rng: np.random.Generator, trees: int = TREES) -> Forest:
    """Grow a forest from ``codes[points, parameters]``, at least one parameter, and one target per point."""
    points, parameters = codes.shape
    levels = int(codes.max()) + 1
    drawn = rng.integers(0, points, trees * points)
    x, y = codes[drawn], target[drawn]
    where = np.repeat(np.arange(trees), points)  # the place of each drawn point's node in the frontier
    value = np.bincount(where, y, trees) / points
    parameter, threshold, left = np.full(trees, LEAF), np.zeros(trees, np.int64), np.zeros(trees, np.int64)
    frontier, alive = np.arange(trees), np.arange(trees * points)
    depth = 0
    while len(frontier) and levels > 1 and depth < DEPTH:
        depth += 1
        gain = _gains(x[alive], y[alive], where, len(frontier), levels)
        tried = rng.random((len(frontier), parameters)) < SHARE_OF_PARAMETERS
        tried[np.arange(len(frontier)), rng.integers(0, parameters, len(frontier))] = True
        gain = np.where(tried[:, :, None], gain, 0.0).reshape(len(frontier), -1)
        best = gain.argmax(axis=1)
        split = gain[np.arange(len(frontier)), best] > 1e-12
        column, cut = best // (levels - 1), best % (levels - 1)
        children = len(value) + 2 * np.arange(split.sum())
        parameter[frontier[split]], threshold[frontier[split]] = column[split], cut[split]
        left[frontier[split]] = children

        kept = split[where]
        alive, where = alive[kept], where[kept]
        right = x[alive, column[where]] > cut[where]
        where = 2 * (np.cumsum(split) - 1)[where] + right
        count = 2 * len(children)
        mean = np.bincount(where, y[alive], count) / np.maximum(np.bincount(where, minlength=count), 1)
        frontier = len(value) + np.arange(count)
        value = np.concatenate([value, mean])
        parameter = np.concatenate([parameter, np.full(count, LEAF)])
        threshold, left = (np.concatenate([old, np.zeros(count, np.int64)]) for old in (threshold, left))
    return Forest(parameter, threshold, left, value, trees, depth)


def _gains(x: Codes, y: Floats, where: Indices, nodes: int, levels: int) -> npt.NDArray[np.float64]:
    """Return by how much each split reduces the squared error: ``[nodes, parameters, levels - 1]``; 0 if forbidden."""
    parameters = x.shape[1]
    shape = (nodes, parameters, levels)
    place = ((where[:, None] * parameters + np.arange(parameters)) * levels + x).ravel()
    size = nodes * parameters * levels
    count = np.bincount(place, minlength=size).reshape(shape).cumsum(axis=2)
    total = np.bincount(place, np.repeat(y, parameters), size).reshape(shape).cumsum(axis=2)
    count_left, total_left = count[:, :, :-1], total[:, :, :-1]
    count_right, total_right = count[:, :, -1:] - count_left, total[:, :, -1:] - total_left
    allowed = (count_left >= SMALLEST_LEAF) & (count_right >= SMALLEST_LEAF)
    left = total_left**2 / np.maximum(count_left, 1)
    right = total_right**2 / np.maximum(count_right, 1)
    whole = total[:, :, -1:] ** 2 / np.maximum(count[:, :, -1:], 1)
    return np.where(allowed, left + right - whole, 0.0)
