"""Synthetic profiler traces of LLM servers, with ground truth by construction.

`generate(spec)` gives a `SyntheticTrace`: the document torch.profiler would have written, and the truth about
its steps, blocks and kernels. `models` has ready specifications, `random_model` random ones.
Needs nothing outside the standard library.
"""

from __future__ import annotations

from synthetic.generate import SyntheticTrace, encode, generate, write
from synthetic.spec import (
    ROLES,
    BlockSpec,
    DeviceSpec,
    DroppedKernel,
    ForeignKernel,
    Hole,
    KernelSpec,
    ModelSpec,
    StepSpec,
    TraceSpec,
    decode_steps,
)
from synthetic.truth import BlockTruth, DeviceEventTruth, SectionTruth, StepTruth, Truth

__all__ = [
    "ROLES",
    "BlockSpec",
    "BlockTruth",
    "DeviceEventTruth",
    "DeviceSpec",
    "DroppedKernel",
    "ForeignKernel",
    "Hole",
    "KernelSpec",
    "ModelSpec",
    "SectionTruth",
    "StepSpec",
    "StepTruth",
    "SyntheticTrace",
    "TraceSpec",
    "Truth",
    "decode_steps",
    "encode",
    "generate",
    "write",
]
