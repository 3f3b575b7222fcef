"""Does it fit: weights and KV cache on each GPU of a layout, and how many sequences the cache holds."""

from __future__ import annotations

import math

from traceanalyzer.commands.estimate.deployment import UTILISATION, Deployment
from traceanalyzer.commands.estimate.efficiencies import EstimateError
from traceanalyzer.commands.estimate.result import EstimateMemory
from traceanalyzer.hardware import Gpu
from traceanalyzer.model import Architecture, Parallel, kv_bytes, state_bytes
from traceanalyzer.model.architecture import SOFTMAX_ATTENTION
from traceanalyzer.model.model_step import stage_layers
from traceanalyzer.model.parameters import Tensor, tensors

WORKSPACE_BYTES = 1.5e9
"""Memory for activations, CUDA graphs and the runtime; chosen, not fitted."""

DEGREES = (1, 2, 4, 8, 16, 32, 64)
"""Tensor-parallel degrees to suggest."""


def memory(deployment: Deployment, context: int, utilisation: float = UTILISATION, batch: int = 1) -> EstimateMemory:
    """Return the memory of the fullest GPU when every sequence has its full length.

    Args:
        deployment: the model on its GPUs.
        context: tokens of prompt and answer together.
        utilisation: share of the GPU's memory that the engine may use.
        batch: sequences that are to fit.
    """
    if not 0 < utilisation <= 1:
        raise EstimateError(f"the share of GPU memory to use must be above 0 and at most 1, not {utilisation}")
    gpu, architecture, parallel = deployment.gpu, deployment.architecture, deployment.parallel
    usable = None if gpu.memory_gb is None else gpu.memory_gb * 1e9 * utilisation
    weights = weight_bytes(architecture, parallel)
    each = kv_a_sequence(architecture, parallel, context)
    held = fits = None
    if usable is not None and weights is not None:
        room = usable - weights - WORKSPACE_BYTES
        fits = weights + WORKSPACE_BYTES < usable
        held = max(math.floor(room / each), 0) * parallel.dp if each else None
    return EstimateMemory(
        usable_bytes=usable,
        weight_bytes=weights,
        workspace_bytes=WORKSPACE_BYTES,
        kv_bytes_a_sequence=each,
        sequences=held,
        weights_fit=fits,
        batch_fits=None if held is None else held >= batch,
    )


def weight_bytes(architecture: Architecture, parallel: Parallel) -> float | None:
    """Return the bytes of weights on the fullest GPU of a layout; None where a part of the model is unknown.

    Tensor parallelism splits every matrix, keys and values by heads only; every rank holds norms, routers and MLA's
    projections to the latents. Expert parallelism spreads whole experts; data-parallel copies repeat everything else.
    Each pipeline stage holds its layers, the first also the embedding, the last lm_head.
    """
    stages = [stage_layers(len(architecture.layers), parallel.pp, stage) for stage in range(parallel.pp)]
    held = [0.0] * parallel.pp
    for tensor in tensors(architecture):
        if tensor.count is None:
            return None
        if tensor.layer is None:
            first = tensor.part == "embedding"
            places = [0 if first else parallel.pp - 1]
            if first and architecture.tied and parallel.pp > 1:
                places.append(parallel.pp - 1)
        else:
            places = [next(stage for stage, layers in enumerate(stages) if tensor.layer in layers)]
        size = tensor.count * tensor.format.bytes / _split_over(tensor, parallel)
        for place in places:
            held[place] += size
    return max(held)


def _split_over(tensor: Tensor, parallel: Parallel) -> int:
    if tensor.part == "experts" and parallel.ep > 1:
        return parallel.ep
    return min(parallel.tp, tensor.parts or parallel.tp)


def kv_a_sequence(architecture: Architecture, parallel: Parallel, context: int) -> float:
    """Return the cache in bytes of one sequence of this length on the fullest GPU.

    KV heads are replicated where there are fewer than GPUs; MLA's latents are on every tensor-parallel GPU in full.
    """
    heads = architecture.kv_heads
    latent = any(layer.attention == "mla" for layer in architecture.layers)
    on_gpu = math.ceil(heads / parallel.tp) / heads if heads and not latent else 1.0
    keeping = [layer.attention in SOFTMAX_ATTENTION for layer in architecture.layers]
    whole = sum(keeping)
    largest = max(
        sum(keeping[layer] for layer in stage_layers(len(keeping), parallel.pp, stage)) for stage in range(parallel.pp)
    )
    share = largest / whole if whole else 0.0
    state = (state_bytes(architecture) or 0.0) / parallel.tp / parallel.pp
    return kv_bytes(architecture, context) * on_gpu * share + state


def fewest_gpus(architecture: Architecture, gpu: Gpu, utilisation: float = UTILISATION) -> int | None:
    """Return the smallest tensor-parallel degree at which the weights fit; None if 64 is not enough."""
    if gpu.memory_gb is None:
        return None
    for tp in DEGREES:
        if architecture.heads % tp:
            return None
        weights = weight_bytes(architecture, Parallel(tp=tp))
        if weights is not None and weights + WORKSPACE_BYTES < gpu.memory_gb * 1e9 * utilisation:
            return tp
    return None


def refuse_unfit(deployment: Deployment, utilisation: float = UTILISATION) -> None:
    """Raise EstimateError for a layout that cannot hold the weights: sizes, and how many GPUs would be enough."""
    fit = memory(deployment, 1, utilisation)
    if fit.weights_fit is not False:
        return
    gpu, parallel = deployment.gpu, deployment.parallel
    weights, usable = fit.weight_bytes or 0.0, fit.usable_bytes or 0.0
    enough = fewest_gpus(deployment.architecture, gpu, utilisation)
    many = f"; tp = {enough} is the smallest that fits" if enough and enough > parallel.gpus else ""
    count = f"{parallel.gpus} x " if parallel.gpus > 1 else "one "
    raise EstimateError(
        f"{deployment.architecture.name} does not fit on {count}{gpu.name} ({layout_name(parallel)}): "
        f"{weights / 1e9:.1f} GB of weights and {WORKSPACE_BYTES / 1e9:g} GB of workspace per GPU, "
        f"{usable / 1e9:.1f} GB usable ({utilisation:.0%} of {gpu.memory_gb:g} GB){many}"
    )


def layout_name(parallel: Parallel) -> str:
    """Return a layout as people write it, such as ``tp=4`` or ``tp=2+pp=2``; ``ep`` implies data-parallel copies."""
    parts = [f"{degree}={value}" for degree, value in (("tp", parallel.tp), ("pp", parallel.pp)) if value > 1]
    if parallel.ep > 1:
        parts.append(f"ep={parallel.ep}")
    elif parallel.dp > 1:
        parts.append(f"dp={parallel.dp}")
    return "+".join(parts) or "tp=1"


def gigabytes(size: float | None) -> str:
    """Return a size for people, in GB or MB."""
    return "unknown" if size is None else f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"
