"""What a trace was recorded of: LLM serving, an encoder, diffusion, training, a graph capture, or something else.

Decided by evidence of its own kind, the strongest first: an engine's markers, autograd, a KV cache, names of modules.
What only the absence of a sign says (an encoder has no cache) comes last, and next to a sign against it says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import polars as pl

from traceanalyzer.names import short_name
from traceanalyzer.segment.steps import StepEvents
from traceanalyzer.segment.tokens import MIXER, IntArray, KernelVocabulary
from traceanalyzer.segment.work_signs import KernelSigns, Sign, host_signs, kernel_signs
from traceanalyzer.trace import Trace
from traceanalyzer.wording import percent, plural
from traceanalyzer.words import Phase, PhaseSource, WorkloadKind

_FEW_RAN = 0.1
"""Kernels per launch call below which a capture was recorded and not a run. Chosen, not fitted: a run has one or more
kernels per launch, a capture's launches start none."""
_LEAST_BACKWARD = 0.01
"""Share of the kernel time that backward kernels must have to be training without a word of autograd. Chosen, not
fitted: half of a training step or more is backward; a lone look-alike name in inference is far less."""
_MANY_CONVOLUTIONS = 8
"""Convolutions beyond those that cut an image or a sound into patches. Chosen, not fitted: encoders have few."""
_UNKNOWN_TIME = 0.5
"""Share of the kernel time in names not understood above which nothing is concluded from what is absent. Chosen."""

SENTENCES: dict[WorkloadKind, str] = {
    "llm_serving": "LLM serving: steps, phases, blocks, roles and advice apply.",
    "llm": "A language model outside a server: steps, phases, blocks, roles and advice apply.",
    "encoder": "An encoder: each pass is a forward pass without a KV cache. Blocks, roles and kernels hold; there is "
    "no prefill, decode or sampling, and nothing is per token.",
    "diffusion": "A diffusion model: kernels, idle time and transformer blocks hold; convolutions have no role, and "
    "there is no prefill, decode or sampling.",
    "training": "Training: kernels, idle time and communication hold. Forward and backward pass are not told apart: "
    "there are no blocks, and advice is for inference only.",
    "graph_capture": "This records a graph capture, not execution: pass it as --capture next to the trace of a run. "
    "Its own times say nothing about the model.",
    "other": "Nothing in this trace mixes tokens (no attention, no state-space scan): kernels and idle time hold; "
    "there is no transformer, and there are no phases.",
    "unknown": "What ran is unknown: nothing tells a language model from an encoder or a part of either. Kernels and "
    "idle time hold. An engine's step markers, or with_modules and record_shapes of the profiler, would tell.",
}
"""What can and cannot be said of each kind of work, one sentence or two."""

PHASES_OF: dict[WorkloadKind, Phase] = {
    "encoder": "forward",
    "diffusion": "forward",
    "training": "training",
    "graph_capture": "unknown",
    "other": "unknown",
}
"""The phase of steps that no marker names, by the workload. Of a language model, and of what is unknown, the steps
themselves tell."""
_PHASE_CERTAINTY = 0.9
"""Confidence in a phase that follows from the workload. Chosen, not fitted: right on all 12 public recordings."""

BLOCKLESS: tuple[WorkloadKind, ...] = ("training", "graph_capture")
"""Workloads whose steps are not cut into blocks: forward and backward pass mixed, a graph that never ran."""

EXPECTED: tuple[WorkloadKind, ...] = ("llm_serving", "llm")
"""What the toolkit is made for: nothing needs to be said of it."""


@dataclass(frozen=True)
class RecordedWork:
    """What a trace was recorded of.

    Attributes:
        kind: what it is.
        basis: what this rests on, in words; empty where nothing was seen.
    """

    kind: WorkloadKind = "unknown"
    basis: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """What can and cannot be said of it."""
        return SENTENCES[self.kind]


