"""Pieces of a Chrome trace that every kind of event is made of."""

from __future__ import annotations

from typing import Any, TypeAlias

Event: TypeAlias = dict[str, Any]


def us(ns: int) -> float:
    """Nanoseconds as the µs float nearest to three decimals; `round(us * 1000)` gives them back exactly."""
    return ns / 1000


def complete(category: str, name: str, pid: int, tid: int, start_ns: int, dur_ns: int) -> Event:
    """A complete event without arguments."""
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": us(start_ns),
        "dur": us(dur_ns),
    }


def flow_start(correlation: int, pid: int, ns: int) -> Event:
    """The arrow's tail, at a runtime call."""
    return {
        "ph": "s",
        "id": correlation,
        "pid": pid,
        "tid": pid,
        "ts": us(ns),
        "cat": "ac2g",
        "name": "ac2g",
    }


def flow_end(correlation: int, pid: int, tid: int, ns: int) -> Event:
    """The arrow's head, at a device event."""
    return {
        "ph": "f",
        "id": correlation,
        "pid": pid,
        "tid": tid,
        "ts": us(ns),
        "cat": "ac2g",
        "name": "ac2g",
        "bp": "e",
    }
