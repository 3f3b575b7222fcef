"""Signs of what a trace was recorded of: names of host events and of kernels that only one kind of work has.

A sign is a name. What the signs of a trace come to is decided in `recorded_work`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import polars as pl

from traceanalyzer import names
from traceanalyzer.segment.markers import read_marker
from traceanalyzer.trace import Trace

_LOOPS = ("profiler_step", "python")
"""Sources of markers that any program may have: all others are an engine's own."""

_HOST_SIGNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    # The names that PyTorch gives: autograd/engine.cpp, optim/optimizer.py (profile_hook_step), torchrec's pipeline.
    ("autograd", ("cpu_op",), r"^autograd::engine::|^torch::autograd::AccumulateGrad|Backward\d*$|_backward(_|$)"),
    ("optimizer", ("cpu_op", "user_annotation"), r"^Optimizer\.(step|zero_grad)#|^## (backward|optimizer) ##$"),
    ("engine", ("cpu_op",), r"^(vllm|sglang|sgl_kernel|_C_cache_ops|trtllm|tensorrt_llm)::"),
    ("engine", ("python_function",), r"(?:^|[/\\])(vllm|sglang|tensorrt_llm|lmdeploy|text_generation_server)[/\\]"),
    ("diffusion", ("user_annotation",), r"(?i)denois|diffusion|(^|[^a-z])(unet|vae)([^a-z]|$)|AutoencoderKL"),
    ("diffusion", ("python_function",), r"^nn\.Module: (UNet\d|Autoencoder|\w*Transformer[23]DModel|\w*DiT[A-Z_])"),
    ("diffusion", ("python_function",), r"(?:^|[/\\])diffusers[/\\]"),
    # Class names of Transformers and of engines that take them over: XDecoderLayer, XForCausalLM.
    ("decoder", ("python_function",), r"^nn\.Module: \w*(DecoderLayer|ForCausalLM|ForConditionalGeneration)"),
    ("generation", ("python_function",), r"(?:^|[/\\])transformers[/\\]generation[/\\]"),
    (
        "encoder",
        ("python_function",),
        r"^nn\.Module: \w*(EncoderLayer|Encoder|EncoderBlock|Pooler|PatchEmbed\w*|MaskedLM|MLMHead"
        r"|VisionTransformer|VisionModel|For\w*Classification|ForObjectDetection|ForMaskedLM|SentenceTransformer)_\d+$",
    ),
    # Detectors have decoders too, which generate nothing.
    (
        "detector",
        ("python_function",),
        r"^nn\.Module: \w*(Detr|Former\w*Seg|ForObjectDetection|ForUniversalSegm|MAE|Sam)",
    ),
)

_KERNEL_SIGNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (sign, re.compile(pattern))
    for sign, pattern in (
        # dgrad and bwd_data are left out: they also compute the transposed convolutions of a forward pass.
        (
            "backward",
            r"(?i)backward(?!_data)|(?<!igemm)_bwd(?!_data)|[a-z]Bwd(?!Data)|wgrad|igemm_wrw|cudnn::\w*bn_bw|grad_indice",
        ),
        (
            "update",
            r"(?i)(adam|adamw|sgd|adagrad|lamb|lion|lars|rmsprop|muon)_?(functor|kernel|math|_step|optim)|fused_?adam"
            r"|multi_tensor_(adam|sgd|lamb)",
        ),
        ("convolution", r"(?i)(?<!causal_)conv(?!ert|1d_(fn|update))|igemm_|winograd|scudnn|fprop|im2d?2?col"),
        ("group_norm", r"(?i)group_?norm|RowwiseMoments"),
        ("batch_norm", r"(?i)batch_?norm|bn_(fw|bw)_|bnfwd|bnbwd|MIOpenBatchNorm"),
        ("upsampling", r"(?i)upsample_nearest[23]d"),
        ("layer_norm", r"(?i)layer_?norm|ln_fwd|aten::(native_)?layer_norm"),
        ("rms_norm", r"(?i)rms_?norm|_rms\b|mean_(mul_)?pow|pow_(mean_)?.*rsqrt|rsqrt"),
        ("plain_gelu", r"(?i)gelu(?!.?and.?mul|glu)"),
        ("gated", r"(?i)silu|swiglu|geglu|gelu.?and.?mul|act_and_mul"),
        ("paged", r"(?i)paged|kv_?cache|kvcache"),
        # Template arguments of FlashAttention 2: traits, Is_dropout, Is_causal, Is_local; TensorRT-LLM's names say it.
        (
            "causal",
            r"flash_fwd\w*<[\w:]*lash_fwd\w*traits<[^>]*>\s*,\s*\w+\s*,\s*true|Causal(?!Mask.?No)|causal(?!_conv)",
        ),
        ("not_causal", r"flash_fwd\w*<[\w:]*lash_fwd\w*traits<[^>]*>\s*,\s*\w+\s*,\s*false\s*,\s*false"),
    )
)
_ATTENTION_OPS = r"^aten::(_scaled_dot_product_\w+|scaled_dot_product_attention)$"
_FLAG = {"aten::scaled_dot_product_attention": 5}
"""Where is_causal stands among an op's inputs (native_functions.yaml); the backends have it at 4 or 5."""


@dataclass(frozen=True)
class Sign:
    """What was seen of one sign.

    Attributes:
        count: events.
        ns: their durations; of kernels.
        name: one of their names.
    """

    count: int
    ns: int
    name: str