@dataclass(frozen=True)
class _Seen:
    """All signs of a trace.

    Attributes:
        host: signs of host events.
        kernels: signs of kernels.
        mixes: whether anything mixes tokens.
        captures, launches: begins of graph captures, and calls that launch a kernel.
    """

    host: dict[str, Sign]
    kernels: KernelSigns
    mixes: bool
    captures: int
    launches: int

    def any(self, *signs: str) -> bool:
        """Whether one of the signs was seen, on the host or among the kernels."""
        return any(sign in self.host or sign in self.kernels.signs for sign in signs)

    def told(self, text: str, *signs: str) -> tuple[str, ...]:
        """Words for what was seen, with an example and how often."""
        for sign in signs:
            own = self.host.get(sign) or self.kernels.signs.get(sign)
            if own is not None:
                return (f"{text}: {short_name(own.name, 60)} ({own.count:,})",)
        return (text,)


def read_workload(trace: Trace, tokens: IntArray, vocabulary: KernelVocabulary) -> RecordedWork:
    """Say what a trace was recorded of.

    Args:
        trace: the trace.
        tokens: token of each of its device events.
        vocabulary: what the tokens are; what mixes tokens is taken from it.
    """
    mixes = bool((vocabulary.classes[tokens] == MIXER).any()) if len(tokens) else False
    calls = trace.launches.select(pl.col("name").cast(pl.String))
    seen = _Seen(
        host_signs(trace),
        kernel_signs(trace.device_events),
        mixes,
        calls.filter(pl.col("name").str.contains("(?i)StreamBeginCapture")).height,
        calls.filter(pl.col("name").str.contains("(?i)Launch(Cooperative)?Kernel|LaunchKernel")).height,
    )
    for rule in (_captured, _marked, _trained, _diffused, _served, _generated, _encoded):
        workload = rule(seen)
        if workload is not None:
            return workload
    return _without_signs(seen)


def joint(workloads: Iterable[RecordedWork]) -> RecordedWork:
    """Return what several ranks' traces were recorded of: what most say, captures and unknowns beside others aside."""
    known = list(workloads)
    running = [one for one in known if one.kind not in ("graph_capture", "unknown")] or known
    kinds = [one.kind for one in running]
    return max(running, key=lambda one: kinds.count(one.kind), default=RecordedWork())


def with_phases(steps: list[StepEvents], workload: RecordedWork) -> list[StepEvents]:
    """Name the phase of steps whose marker does not: a pass of an encoder is no prefill, whatever it embeds."""
    phase = PHASES_OF.get(workload.kind)
    if phase is None:
        return steps
    known = phase != "unknown"
    source: PhaseSource | None = "inferred" if known else None
    certainty = _PHASE_CERTAINTY if known else None
    return [
        step
        if step.phase_source == "marker"
        else replace(step, phase=phase, phase_source=source, phase_confidence=certainty)
        for step in steps
    ]


def after_phases(workload: RecordedWork, steps: Iterable[StepEvents]) -> RecordedWork:
    """Return the workload now that phases are known: what decodes is a language model."""
    if workload.kind == "unknown" and any(step.phase == "decode" for step in steps):
        return RecordedWork("llm", ("steps that decode",))
    return workload


def _captured(seen: _Seen) -> RecordedWork | None:
    if not seen.captures or seen.kernels.count > _FEW_RAN * seen.launches:
        return None
    ran = f"{plural(seen.launches, 'launch call')}, of which {seen.kernels.count:,} ran"
    return RecordedWork("graph_capture", (f"{plural(seen.captures, 'stream capture')} with {ran}",))


def _marked(seen: _Seen) -> RecordedWork | None:
    return RecordedWork("llm_serving", seen.told("an engine's markers", "marker")) if "marker" in seen.host else None


