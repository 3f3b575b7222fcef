"""What a synthetic trace is to contain: the model's kernels, the steps, and how the profiler saw them.

Everything here is a frozen value. `generate` turns a `TraceSpec` into events and into the truth about them.
Durations are given in µs and turned into whole nanoseconds once, when the trace is generated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

Role: TypeAlias = Literal[
    "norm",
    "qkv_proj",
    "rope",
    "kv_write",
    "attention",
    "o_proj",
    "router",
    "moe_routing",
    "moe_gate_up",
    "moe_down",
    "moe_combine",
    "gate_up",
    "down",
    "activation",
    "quantize",
    "communication",
    "copy",
    "embedding",
    "lm_head",
    "sampler",
    "other",
]
ROLES: tuple[Role, ...] = get_args(Role)

Category: TypeAlias = Literal["kernel", "gpu_memcpy", "gpu_memset"]
Vendor: TypeAlias = Literal["cuda", "rocm"]
Launch: TypeAlias = Literal["graph", "piecewise", "eager"]
Phase: TypeAlias = Literal["decode", "prefill", "mixed", "dummy"]
Section: TypeAlias = Literal["prologue", "block", "epilogue", "outside"]
Engine: TypeAlias = Literal["vllm", "vllm_detailed", "vllm_old", "vllm_python", "sglang", "profiler_step", "none"]
Dim: TypeAlias = tuple[int, int, int]

PIECE_BREAKING_ROLES: frozenset[Role] = frozenset({"kv_write", "attention"})


@dataclass(frozen=True)
class KernelSpec:
    """One device event of a step: a kernel, a copy or a memset.

    `stream` 0 is the main path; n > 0 is the n-th side stream, forked where the kernel stands and joined at
    the end of its block. `grid` counts thread blocks, `block` threads. `jitter` is the relative half width of
    the duration's spread (None: the trace's). `in_graph` False keeps a prologue or epilogue kernel out of a
    full graph. `breaks_piece` (None: by role) puts a block's kernel between two graph pieces.
    """

    name: str
    role: Role
    dur_us: float
    stream: int = 0
    grid: Dim | None = None
    block: Dim | None = None
    jitter: float | None = None
    category: Category = "kernel"
    in_graph: bool = True
    breaks_piece: bool | None = None
    bytes: int = 0
    op: str | None = None
    dims: tuple[tuple[int, ...], ...] | None = None

    @property
    def launched_between_pieces(self) -> bool:
        """Whether a piecewise graph ends before this kernel and starts anew after it."""
        return self.role in PIECE_BREAKING_ROLES if self.breaks_piece is None else self.breaks_piece


@dataclass(frozen=True)
class BlockSpec:
    """A transformer block: its kernels in launch order, the input norm first. `kind` says what sets it apart."""

    kind: str
    kernels: tuple[KernelSpec, ...]


@dataclass(frozen=True)
class ModelSpec:
    """A model's forward pass: prologue, one `BlockSpec` a layer, epilogue; optionally a draft model's passes.

    `first_block_names` maps a name to that of its first kernel in block 0: the input norm has no residual to add yet,
    the norms behind it have. `first_block_lacks` names kernels that block 0 does not run.
    """

    name: str
    layers: tuple[BlockSpec, ...]
    prologue: tuple[KernelSpec, ...] = ()
    epilogue: tuple[KernelSpec, ...] = ()
    first_block_names: tuple[tuple[str, str], ...] = ()
    first_block_lacks: frozenset[str] = frozenset()
    class_name: str = "Llama"
    draft: ModelSpec | None = None
    draft_passes: int = 1


@dataclass(frozen=True)
class StepSpec:
    """One engine step. Token counts are query tokens; `kv_tokens` are the keys attended to, past ones included.

    `model` and `launch` replace the trace's own for this step (a prefill runs other kernels, eagerly).
    A step without requests is a dummy step; `runs` False makes it launch nothing.
    """

    context_requests: int = 0
    context_tokens: int = 0
    generation_requests: int = 0
    generation_tokens: int | None = None
    context_kv_tokens: int | None = None
    generation_kv_tokens: int | None = None
    model: ModelSpec | None = None
    launch: Launch | None = None
    runs: bool = True

    @property
    def phase(self) -> Phase:
        """What the requests of the step are at."""
        if self.context_requests and self.generation_requests:
            return "mixed"
        if self.context_requests:
            return "prefill"
        return "decode" if self.generation_requests else "dummy"

    @property
    def requests(self) -> int:
        """Requests in the step, prompts and decodes together."""
        return self.context_requests + self.generation_requests

    @property
    def decode_tokens(self) -> int:
        """Query tokens of the decoding requests: one each unless told otherwise."""
        return self.generation_requests if self.generation_tokens is None else self.generation_tokens

    @property
    def tokens(self) -> int:
        """Query tokens of the step, prompts and decodes together."""
        return self.context_tokens + self.decode_tokens


def decode_steps(count: int, *, batch: int = 1, kv_tokens: int = 1024) -> tuple[StepSpec, ...]:
    """`count` decode steps of `batch` requests, each request one token further than in the step before.

    `kv_tokens` is a request's context length in the first step.
    """
    return tuple(
        StepSpec(generation_requests=batch, generation_kv_tokens=batch * (kv_tokens + i)) for i in range(count)
    )


@dataclass(frozen=True)
class DeviceSpec:
    """A GPU as `deviceProperties` shows it. Memory in bytes."""

    name: str
    total_global_mem: int
    compute_major: int
    compute_minor: int
    num_sms: int
    warp_size: int = 32
    max_threads_per_multiprocessor: int = 2048
    regs_per_block: int = 65536
    shared_mem_per_block: int = 49152
    shared_mem_per_multiprocessor: int = 233472
    shared_mem_per_block_optin: int = 232448


@dataclass(frozen=True)
class ForeignKernel:
    """A kernel of somebody else's stream (a copy engine, an encoder) that runs while block `block` of step does.

    It is launched in the step's window, but belongs to no section of it: its truth is `outside`.
    """

    step: int
    block: int
    kernel: KernelSpec
    stream: int = 30


@dataclass(frozen=True)
class DroppedKernel:
    """A kernel that ran but that the profiler lost. `kernel` counts within the block and is never its first."""

    step: int
    block: int
    kernel: int


@dataclass(frozen=True)
class Hole:
    """An idle stretch of the GPU before kernel `kernel` of block `block`, all launches notwithstanding."""

    step: int
    block: int
    kernel: int
    dur_us: float = 300.0


@dataclass(frozen=True)
class TraceSpec:
    """A whole profile of one rank on one device.

    gpu_lag_us: how far the GPU runs behind its launches; > 0 lets the host run ahead, through later markers.
    leading_kernels: device events of an earlier step at the start, whose launch came before the profile.
    cut_last_step: device events kept of the last step, whose launches are all there (None: all of them).
    hop_streams: number of streams the main path takes turns on inside a graph, block by block.
    microbatches: 2 runs every layer twice, on two streams at once (dual-batch overlap).
    overlap_us: how far a kernel may start before its predecessor on the stream ends.
    idle_calls: `execute_model` frames that launch nothing, for the engine `vllm_python`.
    """

    model: ModelSpec
    steps: tuple[StepSpec, ...]
    engine: Engine = "vllm"
    launch: Launch = "graph"
    vendor: Vendor = "cuda"
    device: DeviceSpec | None = None
    device_id: int = 0
    rank: int = 0
    world_size: int = 1
    main_stream: int | None = None
    side_stream_base: int = 20
    hop_streams: int = 1
    microbatches: int = 1
    jitter: float = 0.0
    gap_us: float = 0.0
    overlap_us: float = 0.0
    gpu_lag_us: float = 0.0
    leading_kernels: int = 0
    cut_last_step: int | None = None
    dropped: tuple[DroppedKernel, ...] = ()
    foreign: tuple[ForeignKernel, ...] = ()
    holes: tuple[Hole, ...] = ()
    with_stack: bool = False
    module_events: bool = False
    record_shapes: bool = True
    gpu_annotations: bool | None = None
    thread_names: bool = True
    shuffled: bool = True
    idle_calls: int = 0
    runner_line: int = 3380
    first_correlation: int = 505101
    start_us: int = 6_520_618_853_487
    base_time_ns: int = 1_767_189_312_000_000_000
    pid: int = 851
    metadata: tuple[tuple[str, object], ...] = field(default=())
