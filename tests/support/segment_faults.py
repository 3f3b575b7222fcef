"""What a segmentation gets wrong about a generated trace."""

from __future__ import annotations

from synthetic import SyntheticTrace
from traceanalyzer.segment import Segmentation


def faults(truth: SyntheticTrace, found: Segmentation) -> list[str]:
    """Say what differs; kernels of other streams that run by the side may be in a block or not."""
    events = found.events["index"].to_list()
    step_of = dict(zip(events, found.events["step"].to_list(), strict=True))
    block_of = dict(zip(events, found.events["block"].to_list(), strict=True))
    aside = {event.event for event in truth.truth.events if event.section == "outside"}
    members: dict[int | None, set[int]] = {}
    for event, step in step_of.items():
        members.setdefault(step, set()).add(event)
    number_of = {frozenset(own): step for step, own in members.items()}
    wrong = []
    for step in truth.truth.steps:
        own = {event.event for event in truth.truth.events if event.step == step.index}
        if not own:
            continue
        number = number_of.get(frozenset(own))
        if number is None:
            wrong.append(f"step {step.index} is not found")
            continue
        row = found.steps.row(number, named=True)
        blocks = [block for block in step.blocks if block.events]
        placed = sum(one["blocks"] for one in row["passes"])
        if (row["complete"], placed) != (step.complete, len(blocks)):
            wrong.append(f"step {step.index}: complete {row['complete']}, {placed} blocks")
        for block in blocks:
            if {event for event in own if block_of[event] == block.index} - aside != set(block.events):
                wrong.append(f"step {step.index}: block {block.index}")
    return wrong
