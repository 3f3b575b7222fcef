"""Synthetic profiler traces whose truth is known because it was decided first."""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthetic.checks import check
from synthetic.layout import Laid, lay_out
from synthetic.plan import PlannedBlock
from synthetic.spec import StepSpec, TraceSpec
from synthetic.timeline import DeviceRecord, HostStep, Timeline, run
from synthetic.truth import (
    BlockTruth,
    DeviceEventTruth,
    SectionTruth,
    StepTruth,
    Truth,
    busy_ns,
    kernels_of,
    section_of,
    smallest_period,
    sums_by_name,
    sums_by_role,
)
from traceanalyzer.files import write_whole

NOTE = "Generated from a specification; not recorded on any device. Durations are chosen, not measured."


@dataclass(frozen=True)
class SyntheticTrace:
    """A Chrome trace document, ready for JSON, and what is true of it."""

    document: dict[str, Any]
    truth: Truth

    @property
    def events(self) -> list[dict[str, Any]]:
        """The document's `traceEvents`."""
        events: list[dict[str, Any]] = self.document["traceEvents"]
        return events


def generate(spec: TraceSpec, seed: int = 0) -> SyntheticTrace:
    """Generate the trace of `spec`; the same arguments give the same trace everywhere.

    Raises ValueError where the specification contradicts itself (a dropped or foreign kernel at a block that
    no step has, a first kernel of a block dropped) or names a role, engine, launch or vendor that there is not.
    """
    check(spec)
    timeline = run(spec, seed)
    laid = lay_out(spec, timeline, _kept(spec, timeline))
    document = {"synthetic": True, "generator": "traceanalyzer.synthetic", "note": NOTE}
    return SyntheticTrace(_mark(laid.document, document), _truth(spec, timeline, laid))


def write(trace: SyntheticTrace, path: str | Path) -> Path:
    """Write the document to `path`, gzip-compressed where it ends in `.gz`; atomic, and the same bytes always."""
    return write_document(trace.document, path)


def write_document(document: dict[str, Any], path: str | Path) -> Path:
    """Write a document as `write` writes that of a trace."""
    path = Path(path)
    data = encode(document)
    if path.suffix == ".gz":
        data = _gzip(data)
    write_whole(path, data)
    return path


def encode(document: dict[str, Any]) -> bytes:
    """The document as JSON, one event a line, in its own key order."""
    head = {key: value for key, value in document.items() if key not in ("traceEvents", "traceName")}
    lines = ",\n".join(json.dumps(event) for event in document["traceEvents"])
    tail = json.dumps(document["traceName"])
    return f'{json.dumps(head)[:-1]}, "traceEvents": [\n{lines}\n], "traceName": {tail}}}\n'.encode()


def _gzip(data: bytes) -> bytes:
    """Compress without a time stamp or a name. `gzip.compress` writes other headers in other Python versions."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as file:
        file.write(data)
    return buffer.getvalue()


def _mark(document: dict[str, Any], marks: dict[str, Any]) -> dict[str, Any]:
    """Put the marks of a synthetic trace after the device properties, before everything else."""
    first = ("schemaVersion", "deviceProperties")
    return {key: document[key] for key in first} | marks | document


def _kept(spec: TraceSpec, timeline: Timeline) -> list[DeviceRecord]:
    """The device events that reach the file: none dropped, none after the profile's end."""
    dropped = {(drop.step, drop.block, drop.kernel) for drop in spec.dropped}
    records = [record for record in timeline.device if _place(record) not in dropped]
    if spec.cut_last_step is None:
        return records
    last = len(spec.steps) - 1
    own = sorted((r for r in records if r.step == last), key=lambda record: record.start_ns)
    kept = {id(record) for record in own[: spec.cut_last_step]}
    return [record for record in records if record.step != last or id(record) in kept]


def _place(record: DeviceRecord) -> tuple[int, int, int] | None:
    planned = record.planned
    if record.step is None or planned is None or planned.block is None:
        return None
    return record.step, planned.block.index, planned.position


