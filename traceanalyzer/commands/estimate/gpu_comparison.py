"""A second GPU: ratios of two estimates, and the shortcut by Amdahl's law on the compute-bound share of the time.

Source of the shortcut: "LLM inference performance modelling" (Fujitsu Research), which takes Llama-2-70B from MI300X to
MI300A.
"""

from __future__ import annotations

from dataclasses import replace

from traceanalyzer.commands.estimate.compute import DeploymentEstimate
from traceanalyzer.commands.estimate.deployment import Deployment
from traceanalyzer.commands.estimate.efficiencies import EstimateError, default_link, peak_tflops
from traceanalyzer.commands.estimate.result import GpuRatios, Shortcut
from traceanalyzer.hardware import Gpu

ARTICLE_BATCH, ARTICLE_SLIP, ARTICLE_TOKENS = 768, 786, 2520.0
"""The article's batch, the number that its last step divides by instead, and its tokens/s on the first GPU."""


def on_gpu(deployment: Deployment, gpu: Gpu) -> Deployment:
    """Return the deployment on another GPU, whose kernels reach the same shares of the peaks."""
    note = f"kernels reach the same shares of the peaks on {gpu.name} as on {deployment.gpu.name}"
    efficiencies = replace(deployment.efficiencies, basis=(note, *deployment.efficiencies.basis))
    return replace(deployment, gpu=gpu, efficiencies=efficiencies, link=default_link(gpu) or deployment.link)


def ratios(first: DeploymentEstimate, second: DeploymentEstimate) -> GpuRatios:
    """Return the second GPU's times and tokens/s over those of the first."""
    a, b = first.served, second.served
    return GpuRatios(
        decode_step=second.step_ns / first.step_ns,
        prefill=second.prefill_ns / first.prefill_ns,
        ttft=b.ttft_ns / a.ttft_ns,
        tpot=b.tpot_ns / a.tpot_ns if a.tpot_ns and b.tpot_ns else None,
        tokens_per_s=b.tokens_per_s / a.tokens_per_s,
    )


def peak_ratios(first: DeploymentEstimate, other: Gpu) -> tuple[float, float]:
    """Return the second GPU's peaks of arithmetic and bandwidth over those of the first.

    Arithmetic is that of the data type in which most of the decode step's FLOP are computed.
    """
    work: dict[str, float] = {}
    for entry in first.decode:
        work[entry.op.dtype] = work.get(entry.op.dtype, 0.0) + entry.count * (entry.op.flops or 0.0)
    dtype = max(work, key=lambda name: work[name])
    own = first.deployment.gpu
    compute = (peak_tflops(other, dtype) or 1.0) / (peak_tflops(own, dtype) or 1.0)
    return compute, other.bandwidth_gbps / own.bandwidth_gbps


def amdahl(share: float, compute_ratio: float, bandwidth_ratio: float = 1.0) -> float:
    """Return the factor by which time grows: share / compute ratio + (1 - share) / bandwidth ratio."""
    if not 0 <= share <= 1:
        raise EstimateError(f"a share is 0 to 1, not {share:g}")
    return share / compute_ratio + (1 - share) / bandwidth_ratio


def shortcut(
    *,
    compute_ratio: float,
    bandwidth_ratio: float,
    decode_share: float,
    prefill_share: float,
    batch: int,
    tokens_per_s: float,
) -> Shortcut:
    """Carry a batch and its output over to another GPU by Amdahl's law; arguments are fields of ``Shortcut``."""
    decode = amdahl(decode_share, compute_ratio, bandwidth_ratio)
    kept = max(round(batch / decode), 1)
    tokens = tokens_per_s * kept / batch
    notes = ["assumes that time is proportional to the batch"]
    # Ops change sides: the slower of two roofs then costs more than the law says, or the faster one gains less.
    if compute_ratio != bandwidth_ratio:
        notes.append("a lower bound of the time: ops that change between memory-bound and compute-bound cost more")
    notes.append(f"{tokens_per_s:,.0f} x {kept} / {batch} = {tokens:,.0f} tokens/s")
    if (batch, tokens_per_s, kept) == (ARTICLE_BATCH, ARTICLE_TOKENS, 623):
        printed = tokens_per_s * kept / ARTICLE_SLIP
        slip = f"it divides by {ARTICLE_SLIP}, a slip for {ARTICLE_BATCH}"
        notes.append(f"the article prints {printed:,.0f} tokens/s: {slip}")
    return Shortcut(
        compute_ratio=compute_ratio,
        bandwidth_ratio=bandwidth_ratio,
        decode_share=decode_share,
        prefill_share=prefill_share,
        decode_factor=decode,
        prefill_factor=amdahl(prefill_share, compute_ratio, bandwidth_ratio),
        batch=batch,
        batch_kept=kept,
        tokens_per_s=tokens_per_s,
        tokens_per_s_kept=tokens,
        notes=notes,
    )
