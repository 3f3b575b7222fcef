"""Runs a plan on two clocks, the host's and the GPU's. All times are integer ns since the trace's base time."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field

from synthetic.checks import check_places
from synthetic.markers import step_label
from synthetic.plan import PlannedBlock, PlannedKernel, PlannedLaunch, StepPlan, plan_step
from synthetic.spec import ForeignKernel, KernelSpec, StepSpec, TraceSpec

STEP_PREPARATION_NS = 60_000
OP_NS = 8_000
RUNTIME_OFFSET_NS = 2_000
RUNTIME_NS = 4_500
LAUNCH_LATENCY_NS = 5_000
AFTER_MARKER_NS = 12_000
BETWEEN_STEPS_NS = 40_000


@dataclass(frozen=True)
class DeviceRecord:
    """A device event as it ran. `external_id` is None in graphs; `node` counts within a graph launch."""

    spec: KernelSpec
    start_ns: int
    dur_ns: int
    stream: int
    correlation: int
    external_id: int | None
    node: int | None
    step: int | None
    planned: PlannedKernel | None


@dataclass(frozen=True)
class HostLaunch:
    """A call to the runtime with the CPU op around it; a graph launch has none (`op` None)."""

    op: str | None
    op_start_ns: int
    op_dur_ns: int
    start_ns: int
    dur_ns: int
    correlation: int
    external_id: int | None
    step: int
    block: PlannedBlock | None
    launched: tuple[KernelSpec, ...]
    graph: bool


@dataclass(frozen=True)
class HostStep:
    """The step on the host: its marker's interval, and the end of everything it launched."""

    index: int
    label: str | None
    start_ns: int
    marker_end_ns: int
    end_ns: int
    external_id: int


@dataclass(frozen=True)
class Timeline:
    """Everything that happened, nothing lost. `plans` has one plan a step."""

    steps: tuple[HostStep, ...]
    launches: tuple[HostLaunch, ...]
    device: tuple[DeviceRecord, ...]
    plans: tuple[StepPlan, ...]
    start_ns: int
    end_ns: int


@dataclass
class _Clocks:
    """The state of the simulated machine."""

    host: int
    correlation: int
    external_id: int = 1479555
    gpu_end: int = 0
    chain_end: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    chain_last: dict[int, DeviceRecord] = field(default_factory=dict)
    chain_block: dict[int, PlannedBlock | None] = field(default_factory=dict)
    joined: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    stream_end: dict[int, int] = field(default_factory=lambda: defaultdict(int))


def run(spec: TraceSpec, seed: int) -> Timeline:
    """Run every step of `spec`. The same spec and seed give the same timeline on every machine.

    Raises ValueError where a kernel is dropped, foreign or late at a block that its step does not have.
    """
    return _Machine(spec, seed).run()


