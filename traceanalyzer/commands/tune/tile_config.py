"""The configuration of one kernel launch, as sweeps, searches, rules and exports hold it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Annotated

from traceanalyzer.declare import told

Value = int | float | str | None
"""What a shape or a configuration may hold: a JSON scalar."""

ConfigValues = Annotated[
    dict[str, int | float | str | bool | None],
    told(
        "Meta-parameters by name: block_m, block_n, block_k, split_k, group_m, num_warps, num_stages, ...; "
        "null: left to the kernel, or not known."
    ),
]
"""A configuration as a document declares it."""


class TileConfig(Mapping[str, Value]):
    """Meta-parameters by our names (see ``tile_keys``); immutable, and equal whatever their order.

    Parameters that only one tuner knows keep that tuner's names. ``None`` means that the source does not say, or that
    the kernel decides. What may be launched is a ``kernels.problem.Config``, whose values are checked.
    """

    __slots__ = ("_hash", "_values")

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = dict(values)
        self._hash: int | None = None

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._values.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self._values == (other._values if isinstance(other, TileConfig) else other)

    def __repr__(self) -> str:
        return f"TileConfig({self._values!r})"

    @property
    def known(self) -> TileConfig:
        """The parameters whose value is known."""
        return TileConfig({name: value for name, value in self.items() if value is not None})

    def without(self, names: Container[str]) -> TileConfig:
        """Return the configuration with some parameters left to the kernel."""
        return TileConfig({name: value for name, value in self.items() if name not in names})

    def over(self, fallback: Mapping[str, Value]) -> TileConfig:
        """Return the configuration, with the values of another where it lacks a parameter."""
        return TileConfig({**fallback, **self})