def _trained(seen: _Seen) -> RecordedWork | None:
    if "autograd" in seen.host or "optimizer" in seen.host:
        return RecordedWork("training", seen.told("autograd on the host", "autograd", "optimizer"))
    share = seen.kernels.share("backward") + seen.kernels.share("update")
    if share < _LEAST_BACKWARD:
        return None
    return RecordedWork(
        "training", seen.told(f"backward kernels have {percent(share)} of the time", "backward", "update")
    )


def _caches(seen: _Seen) -> bool:
    """Whether a KV cache was seen: written, read in pages, or one query against many keys."""
    return "kv_write" in seen.kernels.kinds or seen.any("paged", "cached")


def _diffused(seen: _Seen) -> RecordedWork | None:
    if "kv_write" in seen.kernels.kinds:
        return None
    if "diffusion" in seen.host:
        return RecordedWork("diffusion", seen.told("names of a diffusion pipeline", "diffusion"))
    convolutions = seen.kernels.signs.get("convolution")
    if convolutions is None or convolutions.count < _MANY_CONVOLUTIONS or not seen.mixes or seen.any("batch_norm"):
        return None
    if _caches(seen) or not seen.any("group_norm", "upsampling"):
        return None
    return RecordedWork("diffusion", seen.told("attention next to convolutions with", "group_norm", "upsampling"))


def _served(seen: _Seen) -> RecordedWork | None:
    return RecordedWork("llm_serving", seen.told("an engine's own code", "engine")) if "engine" in seen.host else None


def _generated(seen: _Seen) -> RecordedWork | None:
    kinds = seen.kernels.kinds
    if _caches(seen):
        cache = seen.told("a KV cache", "paged", "cached")
        return RecordedWork("llm", cache if seen.any("paged", "cached") else ("a KV cache is written",))
    if ("decoder" in seen.host and "detector" not in seen.host) or "generation" in seen.host:
        return RecordedWork("llm", seen.told("modules of a decoder", "decoder", "generation"))
    if not seen.mixes:
        return None
    if "causal" in seen.host or "causal" in seen.kernels.signs:
        return RecordedWork("llm", seen.told("causal attention", "causal"))
    rotary = "rope" in kinds and not seen.any("encoder", "not_causal", "convolution")
    if rotary:
        return RecordedWork("llm", ("rotary embedding of queries and keys",))
    picks = "sampling" in kinds and "embedding" in kinds | seen.host.keys() and not seen.any("encoder", "not_causal")
    return RecordedWork("llm", ("tokens are sampled",)) if picks else None


def _encoded(seen: _Seen) -> RecordedWork | None:
    """An encoder: attention that nothing says is a decoder's, and a sign of its own."""
    if not seen.mixes:
        return None
    if "encoder" in seen.host:
        return RecordedWork("encoder", seen.told("modules of an encoder", "encoder"))
    # RMSNorm and gated activations are what decoders have; attention without a mask among them is a part on its own.
    if seen.any("gated", "rms_norm"):
        return None
    layers = "layer_norm" in seen.kernels.signs and "plain_gelu" in seen.kernels.signs
    if not layers and not seen.any("not_causal", "convolution"):
        return None
    signs = [text for sign, text in _ENCODER_WORDS if seen.any(sign)]
    return RecordedWork("encoder", (f"attention without a cache, causal mask or sampling; {', '.join(signs)}",))


_ENCODER_WORDS = (
    ("not_causal", "no causal mask"),
    ("convolution", "a convolution into patches"),
    ("layer_norm", "layer norms"),
    ("plain_gelu", "GELU"),
)


def _without_signs(seen: _Seen) -> RecordedWork:
    """Other where all is understood and nothing mixes tokens; else unknown."""
    kernels = seen.kernels
    unknown = kernels.kinds["unknown"].ns if "unknown" in kernels.kinds else 0
    if seen.mixes or not kernels.ns or unknown > _UNKNOWN_TIME * kernels.ns:
        return RecordedWork()
    largest = max(kernels.kinds.values(), key=lambda own: own.ns)
    return RecordedWork("other", (f"nothing mixes tokens; most time is in {short_name(largest.name, 60)}",))
