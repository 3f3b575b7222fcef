"""From a step's specification to its launches: what runs, in which order, started by which call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from synthetic.spec import KernelSpec, Launch, ModelSpec, Section, StepSpec, TraceSpec


@dataclass(frozen=True)
class PlannedBlock:
    """A block of a step before anything has run. `content` is what it runs, for telling variants apart."""

    index: int
    layer: int
    run: str
    microbatch: int
    kind: str
    content: tuple[str, ...]


@dataclass(frozen=True)
class PlannedKernel:
    """A kernel at its place in the step. `position` counts within its block or section."""

    spec: KernelSpec
    section: Section
    block: PlannedBlock | None
    position: int
    microbatch: int = 0


@dataclass(frozen=True)
class PlannedLaunch:
    """One call to the runtime: a graph with all its kernels, or a single kernel, copy or memset."""

    kernels: tuple[PlannedKernel, ...]
    graph: bool
    after_marker: bool


@dataclass(frozen=True)
class StepPlan:
    """A step's launches in host order, and its blocks."""

    launches: tuple[PlannedLaunch, ...]
    blocks: tuple[PlannedBlock, ...]


def plan_step(trace: TraceSpec, step: StepSpec) -> StepPlan:
    """Lay out the forward passes of `step` and group their kernels into launches."""
    if not step.runs:
        return StepPlan((), ())
    mode: Launch = step.launch or trace.launch
    kernels = list(_forward_passes(step.model or trace.model, trace.microbatches))
    blocks = tuple(dict.fromkeys(kernel.block for kernel in kernels if kernel.block is not None))
    last_block = max((i for i, kernel in enumerate(kernels) if kernel.block is not None), default=-1)
    return StepPlan(tuple(_launches(kernels, mode, last_block)), blocks)


def _forward_passes(model: ModelSpec, microbatches: int) -> Iterator[PlannedKernel]:
    run = "verify" if model.draft else "main"
    yield from _outer(model.prologue, "prologue")
    yield from _blocks(model, run, first_index=0, microbatches=microbatches)
    yield from _outer(model.epilogue, "epilogue")
    index = len(model.layers) * microbatches
    for _ in range(model.draft_passes if model.draft else 0):
        assert model.draft is not None
        yield from _outer(model.draft.prologue, "epilogue")
        yield from _blocks(model.draft, "draft", first_index=index, microbatches=1)
        yield from _outer(model.draft.epilogue, "epilogue")
        index += len(model.draft.layers)


def _outer(kernels: tuple[KernelSpec, ...], section: Section) -> Iterator[PlannedKernel]:
    for position, kernel in enumerate(kernels):
        yield PlannedKernel(kernel, section, None, position)


def _blocks(model: ModelSpec, run: str, first_index: int, microbatches: int) -> Iterator[PlannedKernel]:
    for layer, spec in enumerate(model.layers):
        kernels = _first_block(model, spec.kernels) if layer == 0 else spec.kernels
        content = tuple(sorted(kernel.name for kernel in kernels))
        for microbatch in range(microbatches):
            index = first_index + layer * microbatches + microbatch
            block = PlannedBlock(index, layer, run, microbatch, spec.kind, content)
            for position, kernel in enumerate(kernels):
                yield PlannedKernel(kernel, "block", block, position, microbatch)


def _first_block(model: ModelSpec, kernels: tuple[KernelSpec, ...]) -> tuple[KernelSpec, ...]:
    """Block 0's kernels. A name is replaced once: its later norms have a residual to add, as those of other blocks."""
    left = dict(model.first_block_names)
    return tuple(
        replace(kernel, name=left.pop(kernel.name, kernel.name))
        for kernel in kernels
        if kernel.name not in model.first_block_lacks
    )


def _launches(kernels: list[PlannedKernel], mode: Launch, last_block: int) -> Iterator[PlannedLaunch]:
    """Runs of kernels that a graph holds become one launch each; every other kernel is its own."""
    marked = [(i, _in_graph(kernel, mode), kernel) for i, kernel in enumerate(kernels)]
    for graph, run in groupby(marked, key=lambda item: item[1]):
        members = list(run)
        if graph:
            yield PlannedLaunch(tuple(kernel for _, _, kernel in members), True, after_marker=False)
            continue
        for i, _, kernel in members:
            late = i > last_block and not kernel.spec.in_graph
            yield PlannedLaunch((kernel,), False, after_marker=late)


def _in_graph(kernel: PlannedKernel, mode: Launch) -> bool:
    if mode == "eager" or not kernel.spec.in_graph:
        return False
    return mode == "graph" or kernel.section != "block" or not kernel.spec.launched_between_pieces
