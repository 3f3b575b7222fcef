"""A discrete space of configurations, as level numbers: which values exist is all that is known of its constraints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traceanalyzer.commands.tune.tile_config import TileConfig, Value

Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Space:
    """Every configuration that may be tried.

    Attributes:
        codes: ``[configurations, parameters]``; the number of each value among its parameter's values.
        levels: how many values each parameter takes, at least two.
        ordinal: per parameter, whether its values are numbers, so that their order means something.
        names: the parameters that vary, in the order of the columns.
    """

    codes: Codes
    levels: Indices
    ordinal: npt.NDArray[np.bool_]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return int(self.codes.shape[0])

    def distance(self, index: int, among: Indices) -> Floats:
        """Return how far configurations are from one of them.

        Each parameter that differs counts 1; numbers add up to 1/2 more for values that lie far apart, so that one step
        of one parameter is nearest and any change of one parameter is nearer than a change of two.
        """
        if not self.names:
            return np.zeros(len(among))
        apart = np.abs(self.codes[among] - self.codes[index])
        changed = (apart > 0).sum(axis=1)
        far = np.where(self.ordinal, apart / (self.levels - 1), 0.5 * (apart > 0)).mean(axis=1)
        return np.asarray(changed + far / 2, dtype=np.float64)


def make_space(configs: Sequence[TileConfig]) -> Space:
    """Number the values of every parameter that varies.

    Values that are all numbers are ordered by size; a parameter that only some configurations have counts as text.
    """
    names = tuple(dict.fromkeys(name for config in configs for name in config))
    columns: dict[str, list[int]] = {}
    ordinal = []
    for name in names:
        values = [config.get(name) for config in configs]
        numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        order = _sorted_levels(values, numeric)
        if len(order) > 1:
            columns[name] = [order[_level_key(value, numeric)] for value in values]
            ordinal.append(numeric)
    codes = np.array(list(columns.values()), dtype=np.int32).reshape(len(columns), len(configs)).T
    return Space(
        codes=np.ascontiguousarray(codes),
        levels=codes.max(axis=0).astype(np.int64) + 1 if columns else np.zeros(0, np.int64),
        ordinal=np.array(ordinal, dtype=bool),
        names=tuple(columns),
    )


def _level_key(value: Value, numeric: bool) -> float | str:
    return float(value) if numeric and value is not None else json.dumps(value)


def _sorted_levels(values: Sequence[Value], numeric: bool) -> dict[float | str, int]:
    keys = dict.fromkeys(_level_key(value, numeric) for value in values)
    return {key: number for number, key in enumerate(sorted(keys, key=lambda key: (str(type(key)), key)))}