def _truth(spec: TraceSpec, timeline: Timeline, laid: Laid) -> Truth:
    events = tuple(_event_truth(index, record) for index, record in laid.placed)
    of_step: dict[int | None, list[DeviceEventTruth]] = defaultdict(list)
    for event in events:
        of_step[event.step].append(event)
    whole = _recordable(spec, timeline)
    steps = tuple(_step_truth(spec, timeline, host, of_step[host.index], whole[host.index]) for host in timeline.steps)
    without = kernels_of(of_step[None])
    return Truth(
        steps=steps,
        events=events,
        kernel_ns=sums_by_name(events),
        kernel_sum_ns=sum(kernel.dur_ns for kernel in kernels_of(events)),
        busy_ns=busy_ns(events),
        graph_launches=sum(launch.graph for launch in timeline.launches),
        kernels_without_step=len(without),
        kernels_without_step_ns=sum(kernel.dur_ns for kernel in without),
    )


def _event_truth(index: int, record: DeviceRecord) -> DeviceEventTruth:
    planned = record.planned if record.step is not None else None
    return DeviceEventTruth(
        event=index,
        name=record.spec.name,
        category=record.spec.category,
        start_ns=record.start_ns,
        dur_ns=record.dur_ns,
        stream=record.stream,
        correlation=record.correlation,
        step=record.step,
        section="outside" if planned is None else planned.section,
        block=None if planned is None or planned.block is None else planned.block.index,
        role=record.spec.role,
    )


def _step_truth(
    spec: TraceSpec, timeline: Timeline, host: HostStep, own: Sequence[DeviceEventTruth], recordable: int
) -> StepTruth:
    step: StepSpec = spec.steps[host.index]
    whole = section_of(own)
    plan = timeline.plans[host.index]
    return StepTruth(
        index=host.index,
        label=host.label,
        phase=step.phase,
        complete=len(own) == recordable,
        requests=step.requests,
        tokens=step.tokens,
        kernels=whole.kernels,
        kernel_sum_ns=whole.kernel_sum_ns,
        busy_ns=whole.busy_ns,
        span_ns=_span_ns(own),
        prologue=_named_section(own, "prologue"),
        blocks=_block_truths(plan.blocks, own),
        epilogue=_named_section(own, "epilogue"),
        outside=_named_section(own, "outside"),
        period_blocks=smallest_period(tuple(block.kind for block in plan.blocks if block.run != "draft")),
    )


def _recordable(spec: TraceSpec, timeline: Timeline) -> Counter[int | None]:
    """Device events by step that a profile of sufficient length holds."""
    dropped = {(drop.step, drop.block, drop.kernel) for drop in spec.dropped}
    return Counter(record.step for record in timeline.device if _place(record) not in dropped)


def _named_section(events: Sequence[DeviceEventTruth], section: str) -> SectionTruth:
    return section_of(event for event in events if event.section == section)


def _span_ns(events: Sequence[DeviceEventTruth]) -> int:
    kernels = kernels_of(events)
    if not kernels:
        return 0
    return max(kernel.start_ns + kernel.dur_ns for kernel in kernels) - min(k.start_ns for k in kernels)


def _block_truths(blocks: tuple[PlannedBlock, ...], events: Sequence[DeviceEventTruth]) -> tuple[BlockTruth, ...]:
    """Blocks that left at least one event. Variants are numbered in order of appearance."""
    of_block: dict[int | None, list[DeviceEventTruth]] = defaultdict(list)
    for event in events:
        of_block[event.block].append(event)
    variants: dict[tuple[str, tuple[str, ...]], int] = {}
    truths = []
    for block in blocks:
        variant = variants.setdefault((block.kind, block.content), len(variants))
        if of_block[block.index]:
            truths.append(_block_truth(block, variant, of_block[block.index]))
    return tuple(truths)


def _block_truth(block: PlannedBlock, variant: int, events: list[DeviceEventTruth]) -> BlockTruth:
    section = section_of(events)
    first = min(events, key=lambda event: (event.start_ns, event.event))
    return BlockTruth(
        events=section.events,
        kernels=section.kernels,
        kernel_sum_ns=section.kernel_sum_ns,
        busy_ns=section.busy_ns,
        index=block.index,
        layer=block.layer,
        run=block.run,
        microbatch=block.microbatch,
        variant=variant,
        kind=block.kind,
        first_kernel=first.name,
        start_ns=first.start_ns,
        roles=sums_by_role(events),
    )