def host_signs(trace: Trace) -> dict[str, Sign]:
    """Return the signs among host events, by name of the sign; each distinct name is read once.

    Where an engine's markers settle what it is, nothing more is read: frames are most of a trace with stacks.
    """
    signs: dict[str, Sign] = {}
    marks = _distinct_names(trace, ("user_annotation",))
    engines = [
        marker is not None and marker.source not in _LOOPS for marker in map(read_marker, marks["name"].to_list())
    ]
    _add(signs, "marker", marks.filter(pl.Series(engines, dtype=pl.Boolean)))
    if "marker" in signs:
        return signs
    distinct = pl.concat([marks, _distinct_names(trace, ("cpu_op", "python_function"))])
    for sign, categories, pattern in _HOST_SIGNS:
        hits = distinct.filter(pl.col("cat").is_in(categories), pl.col("name").str.contains(pattern))
        _add(signs, sign, hits)
    if any(key.startswith("vllm") for key in trace.metadata.properties):
        signs.setdefault("engine", Sign(1, 0, "vllm"))
    for sign, op in _attention_facts(trace, distinct):
        signs.setdefault(sign, Sign(1, 0, op))
    return signs


def _distinct_names(trace: Trace, categories: tuple[str, ...]) -> pl.DataFrame:
    """Distinct names of host events of some categories: cat, name, count, ns."""
    return (
        trace.events_of(*categories)
        .filter(pl.col("name").is_not_null())
        .group_by("cat", "name")
        .agg(count=pl.len(), ns=pl.col("dur_ns").sum())
        .with_columns(pl.col("cat", "name").cast(pl.String))
        .sort("cat", "name")
        .collect()
    )


def _add(signs: dict[str, Sign], sign: str, hits: pl.DataFrame) -> None:
    if hits.is_empty():
        return
    before = signs.get(sign, Sign(0, 0, hits["name"][0]))
    signs[sign] = Sign(before.count + int(hits["count"].sum()), before.ns + int(hits["ns"].sum()), before.name)


def _attention_facts(trace: Trace, distinct: pl.DataFrame) -> list[tuple[str, str]]:
    """What the inputs of attention operators say: causal, not_causal, cached (one query for many keys)."""
    ops = distinct.filter(pl.col("cat") == "cpu_op", pl.col("name").str.contains(_ATTENTION_OPS))["name"].to_list()
    if not ops:
        return []
    calls = (
        trace.events_of("cpu_op")
        .filter(pl.col("name").cast(pl.String).is_in(ops))
        .select(pl.col("name", "input_dims", "concrete_inputs").cast(pl.String))
        .unique(maintain_order=True)
        .collect()
    )
    facts = []
    for op, dims, values in calls.iter_rows():
        query, key = _shapes(dims)
        if query is not None and key is not None and len(query) == len(key) == 4 and query[2] == 1 < key[2]:
            facts.append(("cached", op))
        causal = _is_causal(op, values) if not _masked(dims) else None
        if causal is not None and query is not None and query[-2] > 1:
            facts.append(("causal" if causal else "not_causal", op))
    return facts


def _shapes(dims: str | None) -> tuple[list[int] | None, list[int] | None]:
    shapes = _listed(dims)
    first_two = [s for s in shapes[:2] if isinstance(s, list) and len(s) >= 2 and all(isinstance(n, int) for n in s)]
    return (first_two[0], first_two[1]) if len(first_two) == 2 else (None, None)


def _masked(dims: str | None) -> bool:
    """Whether a mask was passed, which may do what the flag would: the fourth input, where it has a shape."""
    shapes = _listed(dims)
    return len(shapes) > 3 and bool(shapes[3])


def _is_causal(op: str, values: str | None) -> bool | None:
    """The flag of an attention call; None where it was not recorded, or a mask may do what the flag would."""
    inputs = _listed(values)
    flags = [value for value in inputs if value in ("True", "False")]
    if op in _FLAG:
        return inputs[_FLAG[op]] == "True" if len(inputs) > _FLAG[op] else None
    return flags[0] == "True" if op.startswith("aten::_scaled_dot_product_flash") and flags else None


def _listed(text: str | None) -> list[object]:
    try:
        value = json.loads(text or "[]")
    except ValueError:
        return []
    return value if isinstance(value, list) else []


@dataclass(frozen=True)
class KernelSigns:
    """What the kernels of a trace (the compute ops of a CPU trace) show.

    Attributes:
        signs: by name of the sign.
        kinds: time and number of kernels by ``KernelName.kind``.
        count, ns: of all kernels.
    """

    signs: dict[str, Sign]
    kinds: dict[str, Sign]
    count: int
    ns: int

    def share(self, sign: str) -> float:
        """Share of the kernel time that a sign's kernels have."""
        return self.signs[sign].ns / self.ns if sign in self.signs and self.ns else 0.0


def kernel_signs(events: pl.DataFrame) -> KernelSigns:
    """Read the names of the kernels among ``Trace.device_events``, each distinct one once."""
    totals = (
        events.filter("is_kernel")
        .group_by("name")
        .agg(count=pl.len(), ns=pl.col("dur_ns").sum())
        .with_columns(pl.col("name").cast(pl.String))
        .sort("ns", "name", descending=[True, False])
    )
    signs: dict[str, Sign] = {}
    kinds: dict[str, Sign] = {}
    for name, count, ns in totals.iter_rows():
        kind = names.parse(name).kind
        own = [sign for sign, pattern in _KERNEL_SIGNS if pattern.search(name)]
        for table, key in ((kinds, kind), *((signs, sign) for sign in own)):
            before = table.get(key, Sign(0, 0, name))
            table[key] = Sign(before.count + count, before.ns + ns, before.name)
    return KernelSigns(signs, kinds, int(totals["count"].sum()), int(totals["ns"].sum()))
