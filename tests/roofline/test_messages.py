"""Sizes of collectives: as the trace states them, else as the model has them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from synthetic import TraceSpec, decode_steps, generate
from synthetic.models import llama_dense
from traceanalyzer.hardware import find_gpu
from traceanalyzer.model import named
from traceanalyzer.roofline import Request, Roofline, Row, roofline
from traceanalyzer.trace import open_traces

LAYERS, BATCH, RANKS = 32, 8, 2
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
ELEMENTS = BATCH * 4096
ALL_REDUCES = 2 * LAYERS
Change = Callable[[list[dict[str, Any]]], None]


def stated(elements: object = ELEMENTS, ranks: object = RANKS, name: str = "allreduce") -> dict[str, Any]:
    return {
        "Collective name": name,
        "In msg nelems": elements,
        "Out msg nelems": elements,
        "Group size": ranks,
        "dtype": "BFloat16",
    }


def analysed(folder: Path, change: Change, **request: Any) -> Roofline:
    """The roofline of a tensor-parallel Llama, the arguments of whose collectives were changed."""
    model = llama_dense(LAYERS, BATCH, tensor_parallel=RANKS)
    layers = tuple(
        replace(
            block,
            kernels=tuple(
                replace(kernel, name=NCCL) if kernel.role == "communication" else kernel for kernel in block.kernels
            ),
        )
        for block in model.layers
    )
    spec = TraceSpec(
        model=replace(model, layers=layers),
        steps=decode_steps(2, batch=BATCH),
        engine="vllm_detailed",
        launch="eager",
        world_size=RANKS,
        record_shapes=False,
    )
    document = generate(spec, 0).document
    change(document["traceEvents"])
    path = folder / "trace.json"
    path.write_text(json.dumps(document))
    return roofline(open_traces(path, cache=False).traces[0], Request(**{"model": named("Llama-3.1-8B"), **request}))


def collectives(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event.get("name") == NCCL and event.get("cat") == "kernel"]


def kernels_state(**arguments: Any) -> Change:
    def change(events: list[dict[str, Any]]) -> None:
        for event in collectives(events):
            event["args"] |= stated(**arguments)

    return change


def communication(found: Roofline) -> Row:
    (row,) = (row for row in found.rows if row.role == "communication")
    return row


def test_stated_messages_take_precedence_and_are_said_to_be_measured(tmp_path: Path) -> None:
    found = analysed(tmp_path, kernels_state(elements=3 * ELEMENTS))
    row = communication(found)
    # A ring all-reduce over 2 ranks sends its message once: 2 (n - 1) / n.
    assert row.bytes == pytest.approx(ALL_REDUCES * 3 * ELEMENTS * 2)
    assert (row.bound, row.source) == ("communication", "shapes")
    assert row.floor_ns == pytest.approx(row.bytes / (find_gpu("H100 SXM5").link_gbps or 0))
    assert any("measured" in line and f"{6 * ELEMENTS:,} bytes over 2 ranks" in line for line in row.basis)
    assert any("3.00 times the bytes of the model" in finding.message for finding in found.findings)


def test_messages_that_agree_with_the_model_are_no_finding(tmp_path: Path) -> None:
    found = analysed(tmp_path, kernels_state())
    assert communication(found).bytes == pytest.approx(ALL_REDUCES * ELEMENTS * 2)
    assert not [finding for finding in found.findings if finding.code == "shape_mismatch"]


def test_the_group_that_is_stated_counts_not_the_world(tmp_path: Path) -> None:
    found = analysed(tmp_path, kernels_state(ranks=8), tp=2)
    assert communication(found).bytes == pytest.approx(ALL_REDUCES * ELEMENTS * 2 * 2 * 7 / 8)


def test_the_op_that_calls_for_a_collective_states_its_size(tmp_path: Path) -> None:
    def change(events: list[dict[str, Any]]) -> None:
        for number, event in enumerate(collectives(events)):
            event["args"]["External id"] = 900_000 + number
            args = {"External id": 900_000 + number, **stated(elements=2 * ELEMENTS)}
            call = {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "dur": 1.0}
            events.append({**call, "ts": event["ts"] - 50, "args": args})

    assert communication(analysed(tmp_path, change)).bytes == pytest.approx(ALL_REDUCES * 2 * ELEMENTS * 2)


@pytest.mark.parametrize(
    "arguments",
    [{"elements": "many"}, {"elements": 0}, {"ranks": 1}, {"ranks": None}, {"name": "_allgather_into_nothing"}],
)
def test_what_does_not_state_a_size_is_left_to_the_model(tmp_path: Path, arguments: dict[str, Any]) -> None:
    row = communication(analysed(tmp_path, kernels_state(**arguments)))
    if "name" in arguments:  # the kind is believed, its factor is another one
        assert row.bytes == pytest.approx(ALL_REDUCES * ELEMENTS)
    else:
        assert (row.source, row.bytes) == ("model", pytest.approx(ALL_REDUCES * ELEMENTS * 2))


def test_a_block_of_which_one_collective_is_stated_is_left_to_the_model(tmp_path: Path) -> None:
    def change(events: list[dict[str, Any]]) -> None:
        collectives(events)[0]["args"] |= stated(elements=100 * ELEMENTS)

    row = communication(analysed(tmp_path, change))
    assert (row.source, row.bytes) == ("model", pytest.approx(ALL_REDUCES * ELEMENTS * 2))