class _Machine:
    def __init__(self, spec: TraceSpec, seed: int) -> None:
        self.spec = spec
        self.random = random.Random(seed)
        self.start = spec.start_us * 1000 + 683
        self.clocks = _Clocks(host=self.start + 20_000, correlation=spec.first_correlation)
        self.steps: list[HostStep] = []
        self.launches: list[HostLaunch] = []
        self.device: list[DeviceRecord] = []
        default = 7 if spec.vendor == "cuda" else 0
        self.main_stream = default if spec.main_stream is None else spec.main_stream
        self.holes = {(hole.step, hole.block, hole.kernel): hole.dur_us for hole in spec.holes}

    def run(self) -> Timeline:
        plans = tuple(plan_step(self.spec, step) for step in self.spec.steps)
        check_places(self.spec, plans)
        self._leading_kernels(plans)
        for index, (step, plan) in enumerate(zip(self.spec.steps, plans, strict=True)):
            self._step(index, step, plan)
        return Timeline(
            steps=tuple(self.steps),
            launches=tuple(self.launches),
            device=tuple(self.device),
            plans=plans,
            start_ns=self.start,
            end_ns=max(self.clocks.host, self.clocks.gpu_end) + 50_000,
        )

    def _leading_kernels(self, plans: tuple[StepPlan, ...]) -> None:
        """The tail of a step that was launched before the profile began: kernels without launch events."""
        if not self.spec.leading_kernels or not plans:
            return
        flat = [(launch, kernel) for launch in plans[0].launches for kernel in launch.kernels]
        before = self.clocks.correlation - len(plans[0].launches) - 10
        for launch, kernel in flat[-self.spec.leading_kernels :]:
            correlation = before + plans[0].launches.index(launch)
            self._run_kernel(kernel, self.start + 9_000, correlation, None, launch.graph, None)

    def _step(self, index: int, step: StepSpec, plan: StepPlan) -> None:
        clocks = self.clocks
        begin = clocks.host
        marker_id = self._next_external_id()
        number = len(self.steps) + 3
        label = step_label(self.spec.engine, step, number, self.spec.runner_line)
        clocks.host += STEP_PREPARATION_NS
        foreign = [item for item in self.spec.foreign if item.step == index]
        foreign_launches = [self._host_launch((item.kernel,), index, None, graph=False) for item in foreign]
        for launch in plan.launches:
            if not launch.after_marker:
                self._launch(index, launch)
        marker_end = clocks.host + 5_000
        late = [launch for launch in plan.launches if launch.after_marker]
        if late:
            clocks.host = marker_end + AFTER_MARKER_NS
        for launch in late:
            self._launch(index, launch)
        for item, host in zip(foreign, foreign_launches, strict=True):
            self._run_foreign(item, host)
        end = max(clocks.host, marker_end)
        if self.spec.engine in ("profiler_step", "vllm_python"):
            marker_end = end
        self.steps.append(HostStep(index, label, begin, marker_end, end, marker_id))
        lag = _ns(self.spec.gpu_lag_us)
        clocks.host = max(end, clocks.gpu_end - lag) + BETWEEN_STEPS_NS

    def _launch(self, step: int, launch: PlannedLaunch) -> None:
        specs = tuple(kernel.spec for kernel in launch.kernels)
        host = self._host_launch(specs, step, launch.kernels[0].block, launch.graph)
        earliest = host.start_ns + LAUNCH_LATENCY_NS + _ns(self.spec.gpu_lag_us)
        for node, kernel in enumerate(launch.kernels):
            self._run_kernel(kernel, earliest, host.correlation, host.external_id, launch.graph, step, node)

    def _host_launch(
        self, specs: tuple[KernelSpec, ...], step: int, block: PlannedBlock | None, graph: bool
    ) -> HostLaunch:
        clocks = self.clocks
        correlation = clocks.correlation
        clocks.correlation += 1
        begin = clocks.host
        if graph:
            dur = 20_000 + (1_200 if self.spec.vendor == "rocm" else 60) * len(specs)
            launch = HostLaunch(None, begin, dur, begin, dur, correlation, None, step, block, specs, graph=True)
            clocks.host = begin + dur + 3_000
        else:
            op = specs[0].op or _default_op(specs[0])
            launch = HostLaunch(
                op=op,
                op_start_ns=begin,
                op_dur_ns=OP_NS,
                start_ns=begin + RUNTIME_OFFSET_NS,
                dur_ns=RUNTIME_NS,
                correlation=correlation,
                external_id=self._next_external_id(),
                step=step,
                block=block,
                launched=specs,
                graph=False,
            )
            clocks.host = begin + OP_NS + 500
        self.launches.append(launch)
        return launch

    def _run_kernel(
        self,
        kernel: PlannedKernel,
        earliest: int,
        correlation: int,
        external_id: int | None,
        graph: bool,
        step: int | None,
        node: int = 0,
    ) -> None:
        """Run a kernel after its predecessor on the main path, or beside the main path on a side stream."""
        clocks, spec, chain = self.clocks, kernel.spec, kernel.microbatch
        self._fork_and_join(kernel)
        ready = clocks.chain_end[chain]
        if step is not None and kernel.block is not None:
            ready += _ns(self.holes.get((step, kernel.block.index, kernel.position), 0.0))
        dur = self._duration_ns(spec)
        stream = self._stream(kernel, graph)
        side = spec.stream > 0
        if side:
            start = max(ready, earliest, clocks.stream_end[stream]) + self.random.randrange(200, 900)
        else:
            gap = _ns(self.spec.gap_us) + self.random.randrange(3)
            start = max(ready + gap - self._overlap_ns(chain, ready, stream, dur), earliest)
        record = DeviceRecord(
            spec=spec,
            start_ns=start,
            dur_ns=dur,
            stream=stream,
            correlation=correlation,
            external_id=external_id,
            node=node if graph else None,
            step=step,
            planned=kernel,
        )
        self._note(record, chain, side)

    def _fork_and_join(self, kernel: PlannedKernel) -> None:
        """At a border between blocks the main path waits for side streams; at the ends, for all chains."""
        clocks, chain = self.clocks, kernel.microbatch
        if kernel.block == clocks.chain_block.get(chain) and kernel.block is not None:
            return
        clocks.chain_block[chain] = kernel.block
        clocks.chain_end[chain] = max(clocks.chain_end[chain], clocks.joined[chain])
        if kernel.block is None:
            clocks.chain_end[0] = max([0, *clocks.chain_end.values(), *clocks.joined.values()])
        elif kernel.block.layer == 0 and chain:
            clocks.chain_end[chain] = max(clocks.chain_end[chain], self._before_blocks)

    @property
    def _before_blocks(self) -> int:
        """End of the last device event outside blocks: where every microbatch starts from."""
        outside = (r for r in reversed(self.device) if r.planned is not None and r.planned.block is None)
        last = next(outside, None)
        return 0 if last is None else last.start_ns + last.dur_ns

    def _overlap_ns(self, chain: int, ready: int, stream: int, dur: int) -> int:
        """How far a kernel starts into its predecessor, which must be the last to end, on the same stream."""
        most = _ns(self.spec.overlap_us)
        last = self.clocks.chain_last.get(chain)
        if not most or last is None or last.stream != stream or last.start_ns + last.dur_ns != ready:
            return 0
        return min(self.random.randrange(most + 1), last.dur_ns // 2, dur // 2)

    def _note(self, record: DeviceRecord, chain: int, side: bool) -> None:
        clocks, end = self.clocks, record.start_ns + record.dur_ns
        clocks.stream_end[record.stream] = max(clocks.stream_end[record.stream], end)
        clocks.gpu_end = max(clocks.gpu_end, end)
        if side:
            clocks.joined[chain] = max(clocks.joined[chain], end)
        else:
            clocks.chain_end[chain] = max(clocks.chain_end[chain], end)
            clocks.chain_last[chain] = record
        self.device.append(record)

    def _run_foreign(self, item: ForeignKernel, host: HostLaunch) -> None:
        begin = next(
            record.start_ns
            for record in self.device
            if record.step == item.step and record.planned and record.planned.block
            if record.planned.block.index == item.block
        )
        clocks = self.clocks
        start = max(begin + 150, host.start_ns + LAUNCH_LATENCY_NS, clocks.stream_end[item.stream])
        dur = self._duration_ns(item.kernel)
        clocks.stream_end[item.stream] = start + dur
        clocks.gpu_end = max(clocks.gpu_end, start + dur)
        self.device.append(
            DeviceRecord(
                spec=item.kernel,
                start_ns=start,
                dur_ns=dur,
                stream=item.stream,
                correlation=host.correlation,
                external_id=host.external_id,
                node=None,
                step=item.step,
                planned=None,
            )
        )

    def _stream(self, kernel: PlannedKernel, graph: bool) -> int:
        base = self.spec.side_stream_base
        if kernel.spec.stream:
            return base + 100 * kernel.microbatch + kernel.spec.stream - 1
        if kernel.microbatch:
            return base + 100 * kernel.microbatch - 1
        turn = kernel.block.index % self.spec.hop_streams if graph and kernel.block else 0
        return base + 40 + turn if turn else self.main_stream

    def _duration_ns(self, spec: KernelSpec) -> int:
        """Symmetric triangular spread around the given duration, from `random()` alone: that is portable."""
        width = self.spec.jitter if spec.jitter is None else spec.jitter
        spread = self.random.random() + self.random.random() - 1.0
        return max(1, round(spec.dur_us * 1000 * (1.0 + width * spread)))

    def _next_external_id(self) -> int:
        self.clocks.external_id += 1
        return self.clocks.external_id


def _ns(us: float) -> int:
    return round(us * 1000)


def _default_op(spec: KernelSpec) -> str:
    if spec.category == "gpu_memcpy":
        return "aten::copy_"
    if spec.category == "gpu_memset":
        return "aten::zero_"
    return _OP_OF_ROLE.get(spec.role, "aten::add")


_OP_OF_ROLE = {
    "norm": "_C::rms_norm",
    "qkv_proj": "aten::linear",
    "rope": "_C::rotary_embedding",
    "kv_write": "_C_cache_ops::reshape_and_cache_flash",
    "attention": "vllm::unified_attention_with_output",
    "o_proj": "aten::linear",
    "router": "aten::linear",
    "moe_routing": "vllm::moe_forward",
    "moe_gate_up": "vllm::moe_forward",
    "moe_down": "vllm::moe_forward",
    "moe_combine": "vllm::moe_forward",
    "gate_up": "aten::linear",
    "down": "aten::linear",
    "activation": "_C::silu_and_mul",
    "quantize": "_C::dynamic_scaled_fp8_quant",
    "communication": "vllm::all_reduce",
    "copy": "aten::copy_",
    "embedding": "aten::embedding",
    "lm_head": "aten::linear",
    "sampler": "aten::argmax",
}
