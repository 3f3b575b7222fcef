"""The answer that every route gives, and whether two of them agree."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

TOP = 10
"""Names that the answer lists."""

TOLERANCE = 1e-9
"""Relative difference of two sums that counts as none: some routes add floats of µs, others integers of ns."""


@dataclass(frozen=True)
class Answer:
    """What a trace says about its GPU.

    Attributes:
        events: device events: kernels, copies, memsets with a duration.
        total_ns: their durations added up.
        top: the ``TOP`` names with the largest sums, and these in ns, the largest first.
    """

    events: int
    total_ns: int
    top: dict[str, int]

    def to_json(self) -> str:
        """Return it on one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_output(cls, output: str) -> Answer | None:
        """Return the answer on the last line that a route printed; null where it is none."""
        lines = output.strip().splitlines()
        try:
            return cls(**json.loads(lines[-1])) if lines else None
        except (ValueError, TypeError):
            return None


def answer_of(sums: Mapping[str, tuple[float, int]]) -> Answer:
    """Return the answer from the sum in ns and the count of every name."""
    times = {name: round(time) for name, (time, _) in sums.items()}
    largest = sorted(times.items(), key=lambda item: (-item[1], item[0]))[:TOP]
    return Answer(
        sum(count for _, count in sums.values()), round(sum(time for time, _ in sums.values())), dict(largest)
    )


def differences(answer: Answer, reference: Answer) -> list[str]:
    """Say in what an answer differs from the reference; empty where they are equal."""
    found = []
    if answer.events != reference.events:
        found.append(f"{answer.events:,} events instead of {reference.events:,}")
    if not _same(answer.total_ns, reference.total_ns):
        found.append(f"total {_off(answer.total_ns, reference.total_ns)}")
    missing = [name for name in reference.top if name not in answer.top]
    if missing:
        found.append(f"{len(missing)} of the {len(reference.top)} largest names missing")
    unlike = [name for name, time in reference.top.items() if name in answer.top and not _same(answer.top[name], time)]
    if unlike:
        worst = max(unlike, key=lambda name: abs(answer.top[name] - reference.top[name]))
        found.append(f"{len(unlike)} sums differ, the worst by {_off(answer.top[worst], reference.top[worst])}")
    return found


def _same(value: int, reference: int) -> bool:
    return abs(value - reference) <= max(1.0, TOLERANCE * abs(reference))


def _off(value: int, reference: int) -> str:
    share = f" ({(value - reference) / reference:+.2%})" if reference else ""
    return f"{(value - reference) / 1000:+,.3f} µs{share}"
