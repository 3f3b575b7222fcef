"""Phases of steps that no marker tells: the signs of `phase_odds`, gathered for each step and weighed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from traceanalyzer.segment.host_signs import NOTHING, HostEvents, StepHostSigns, signs_of_steps
from traceanalyzer.segment.kernel_signs import kernel_signs, row_blocks, rows_by_grids
from traceanalyzer.segment.phase_odds import AlikeSteps, PhaseVerdict, judge
from traceanalyzer.segment.steps import StepEvents
from traceanalyzer.segment.tokens import BoolArray, IntArray, KernelVocabulary

_ALIKE = 0.85
"""Share of two steps' kernels that must be common for them to be of one group. Chosen, not fitted."""
_AS_LONG = 1.5
"""Times as long as another that a step of its group may be. Chosen, not fitted."""
_MOST_GROUPS = 64
"""Groups that a step is compared with; bounds the work. Chosen, not fitted."""
_ONE_GRAPH = 0.5
"""Share of a step's events that graphs must have launched for the step to be a graph's. Chosen, not fitted."""
_PIECES = 4
"""Graph launches of a step from which on it is made of pieces. Chosen, not fitted: attention parts every layer."""
_BUDGET = 2048
"""From here on a power of two of tokens is a server's budget, used up. Chosen, not fitted."""
_ENGINE = 0.8
"""How sure it must be that a step generates tokens for a lone pass over many to be a prefill. Chosen, not fitted: a
sampler alone does not reach it (a classifier picks the likeliest, too), a cache does."""

