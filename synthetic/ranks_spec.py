"""What a synthetic job of many ranks is to contain: its layout, and who is late, slow or without work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from synthetic.spec import Role

Naming: TypeAlias = Literal["vllm", "rank", "sglang"]
CollectiveKind: TypeAlias = Literal["all_reduce", "send_recv", "dispatch", "combine"]

TRANSFER_US: dict[CollectiveKind, float] = {"all_reduce": 8.0, "send_recv": 6.0, "dispatch": 12.0, "combine": 14.0}


@dataclass(frozen=True)
class Straggler:
    """A rank that is slow at one kind of work.

    Attributes:
        rank: which.
        role: kernels of this role are late or slow.
        extra_us: added to each.
        every: only in every n-th step, from step 0.
        idle: the time passes before the kernel instead of in it, as when the host launches late.
    """

    rank: int
    role: Role
    extra_us: float
    every: int = 1
    idle: bool = False


@dataclass(frozen=True)
class JobSpec:
    """A job of dp x pp x tp ranks, numbered as vLLM does (tp fastest, then pp, then dp).

    Attributes:
        layers: transformer blocks, split over the stages; the first stages take what is left over.
        expert_parallel: MoE blocks whose experts are spread over the dp x tp ranks of a stage.
        batch: requests of a data-parallel rank.
        steps: decode steps.
        in_flight: steps that a pipeline works on at once.
        transfer_us: time of a collective once all ranks are there.
        transfer_jitter: relative half width of its spread from call to call.
        stragglers: slow ranks.
        expert_load: by rank, factor on the time of its experts.
        dummies: (dp rank, step) pairs that run without requests.
        clock_error_ns: by rank, how far its clock is ahead.
        base_offset_ns: by rank, how much later its file's base time lies (its times are smaller by the same).
        first_step: by rank, the step that its recording begins with.
        absent: ranks whose traces are missing.
        naming: how files are named.
        states_groups: whether collectives carry their process group and size, as NCCL's eager calls do.
        jitter: relative half width of kernels' durations.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    layers: int = 4
    expert_parallel: bool = False
    batch: int = 8
    steps: int = 3
    in_flight: int = 1
    transfer_us: Mapping[CollectiveKind, float] = field(default_factory=dict)
    transfer_jitter: float = 0.0
    stragglers: tuple[Straggler, ...] = ()
    expert_load: Mapping[int, float] = field(default_factory=dict)
    dummies: tuple[tuple[int, int], ...] = ()
    clock_error_ns: Mapping[int, int] = field(default_factory=dict)
    base_offset_ns: Mapping[int, int] = field(default_factory=dict)
    first_step: Mapping[int, int] = field(default_factory=dict)
    absent: tuple[int, ...] = ()
    naming: Naming = "vllm"
    states_groups: bool = False
    jitter: float = 0.0

    @property
    def world_size(self) -> int:
        """Ranks of the job, absent ones included."""
        return self.dp * self.pp * self.tp

    def place(self, rank: int) -> dict[str, int]:
        """Position of a rank on dp, pp and tp."""
        return {"dp": rank // (self.tp * self.pp), "pp": rank // self.tp % self.pp, "tp": rank % self.tp}

    def rank_at(self, dp: int, pp: int, tp: int) -> int:
        """Rank at a position."""
        return (dp * self.pp + pp) * self.tp + tp

    def layers_of(self, stage: int) -> int:
        """Blocks of a stage."""
        return self.layers // self.pp + (stage < self.layers % self.pp)

    def transfer(self, kind: CollectiveKind) -> float:
        """Transfer time of a kind of collective, µs."""
        return self.transfer_us.get(kind, TRANSFER_US[kind])

    def group(self, kind: CollectiveKind, rank: int) -> tuple[int, ...]:
        """Ranks that share a rank's collectives of a kind (not for point-to-point transfers)."""
        place = self.place(rank)
        if kind == "all_reduce":
            return tuple(self.rank_at(place["dp"], place["pp"], tp) for tp in range(self.tp))
        return tuple(sorted(self.rank_at(dp, place["pp"], tp) for dp in range(self.dp) for tp in range(self.tp)))
