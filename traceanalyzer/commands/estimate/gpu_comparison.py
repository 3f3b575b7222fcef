"""Another GPU by the article's shortcut: Amdahl's law on the share of the time that arithmetic bounds.

Source: "LLM inference performance modelling" (Fujitsu Research), which takes Llama-2-70B from MI300X to MI300A.
"""

from __future__ import annotations

from traceanalyzer.commands.estimate.estimate_error import EstimateError
from traceanalyzer.commands.estimate.result import Shortcut

ARTICLE_BATCH, ARTICLE_SLIP, ARTICLE_TOKENS = 768, 786, 2520.0
"""The article's batch, the number it divides by in its last step instead, and the tokens/s that it starts from."""


def amdahl(share: float, compute_ratio: float, bandwidth_ratio: float = 1.0) -> float:
    """Return by what factor time grows: share / compute ratio + (1 - share) / bandwidth ratio.

    Raises:
        EstimateError: a share outside of 0 to 1.
    """
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
    tokens_per_s: float | None,
) -> Shortcut:
    """Carry a batch and its output over to another GPU by Amdahl's law.

    Args:
        compute_ratio: arithmetic of the second GPU over that of the first.
        bandwidth_ratio: the same of memory bandwidth.
        decode_share: compute-bound share of a decode step on the first GPU.
        prefill_share: compute-bound share of a prefill there.
        batch: batch on the first GPU.
        tokens_per_s: output there; None where unknown.
    """
    decode = amdahl(decode_share, compute_ratio, bandwidth_ratio)
    kept = max(round(batch / decode), 1)
    notes = ["time is taken as proportional to the batch", *_direction(compute_ratio, bandwidth_ratio)]
    tokens = None
    if tokens_per_s is not None:
        tokens = tokens_per_s * kept / batch
        notes.append(f"{tokens_per_s:,.0f} x {kept} / {batch} = {tokens:,.0f} tokens/s")
        if (batch, tokens_per_s, kept) == (ARTICLE_BATCH, ARTICLE_TOKENS, 623):
            printed = tokens_per_s * kept / ARTICLE_SLIP
            notes.append(
                f"the article prints {printed:,.0f} tokens/s: it divides by {ARTICLE_SLIP}, a slip for {ARTICLE_BATCH}"
            )
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


def _direction(compute_ratio: float, bandwidth_ratio: float) -> list[str]:
    """Ops may change sides: the slower of two roofs then costs more than the law says, or the faster one gains less."""
    if compute_ratio == bandwidth_ratio:
        return []
    return ["a lower bound of the time: ops that change from memory-bound to compute-bound, or back, cost more"]