_SILENT = PhaseVerdict("unknown", 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class PhaseView:
    """A device's events as phases are told from them.

    Attributes:
        events: the device's events.
        tokens: the token of each.
        vocabulary: what the tokens are.
        read_host: returns what the host tells; called only where a phase is unknown.
    """

    events: pl.DataFrame
    tokens: IntArray
    vocabulary: KernelVocabulary
    read_host: Callable[[], HostEvents]

    @property
    def host(self) -> HostEvents:
        """What the host tells."""
        return self.read_host()


def infer_phases(steps: list[StepEvents], view: PhaseView) -> list[StepEvents]:
    """Fill in the phase of complete steps whose phase no marker tells, with requests and tokens where shapes tell.

    Args:
        steps: the device's steps in order of time.
        view: the device's events.
    """
    unknown = [number for number, step in enumerate(steps) if step.complete and step.phase == "unknown"]
    if not unknown:
        return steps
    shapes = _host_signs(steps, view)
    verdicts = _verdicts(steps, unknown, shapes, view)
    told = list(steps)
    for number, verdict in verdicts.items():
        told[number] = _told(told, number, verdict, shapes.get(number, NOTHING), view)
    return told


def _verdicts(
    steps: list[StepEvents], unknown: list[int], shapes: dict[int, StepHostSigns], view: PhaseView
) -> dict[int, PhaseVerdict]:
    """Judge each step of unknown phase. A pass that only a sampler makes a prefill needs decode steps beside it."""
    groups = _grouped(steps, view)
    own = {number: group for group in groups for number in group.numbers}
    ratios = Counter((id(group), shapes.get(number, NOTHING).ratio) for number, group in own.items())
    verdicts = {}
    for number in unknown:
        signs, group = shapes.get(number, NOTHING), own[number]
        loop = view.host.generates or steps[number].source == "python"
        verdicts[number] = judge(group, groups, signs, ratios[id(group), signs.ratio], loop=loop)
    if any(one.phase == "decode" for one in verdicts.values()):
        return verdicts
    return {
        number: one if one.phase == "unknown" or one.generates >= _ENGINE else _SILENT
        for number, one in verdicts.items()
    }


def _grouped(steps: list[StepEvents], view: PhaseView) -> list[AlikeSteps]:
    """Group the complete steps; each distinct sequence is compared once."""
    durations, kernel = view.events["dur_ns"].to_numpy(), view.events["is_kernel"].to_numpy()
    graph, launch_id = view.events["graph"].to_numpy(), view.events["launch_id"].fill_null(0).to_numpy()
    time = durations * kernel
    groups: list[AlikeSteps] = []
    by_shape: dict[bytes, list[AlikeSteps]] = {}
    for number, step in enumerate(steps):
        if not step.complete:
            continue
        own = view.tokens[step.events]
        spent, launch = float(time[step.events].sum()), _launch(graph[step.events], launch_id[step.events])
        key = launch.encode() + own.tobytes()
        group = next((one for one in by_shape.get(key, []) if _as_long(one.time, spent)), None)
        if group is None:
            signs = kernel_signs(own, time[step.events], view.vocabulary)
            new = AlikeSteps([], Counter(own.tolist()), signs, launch, spent)
            group = next((one for one in groups[:_MOST_GROUPS] if _alike(one, new)), None)
            if group is None:
                group = new
                groups.append(group)
            by_shape.setdefault(key, []).append(group)
        group.numbers.append(number)
    return groups


def _alike(one: AlikeSteps, two: AlikeSteps) -> bool:
    """Whether two steps are nearly equal, and tell the same of their attention."""
    if one.launch != two.launch or not _as_long(one.time, two.time) or _attention(one) != _attention(two):
        return False
    common = (one.content & two.content).total()
    return common >= _ALIKE * max(one.content.total(), two.content.total())


def _attention(group: AlikeSteps) -> tuple[float, float, float]:
    return group.signs.few, group.signs.many, group.signs.causal


def _as_long(one: float, two: float) -> bool:
    return max(one, two) <= _AS_LONG * max(min(one, two), 1.0)


def _launch(graph: BoolArray, launch_id: IntArray) -> str:
    """How most of a step's events were launched: graph, piecewise or eager."""
    if not len(graph) or graph.mean() < _ONE_GRAPH:
        return "eager"
    return "piecewise" if len(np.unique(launch_id[graph])) >= _PIECES else "graph"


def _host_signs(steps: list[StepEvents], view: PhaseView) -> dict[int, StepHostSigns]:
    """What the host and the grids tell of each step, by its number."""
    launch = view.events["launch_ns"].to_numpy()
    first = {}
    for number, step in enumerate(steps):
        own = launch[step.events]
        if len(own) and not np.isnan(own).all():
            first[number] = int(np.nanmin(own))
    order = sorted(first, key=first.__getitem__)
    starts = np.array([first[number] for number in order], dtype=np.int64)
    threads = set(view.events["launch_thread"].drop_nulls().unique().to_list())
    told = {order[at]: signs for at, signs in signs_of_steps(view.host, starts, threads).items()}
    for number, count in _rows(steps, view).items():
        signs = told.get(number, NOTHING)
        told[number] = signs if signs.tokens is not None else replace(signs, tokens=count)
    return told


def _told(
    told: list[StepEvents], number: int, verdict: PhaseVerdict, shapes: StepHostSigns, view: PhaseView
) -> StepEvents:
    """The step with what is known of it now; `told` holds those before it as they are known."""
    step = told[number]
    apart = shapes.sequences if shapes.sequences is not None else shapes.heads
    tokens = step.tokens if step.tokens is not None else shapes.tokens
    if verdict.phase == "prefill" and view.host.joins and apart is not None:
        verdict = _joined(verdict, apart, shapes.tokens, told[number - 1] if number else None)
    if verdict.phase == "unknown":
        return replace(step, requests=apart, tokens=tokens) if verdict.generates >= _ENGINE else step
    if verdict.phase == "decode":
        # One token per sequence, unless shapes say otherwise.
        apart, tokens = apart if apart is not None else tokens, tokens if tokens is not None else apart
    return replace(
        step,
        phase=verdict.phase,
        phase_source="inferred",
        phase_confidence=round(verdict.confidence * max(verdict.generates, 0.9), 3),
        requests=step.requests if step.requests is not None else apart,
        tokens=tokens,
    )


def _joined(verdict: PhaseVerdict, sequences: int, tokens: int | None, before: StepEvents | None) -> PhaseVerdict:
    """Whether sequences decode beside the prompts, in an engine that runs both in one step.

    What ran in the step before goes on in this one, unless it ended.
    """
    if sequences < 2:
        return verdict
    if before is not None and before.requests:
        return replace(verdict, phase="mixed", confidence=min(verdict.confidence, 0.85))
    if tokens is not None and tokens >= _BUDGET and not tokens & (tokens - 1):
        return replace(verdict, phase="unknown")
    return replace(verdict, confidence=min(verdict.confidence, 0.8))


def _rows(steps: list[StepEvents], view: PhaseView) -> dict[int, int]:
    """Tokens of steps by the grids of kernels that run one thread block per row; of graphs, these may be padded."""
    counting = [token for token, name in enumerate(view.vocabulary.names) if row_blocks(name)]
    if not counting:
        return {}
    where = np.flatnonzero(np.isin(view.tokens, counting) & ~view.events["graph"].to_numpy())
    step_of = np.full(len(view.tokens), -1, dtype=np.int64)
    for number, step in enumerate(steps):
        step_of[step.events] = number
    seen = (
        pl.DataFrame({"step": step_of[where], "token": view.tokens[where]})
        .with_columns(grid=view.events["grid"].gather(where).cast(pl.String))
        .filter(pl.col("step") >= 0, pl.col("grid").is_not_null())
        .unique()
    )
    by_step: dict[int, list[tuple[str, str]]] = {}
    for step, token, grid in seen.iter_rows():
        by_step.setdefault(step, []).append((view.vocabulary.names[token], grid))
    rows = {step: rows_by_grids(pairs) for step, pairs in by_step.items()}
    return {step: count for step, count in rows.items() if count is not None}
