"""What a specification must not say: types are not checked when a program runs, and a typo would give another trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

from synthetic.plan import StepPlan
from synthetic.spec import ROLES, Engine, KernelSpec, Launch, ModelSpec, TraceSpec, Vendor


def check(spec: TraceSpec) -> None:
    """Raise ValueError where a specification contradicts itself, or names what there is not."""
    launches = {spec.launch, *(step.launch or spec.launch for step in spec.steps)}
    roles = {kernel.role for kernel in _kernels(spec)}
    for what, given, known in (
        ("role", roles, ROLES),
        ("engine", {spec.engine}, get_args(Engine)),
        ("launch", launches, get_args(Launch)),
        ("vendor", {spec.vendor}, get_args(Vendor)),
    ):
        for unknown in sorted(given - set(known)):
            raise ValueError(f"{what} {unknown!r} is none of {', '.join(known)}")
    if any(drop.kernel == 0 for drop in spec.dropped):
        raise ValueError("the first kernel of a block marks its start and cannot be dropped")
    if spec.microbatches < 1 or spec.hop_streams < 1:
        raise ValueError("microbatches and hop_streams count from 1")
    if spec.microbatches > 1 and spec.hop_streams > 1:
        raise ValueError("microbatches take streams of their own and do not hop")
    if spec.cut_last_step is not None and not spec.steps:
        raise ValueError("there is no step to cut off")


def _kernels(spec: TraceSpec) -> Iterator[KernelSpec]:
    """Every kernel of a specification; a model or block that recurs is looked at once."""
    models: dict[int, ModelSpec] = {}
    left = [spec.model, *(step.model for step in spec.steps if step.model is not None)]
    while left:
        model = left.pop()
        if id(model) not in models:
            models[id(model)] = model
            left += [model.draft] if model.draft else []
    for model in models.values():
        yield from model.prologue
        yield from model.epilogue
        for layer in {id(layer): layer for layer in model.layers}.values():
            yield from layer.kernels
    yield from (foreign.kernel for foreign in spec.foreign)


def check_places(spec: TraceSpec, plans: Sequence[StepPlan]) -> None:
    """Raise ValueError where a kernel is dropped, foreign or late at a block that its step does not have."""
    places = [(drop.step, drop.block) for drop in spec.dropped]
    places += [(foreign.step, foreign.block) for foreign in spec.foreign]
    places += [(hole.step, hole.block) for hole in spec.holes]
    for step, block in places:
        blocks = plans[step].blocks if step < len(spec.steps) else ()
        if block >= len(blocks):
            raise ValueError(f"step {step} has no block {block}")
