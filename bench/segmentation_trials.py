"""One trial of the segmentation benchmark: a seed's trace is generated, segmented and compared with its truth."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from bench.segmentation_models import Trial, trial
from synthetic import SyntheticTrace, TraceSpec, generate, write

if TYPE_CHECKING:
    from traceanalyzer.segment import Segmentation

RATES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
"""Share of kernels lost from a bare sequence; half as many are renamed."""

NOT_FOUND, CUT_OFF, COUNT = "a step has other kernels", "complete or cut off", "number of blocks"
FIRST, LAST, INNER = "start of the first block", "end of the last block", "border between blocks"
KINDS = (NOT_FOUND, CUT_OFF, COUNT, FIRST, LAST, INNER)
"""Kinds of error, the gravest first; a trace counts under its gravest."""


def run(seed: int, max_layers: int = 128) -> dict[str, Any]:
    """Return the outcome of a seed as plain JSON: a whole trace, and a bare damaged sequence of the same model."""
    chosen = trial(seed, max_layers)
    return {"seed": seed, **traits(chosen), **whole_trace(chosen), "sequence": bare_sequence(chosen)}


def traits(chosen: Trial) -> dict[str, Any]:
    """Return what a trial is an example of."""
    spec = chosen.spec
    experts = [any(kernel.role == "moe_gate_up" for kernel in layer.kernels) for layer in spec.model.layers]
    return {
        "family": chosen.family,
        "attention": chosen.attention,
        "feed_forward": "MoE" if all(experts) else "dense and MoE" if any(experts) else "dense",
        "kinds": len({layer.kernels[1:] for layer in spec.model.layers}),
        "layers": len(spec.model.layers),
        "steps": len(spec.steps),
        "engine": spec.engine,
        "launch": spec.launch,
        "damage": damage(spec),
    }


def damage(spec: TraceSpec) -> list[str]:
    """Return what the recording lost, or holds of others."""
    present = {
        "kernels lost in blocks": spec.dropped,
        "foreign kernels": spec.foreign,
        "end of an earlier step": spec.leading_kernels,
        "last step cut off": spec.cut_last_step is not None,
        "device far behind the host": spec.gpu_lag_us >= 20_000,
    }
    return [name for name, there in present.items() if there]


def whole_trace(chosen: Trial) -> dict[str, Any]:
    """Write the trace, read it back, segment it, judge it."""
    from traceanalyzer.segment import segment
    from traceanalyzer.trace import open_traces

    made = generate(chosen.spec, chosen.seed)
    with TemporaryDirectory() as folder:
        path = write(made, Path(folder) / "trace.json")
        found = segment(open_traces(path, cache=False).traces[0])
    wrong, claims = judge(made, found)
    worst = min(wrong, key=lambda each: KINDS.index(each[1]), default=None)
    return {
        "events": len(made.truth.events),
        "streams": len({event.stream for event in made.truth.events}),
        "error": worst and worst[1],
        "step": worst and worst[0],
        "claim": min(claims, default=None),
    }


def judge(made: SyntheticTrace, found: Segmentation) -> tuple[list[tuple[int, str]], list[tuple[float, bool]]]:
    """Compare a segmentation with the truth.

    A step is right when it has exactly the device events that it launched, is told complete or not, and every block has
    exactly its events; kernels of other streams that are nobody's may be in a block or not.

    Returns:
        (step, kind) of every error; (confidence, whether the blocks are right) of every complete step that claims one.
    """
    events = found.events["index"].to_list()
    step_of = dict(zip(events, found.events["step"].to_list(), strict=True))
    block_of = dict(zip(events, found.events["block"].to_list(), strict=True))
    members: dict[int | None, set[int]] = {}
    for event, step in step_of.items():
        members.setdefault(step, set()).add(event)
    number_of = {frozenset(own): step for step, own in members.items()}
    aside = {event.event for event in made.truth.events if event.section == "outside"}
    wrong: list[tuple[int, str]] = []
    claims: list[tuple[float, bool]] = []
    for truth in made.truth.steps:
        own = frozenset(event.event for event in made.truth.events if event.step == truth.index)
        if not own:
            continue
        number = number_of.get(own)
        if number is None:
            wrong.append((truth.index, NOT_FOUND))
            continue
        row = found.steps.row(number, named=True)
        true_blocks = [frozenset(block.events) for block in truth.blocks if block.events]
        # The step counts each layer once; passes of a draft and of a second batch have blocks of their own.
        placed = {block_of[event] for event in own if block_of[event] is not None}
        blocks = [frozenset(event for event in own if block_of[event] == b) - aside for b in sorted(placed)]
        kind = _block_error(true_blocks, blocks)
        if row["complete"] != truth.complete:
            wrong.append((truth.index, CUT_OFF))
        if kind is not None:
            wrong.append((truth.index, kind))
        if row["confidence"] is not None and truth.complete:
            claims.append((row["confidence"], kind is None))
    return wrong, claims


def _block_error(true: list[frozenset[int]], found: list[frozenset[int]]) -> str | None:
    if true == found:
        return None
    if len(true) != len(found):
        return COUNT
    apart = [number for number, (one, other) in enumerate(zip(true, found, strict=True)) if one != other]
    if apart == [0]:
        return FIRST
    return LAST if apart == [len(true) - 1] else INNER


def bare_sequence(chosen: Trial) -> dict[str, Any]:
    """Cut up the kernel names of one step, some of them lost and some renamed: what rate, what claim, whether right."""
    import numpy as np
    import polars as pl

    from traceanalyzer.segment.blocks import find_blocks
    from traceanalyzer.segment.tokens import encode

    rate = RATES[chosen.seed % len(RATES)]
    names, truth = damaged(_names(chosen.spec), rate, random.Random(f"damage {chosen.seed}"))
    cut = find_blocks(*encode(pl.Series(names)))
    return {"rate": rate, "claim": [cut.confidence, bool(np.array_equal(cut.block_of, truth))]}


def _names(spec: TraceSpec) -> Iterable[tuple[str, int]]:
    model = spec.model
    yield from ((kernel.name, -1) for kernel in model.prologue)
    for number, layer in enumerate(model.layers):
        yield from ((kernel.name, number) for kernel in layer.kernels)
    yield from ((kernel.name, -1) for kernel in model.epilogue)


def damaged(kernels: Iterable[tuple[str, int]], rate: float, rng: random.Random) -> tuple[list[str], list[int]]:
    """Lose kernels with probability `rate`, rename the others with half of it; number the blocks that are left."""
    kept = [(name, block) for name, block in kernels if rng.random() >= rate]
    names = [f"renamed_{rng.randrange(5)}" if rng.random() < rate / 2 else name for name, _ in kept]
    numbers = {block: number for number, block in enumerate(dict.fromkeys(b for _, b in kept if b >= 0))}
    return names, [numbers.get(block, -1) for _, block in kept]
