"""Where the time of ingest goes, and how often a byte is copied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.inputs import DESCRIPTIONS
from bench.sections.text import context, number, table, within

RESULTS = "limits"
ORDER = 50
NAMES = {
    "read": "read the file, nothing else",
    "decompress": "and decompress it (isal, one thread)",
    "cut": "find borders of events, cut windows",
    "cut, from a pipe": "the same with the checks that pipes need",
    "parse": "decode windows (msgspec), args passed over, objects dropped",
    "parse, args too": "and decode args",
    "parse and columns": "decode windows, build columns",
    "write": "write the columns as Parquet",
    "whole, one process": "ingest in one process",
    "whole, workers": "ingest with workers",
}
PARTS = ("decompress", "cut", "parse and columns", "write")
"""Stages that a run in one process is made of."""


def render(document: dict[str, Any]) -> str:
    """Return a table of stages and one of copies for every kind."""
    parts = [
        context(document),
        f"Medians of {document['settings']['repeats']} runs in one process, in brackets smallest and largest. Every "
        "stage runs alone, on what the stages before it left in memory; `MB/s` is raw text by wall time.",
    ]
    for kind, found in document["results"]["kinds"].items():
        parts.append(f"**{number(found['raw_mb'])} MB raw: {DESCRIPTIONS[kind]}**")
        parts.append(table(("stage", "wall s", "CPU s", "MB/s"), [_stage(n, found) for n in found["stages"]]))
        parts.append(_between(found))
        parts.append(table(("step", "from", "to", "bytes copied per byte of text", "by"), map(_step, found["copies"])))
    return "\n\n".join(parts)


def _stage(name: str, found: Mapping[str, Any]) -> list[str]:
    took = found["stages"][name]
    wall, cpu = took["wall_s"], took["cpu_s"]
    return [NAMES[name], within(wall), within(cpu), number(found["raw_mb"] / wall["median"])]


def _between(found: Mapping[str, Any]) -> str:
    """Say how the whole run stands to its parts and to what cannot be shared."""
    wall = {name: took["wall_s"]["median"] for name, took in found["stages"].items()}
    parts = sum(wall[name] for name in PARTS)
    serial = wall["decompress"] + wall["cut"]
    return (
        f"The parts of a run ({', '.join(PARTS)}) sum to {number(parts)} s; in one process it takes "
        f"{number(wall['whole, one process'])} s, with workers {number(wall['whole, workers'])} s. Only the main "
        f"process decompresses and cuts: with ever more cores a run would approach {number(serial)} s, "
        f"{number(wall['whole, workers'] / serial, 2)} times less than now. Decoding alone, without args and columns, "
        f"takes {number(wall['parse'])} s of one core."
    )


def _step(step: Mapping[str, Any]) -> list[str]:
    return [step["step"], step["source"], step["target"], number(step["per_raw_byte"], 2), step["who"]]
