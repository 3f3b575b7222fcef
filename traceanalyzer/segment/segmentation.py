"""The whole of it: a trace in, every device event placed in a step, a section, a block and a role."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache, cached_property
from weakref import WeakKeyDictionary

import numpy as np
import polars as pl

from traceanalyzer.problems import TraceWarning
from traceanalyzer.segment import segmentation_cache
from traceanalyzer.segment.anchors import serving_tokens
from traceanalyzer.segment.blocks import find_blocks
from traceanalyzer.segment.consensus import consult
from traceanalyzer.segment.content import describe
from traceanalyzer.segment.cut import Cut, no_blocks
from traceanalyzer.segment.evidence import DOUBTFUL, in_a_trace_with, strength, weigh
from traceanalyzer.segment.host_signs import read_host_events
from traceanalyzer.segment.inference import infer_steps, split_last
from traceanalyzer.segment.modules import blocks_from_layers, read_layers
from traceanalyzer.segment.passes import with_drafts
from traceanalyzer.segment.phases import PhaseView, infer_phases
from traceanalyzer.segment.recorded_work import BLOCKLESS, EXPECTED, after_phases, read_workload, with_phases
from traceanalyzer.segment.segment_frames import PlacedStep, StepContent, assemble
from traceanalyzer.segment.segmentation_result import Segmentation
from traceanalyzer.segment.side_streams import without_side_streams
from traceanalyzer.segment.steps import (
    Mark,
    StepEvents,
    adopt,
    marks_for,
    place_by_threads,
    read_marks,
    split_unmarked,
    unlaunched,
    with_launches,
)
from traceanalyzer.segment.streams import chains, find_batches
from traceanalyzer.segment.tokens import (
    EXPERT,
    GEMM,
    MIXER,
    NORM,
    BoolArray,
    IntArray,
    KernelVocabulary,
    encode,
)
from traceanalyzer.segment.truncated import MOST_TRIED, Peer, is_beginning, truncate
from traceanalyzer.segment.variants import VariantLabels
from traceanalyzer.trace import Trace
from traceanalyzer.wording import plural

_COMPUTING = (GEMM, EXPERT, MIXER, NORM)
_CACHE: WeakKeyDictionary[Trace, Segmentation] = WeakKeyDictionary()


def segment(trace: Trace) -> Segmentation:
    """Cut a trace into steps, transformer blocks and roles. The result is kept as long as the trace is.

    Where the trace lies in a store that may be written, it is kept there too, for the next command.
    Each device is segmented on its own; in a CPU-only trace compute ops stand in for kernels.
    """
    if trace not in _CACHE:
        cut = segmentation_cache.load(trace)
        if cut is None:
            cut = cut_up(trace)
            segmentation_cache.keep(trace, cut)
        _CACHE[trace] = cut
    return _CACHE[trace]


def cut_up(trace: Trace, *, modules: bool = True) -> Segmentation:
    """Segment a trace anew.

    Args:
        trace: the trace.
        modules: whether `nn.Module` events may be used for blocks; false leaves only the kernel names.
    """
    events = with_launches(trace)
    tokens, vocabulary = encode(events["name"])
    workload = read_workload(trace, tokens, vocabulary)
    marks = read_marks(trace)
    read_host = cache(lambda: read_host_events(trace))
    layers = read_layers(trace) if modules else None
    placements: list[PlacedStep] = []
    warnings: list[TraceWarning] = []
    for device in sorted(events["device"].unique().to_list(), key=lambda d: -1 if d is None else d):
        own = pl.col("device").is_null() if device is None else pl.col("device") == device
        where = np.flatnonzero(events.select(own.fill_null(False)).to_series().to_numpy())
        cutter = _Cutter(events[where], tokens[where], vocabulary, layers, blockless=workload.kind in BLOCKLESS)
        cutter.generates = workload.kind in EXPECTED
        steps, doubts = cutter.steps(marks)
        warnings.extend(doubts)
        steps = with_phases(
            infer_phases(steps, PhaseView(cutter.events, cutter.tokens, vocabulary, read_host)), workload
        )
        placed, doubts = cutter.place(steps, device, where)
        placements.extend(placed)
        warnings.extend(doubts)
    workload = after_phases(workload, (placed.step for placed in placements))
    return replace(assemble(events, placements, tuple(warnings)), workload=workload)


@dataclass(eq=False)
class _Cutter:
    """One device's events on their way to blocks."""

    events: pl.DataFrame
    tokens: IntArray
    vocabulary: KernelVocabulary
    layers: pl.DataFrame | None
    serving: frozenset[int] = frozenset()
    blockless: bool = False
    generates: bool = True

    def steps(self, marks: list[Mark]) -> tuple[list[StepEvents], list[TraceWarning]]:
        """Return the device's steps in order of time."""
        events, tokens = self.events, self.tokens
        warnings: list[TraceWarning] = []
        leading, stray = unlaunched(events)
        launched = len(leading) + len(stray) < len(events)
        steps: list[StepEvents] = []
        if marks and launched:
            threads = set(events["launch_thread"].drop_nulls().unique().to_list())
            steps = place_by_threads(events, marks_for(marks, threads))
            steps, leading = _join_lead(steps, leading, tokens, self.vocabulary)
            steps = split_unmarked(adopt(steps, stray), tokens, np.isin(self.vocabulary.classes, _COMPUTING))
            steps = split_last(events, steps, tokens, self.vocabulary)
        if not any(step.label is not None for step in steps):
            where = np.arange(len(events)) if not launched else np.setdiff1d(np.arange(len(events)), leading)
            steps = infer_steps(events, where, tokens, self.vocabulary)
            if steps:
                how = "graph launches" if steps[0].source == "graph_launch" else "the kernel sequence"
                warnings.append(
                    TraceWarning(
                        "steps_inferred",
                        f"no annotation marks the steps; {plural(len(steps), 'step')} inferred from {how}",
                        count=len(steps),
                    )
                )
            if not launched:
                leading = leading[:0]
        if len(leading) and self._computes(leading):
            steps.insert(0, StepEvents(leading, steps[0].source if steps else "inferred", complete=False))
        return self._judge_last(steps), warnings

    def _computes(self, where: IntArray) -> bool:
        return bool(np.isin(self.vocabulary.classes[self.tokens[where]], _COMPUTING).any())

    def _judge_last(self, steps: list[StepEvents]) -> list[StepEvents]:
        """Call the last step incomplete where it is the beginning of an earlier one."""
        if len(steps) < 2 or not steps[-1].complete:
            return steps
        own = self.tokens[steps[-1].events]
        shapes = {self.tokens[step.events].tobytes(): step for step in steps[:-1] if step.complete}
        if own.tobytes() in shapes:
            return steps
        known = list(shapes.values())[-MOST_TRIED:]
        compared = [*known, replace(steps[-1], complete=False)]
        *groups, last = (self._group(*each) for each in zip(compared, self._chains(compared), strict=True))
        peers = [(self.tokens[step.events], group) for step, group in zip(known, groups, strict=True)]
        if any(is_beginning(own, last, *peer) for peer in peers):
            return [*steps[:-1], replace(steps[-1], complete=False)]
        return steps

    def _chains(self, steps: list[StepEvents]) -> list[IntArray | None]:
        """The batch that each event of each step works for; a cut-off step has those of the whole one before it."""
        streams, start, dur = (self.events[name].fill_null(-1).to_numpy() for name in ("stream", "start_ns", "dur_ns"))
        if len(np.unique(streams)) < 2:
            return [None] * len(steps)
        second: int | None = None
        by_step: list[IntArray | None] = []
        for step in steps:
            at = step.events
            chain = chains(streams[at], start[at], dur[at], self.vocabulary.classes[self.tokens[at]])
            if step.complete:
                second = None if chain is None else int(streams[at][chain.argmax()])
            elif second is not None:
                chain = np.where(streams[at] == second, 1, 0).astype(np.int64)
            by_step.append(chain)
        return by_step

    def _group(self, step: StepEvents, chain: IntArray | None) -> IntArray:
        """The batch of each event of a step, and -1 on streams without any work of the model, which are strangers'."""
        batch = np.zeros(len(step.events), dtype=np.int64) if chain is None else chain
        return np.where(self.working[step.events], batch, -1)

    @cached_property
    def working(self) -> BoolArray:
        """For each event of the device, whether its stream computes anything of a model."""
        streams = self.events["stream"].fill_null(-1).to_numpy()
        return np.isin(streams, np.unique(streams[np.isin(self.vocabulary.classes[self.tokens], _COMPUTING)]))

    def place(
        self, steps: list[StepEvents], device: int | None, where: IntArray
    ) -> tuple[list[PlacedStep], list[TraceWarning]]:
        """Cut every step into blocks and give every event its place."""
        steps, beside = without_side_streams(steps, self.events, self.tokens, self.vocabulary)
        solved = [no_blocks(len(step.events)) for step in steps] if self.blockless else self._solve(steps)
        labels = VariantLabels(self.generates)
        by_shape: dict[bytes, list[int]] = defaultdict(list)
        for number, (step, cut) in enumerate(zip(steps, solved, strict=True)):
            by_shape[self.tokens[step.events].tobytes() + cut.block_of.tobytes()].append(number)
        content: dict[int, StepContent] = {}
        for numbers in by_shape.values():
            step, cut = steps[numbers[0]], solved[numbers[0]]
            told = with_drafts(cut, self.tokens[step.events], self.vocabulary, step.phase)
            for number in numbers:
                solved[number] = replace(solved[number], pass_kinds=told.pass_kinds, pass_of=told.pass_of)
            shared = self._describe(steps, numbers, solved[numbers[0]], labels)
            content |= dict.fromkeys(numbers, shared)
        placed = [
            PlacedStep(device, number, step, cut, where[step.events], content[number], where[beside[number]])
            for number, (step, cut) in enumerate(zip(steps, solved, strict=True))
        ]
        return placed, self._warnings(steps, solved)

    def _solve(self, steps: list[StepEvents]) -> list[Cut]:
        """Find the blocks of each distinct kernel sequence once.

        A doubtful step follows a clearer one of its kind, a cut-off step the one it begins like.
        """
        shapes = {self.tokens[step.events].tobytes() for step in steps}
        self.serving = frozenset().union(
            *(serving_tokens(np.frombuffer(shape, dtype=np.int64), self.vocabulary) for shape in shapes)
        )
        own_chains = self._chains(steps)
        # Two steps are solved as one where both their kernels and the batch of each kernel agree.
        keys = [
            self.tokens[step.events].tobytes() + (b"" if chain is None else chain.tobytes())
            for step, chain in zip(steps, own_chains, strict=True)
        ]
        # Whole steps come first: a cut-off step can only follow one whose blocks are settled.
        distinct = self._whole_steps(steps, own_chains, keys)
        settled = consult([*distinct.values()])
        whole = [replace(peer, cut=cut) for peer, cut in zip(distinct.values(), settled, strict=True)]
        known: dict[bytes, Cut] = {key: peer.cut for key, peer in zip(distinct, whole, strict=True)}
        strengths = self._strengths(steps, keys, known)
        shown = {key: in_a_trace_with(known[key], chance) for key, chance in strengths.items()}
        strongest = max(strengths.values(), default=0.0)
        solved: list[Cut] = []
        for step, chain, key in zip(steps, own_chains, keys, strict=True):
            if not step.complete and step.label is None and step is steps[0]:
                # What precedes the first marker is the end of a step: it has no beginning to count blocks from.
                solved.append(no_blocks(len(step.events)))
                continue
            if key not in shown:
                shown[key] = self._cut_off(step, chain, whole, strongest)
            solved.append(self._by_modules(step) or shown[key])
        return solved

    def _whole_steps(
        self, steps: list[StepEvents], own_chains: list[IntArray | None], keys: list[bytes]
    ) -> dict[bytes, Peer]:
        """Return the complete steps, one per key, each cut up on its own."""
        distinct: dict[bytes, Peer] = {}
        for step, chain, key in zip(steps, own_chains, keys, strict=True):
            if step.complete and key not in distinct:
                own = self.tokens[step.events]
                distinct[key] = Peer(own, self._group(step, chain), self._cut(own, chain))
        return distinct

    def _cut(self, own: IntArray, chain: IntArray | None) -> Cut:
        if chain is None:
            return find_blocks(own, self.vocabulary, self.serving)
        return find_batches(own, chain, self.vocabulary, self.serving)

    def _strengths(self, steps: list[StepEvents], keys: list[bytes], known: dict[bytes, Cut]) -> dict[bytes, float]:
        """How far the blocks of each distinct step are a transformer's."""
        of_key = {key: step for key, step in zip(keys, steps, strict=True) if key in known}
        return {
            key: strength(known[key], self.tokens[step.events], self._durations(step), self.vocabulary)
            for key, step in of_key.items()
        }

    def _cut_off(self, step: StepEvents, chain: IntArray | None, whole: list[Peer], strongest: float) -> Cut:
        """Return the blocks of a cut-off step: they are as far a transformer's as those of what it begins like."""
        own = self.tokens[step.events]
        cut = truncate(own, self._group(step, chain), whole)
        if cut is not None:
            return in_a_trace_with(cut, strongest)
        cut = self._cut(own, chain)
        return in_a_trace_with(cut, strength(cut, own, self._durations(step), self.vocabulary))

    def _durations(self, step: StepEvents) -> IntArray:
        """Durations of a step's events, ns."""
        durations: IntArray = self.events["dur_ns"].to_numpy()[step.events]
        return durations

    def _by_modules(self, step: StepEvents) -> Cut | None:
        """The blocks that `nn.Module` events tell, where these are a transformer's: other networks have layers, too."""
        if self.layers is None or self.layers.is_empty():
            return None
        launch = self.events["launch_ns"].gather(step.events)
        if launch.null_count():
            return None
        block_of = blocks_from_layers(self.layers, launch.to_numpy(), step.window)
        if block_of is None:
            return None
        own = self.tokens[step.events]
        products = np.isin(self.vocabulary.classes[own], (GEMM, MIXER))
        if products.any() and np.mean(block_of[products] >= 0) < 0.5:
            return None
        cut = Cut(block_of, int(block_of.max()) + 1, 1.0, "modules")
        cut = weigh(cut, own, self._durations(step), self.vocabulary)
        return cut if cut.confidence > DOUBTFUL else None

    def _describe(self, steps: list[StepEvents], numbers: list[int], cut: Cut, labels: VariantLabels) -> StepContent:
        """Return what the steps that share a kernel sequence are made of."""
        step = steps[numbers[0]]
        all_durations = self.events["dur_ns"].to_numpy()
        durations = np.median(np.stack([all_durations[steps[n].events] for n in numbers[:32]]), axis=0).astype(np.int64)
        return describe(self.tokens[step.events], durations, cut, self.vocabulary, labels, step)

    def _warnings(self, steps: list[StepEvents], solved: list[Cut]) -> list[TraceWarning]:
        warnings = []
        bare = [
            step
            for step, cut in zip(steps, solved, strict=True)
            if step.complete and step.phase != "dummy" and not cut.count and not self.blockless
        ]
        if bare:
            warnings.append(
                TraceWarning(
                    "no_blocks",
                    "no repeating block of kernels was found in some steps; they have no transformer blocks to show",
                    count=len(bare),
                )
            )
        partial = sum(not step.complete for step in steps)
        if partial:
            warnings.append(
                TraceWarning(
                    "partial_steps",
                    "steps cut off by the start or end of the recording are incomplete and excluded from averages",
                    count=partial,
                )
            )
        return warnings


def _join_lead(
    steps: list[StepEvents], leading: IntArray, tokens: IntArray, vocabulary: KernelVocabulary
) -> tuple[list[StepEvents], IntArray]:
    """What was launched before the first marker is a partial step, with what came before any launch, if it computes.

    Returns the steps and the events without a launch that are still to be placed.
    """
    if not steps or steps[0].label is not None or steps[0].complete:
        return steps, leading
    early = np.sort(np.concatenate([leading, steps[0].events]))
    if not np.isin(vocabulary.classes[tokens[early]], _COMPUTING).any():
        return steps[1:], leading
    return [replace(steps[0], events=early), *steps[1:]], leading[:0]
