"""Typed access to the keys of a config.json."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from traceanalyzer.model.architecture import ModelError

LARGEST = 10**9
"""A larger size is a mistake; chosen, not fitted."""


class Keys:
    """A config.json with typed access; a value of another type, or a missing one, raises ModelError with its key."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config

    def has(self, *names: str) -> bool:
        """Whether any of the keys has a value."""
        return any(self.config.get(name) is not None for name in names)

    def get(self, *names: str) -> Any:
        """Return the first value among these keys that is not None."""
        return next((self.config[name] for name in names if self.config.get(name) is not None), None)

    def size(self, *names: str, default: int | None = None) -> int:
        """Return a positive whole number."""
        name = next((n for n in names if self.config.get(n) is not None), None)
        if name is None:
            if default is not None:
                return default
            raise ModelError(f"the config lacks {' or '.join(names)}")
        value = self.config[name]
        if not _is_whole(value):
            raise ModelError(f"{name} must be a whole number, not {_shown(value)}")
        if not 1 <= value <= LARGEST:
            raise ModelError(f"{name} must be 1 or more (and at most {LARGEST:,}), not {_shown(value)}")
        return int(value)

    def count(self, name: str) -> int:
        """Return a whole number of 0 or more; 0 where the key has no value."""
        value = self.config.get(name)
        if value is None:
            return 0
        if not _is_whole(value) or not 0 <= value <= LARGEST:
            raise ModelError(f"{name} must be a whole number of 0 or more, not {_shown(value)}")
        return int(value)

    def optional_size(self, *names: str) -> int | None:
        """Return a positive whole number; None where no key has a value or it is 0."""
        value = self.get(*names)
        return None if value is None or value == 0 else self.size(*names)

    def flag(self, *names: str, default: bool) -> bool:
        """Return a truth value."""
        value = self.get(*names)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise ModelError(f"{names[0]} must be true or false, not {_shown(value)}")
        return value

    def indices(self, name: str, count: int) -> frozenset[int]:
        """Return a list of layer numbers; empty where the key has no value."""
        value = self.get(name)
        if value is None:
            return frozenset()
        if not isinstance(value, list) or not all(isinstance(i, int) for i in value):
            raise ModelError(f"{name} must be a list of layer numbers, not {_shown(value)}")
        return frozenset(i for i in value if i < count)

    def per_layer(self, name: str, count: int) -> list[Any] | None:
        """Return a list or string with one entry per layer; None where the key has no value."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, list | str) or len(value) < count:
            raise ModelError(f"{name} must have {count} entries, one per layer")
        return list(value)[:count]


def _is_whole(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or (math.isfinite(value) and value == int(value))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
