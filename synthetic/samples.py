"""The synthetic traces that are shipped, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from synthetic.models import gptoss_20b_decode
from synthetic.spec import TraceSpec


@dataclass(frozen=True)
class Sample:
    """A specification and the seed that its trace is generated with."""

    spec: Callable[[], TraceSpec]
    seed: int


def gptoss20b_decode() -> TraceSpec:
    """gpt-oss-20b on a Radeon 8060S, one request: eight whole decode steps between two that the profile cuts."""
    spec = gptoss_20b_decode("rocm", batch=1, steps=9, tile="32x256x128x1", kv=1100)
    return replace(
        spec,
        leading_kernels=130,
        cut_last_step=150,
        gpu_lag_us=2_000.0,
        metadata=(("vllm_version", "0.26.0"),),
    )


SAMPLES: Mapping[str, Sample] = MappingProxyType({"gptoss20b_decode_synthetic": Sample(gptoss20b_decode, seed=20)})
