"""Python frames of a profile with stacks: the worker's loop, `execute_model`, and modules where it runs eagerly."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from synthetic.spec import TraceSpec
from synthetic.timeline import HostLaunch, HostStep, Timeline

LOOP = "vllm/v1/executor/multiproc_executor.py(1043): _execute_worker_rpc"
CONTEXT = "torch/utils/_contextlib.py(117): decorate_context"


@dataclass(frozen=True)
class PythonFrame:
    """A call: `module` numbers the instance where the callee is an `nn.Module`."""

    name: str
    start_ns: int
    end_ns: int
    parent: int | None
    number: int
    module: int | None = None


def python_frames(spec: TraceSpec, timeline: Timeline) -> Iterator[PythonFrame]:
    """Frames in call order, parents first. Nothing unless the trace was taken with stacks."""
    by_python = spec.engine == "vllm_python"
    if not (spec.with_stack or spec.module_events or by_python):
        return
    runner = f"vllm/v1/worker/gpu_model_runner.py({spec.runner_line}): execute_model"
    number = 1
    yield PythonFrame(LOOP, timeline.start_ns, timeline.end_ns, None, number)
    for call in range(spec.idle_calls):
        start = timeline.start_ns + 1_000 + call * 900
        number += 1
        yield PythonFrame(runner, start, start + 700, 1, number)
    of_step: dict[int, list[HostLaunch]] = defaultdict(list)
    for launch in timeline.launches:
        of_step[launch.step].append(launch)
    for step in timeline.steps:
        yield PythonFrame(CONTEXT, step.start_ns, step.marker_end_ns, 1, number + 1)
        yield PythonFrame(runner, step.start_ns + 300, step.marker_end_ns - 300, number + 1, number + 2)
        number += 2
        if spec.module_events:
            for frame in _modules(spec, step, of_step[step.index], number):
                number = frame.number
                yield frame


def _modules(spec: TraceSpec, step: HostStep, launches: list[HostLaunch], runner: int) -> Iterator[PythonFrame]:
    """The model and its decoder layers around the launches they make; graph replays show no modules."""
    inside = [launch for launch in launches if launch.block is not None and not launch.graph]
    if not inside:
        return
    prefix = spec.model.class_name
    start, end = inside[0].op_start_ns - 1_000, inside[-1].op_start_ns + inside[-1].op_dur_ns
    number = runner + 1
    name = f"nn.Module: {prefix}ForCausalLM_0"
    yield PythonFrame(name, start, max(end, step.marker_end_ns - 1_000), runner, number, 0)
    model = number
    for block, group in groupby(inside, key=lambda launch: launch.block):
        calls = list(group)
        if block is None or any(call.graph for call in calls):
            continue
        number += 1
        yield PythonFrame(
            f"nn.Module: {prefix}DecoderLayer_{block.layer}",
            calls[0].op_start_ns - 200,
            calls[-1].op_start_ns + calls[-1].op_dur_ns + 200,
            model,
            number,
            block.layer,
        )
