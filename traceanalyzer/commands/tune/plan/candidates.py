"""Kernels as candidates for tuning: what each takes, what its floor is, and why one cannot be tuned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import polars as pl

from traceanalyzer.names import KernelName, parse
from traceanalyzer.roofline import Roofline
from traceanalyzer.roofline.rows import REDUNDANT_PARTS, strict_sum

LEAST_WORTH = 0.01
"""A saving below this share of the step (with the pause before it) does not pay: run-to-run noise hides it.
Chosen, not fitted."""


@dataclass(frozen=True)
class Product:
    """A matrix product on one rank.

    Attributes:
        m: every number of rows seen, smallest first; in a mixture of experts tokens x top-k.
        common_m: the one that most kernels have.
        n, k: columns and inner size, as the model has them.
        experts: on this rank; None for a dense product.
        top_k: experts per token; None likewise.
        distinct: number of rows -> experts on this rank that are expected to get a token.
    """

    m: tuple[int, ...]
    common_m: int
    n: int
    k: int
    experts: int | None
    top_k: int | None
    distinct: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class PlanCandidate:
    """Kernels of one name, role and shape. Times are means per step, in ns.

    Attributes:
        kernel: what the name says.
        role, part: what they do; several roles where one configuration serves all of them.
        roles: all of them, the first is ``role``.
        count: kernels.
        measured_ns: their time.
        floor_ns: shortest time that the peak roofs allow; None where unknown.
        worth_ns: time above floor and launch latency: what a better tile can save at most; None where unknown.
        reachable_ns: the same above the achievable roofs.
        bound: as the roofline has it.
        plausible: false where the kernels are faster than their floor.
        product: what they multiply; None where unknown.
        why_unknown: why ``worth_ns`` or ``product`` is unknown.
        reason: why it is not to be tuned; None where it is.
    """

    kernel: KernelName
    role: str
    part: str
    roles: tuple[str, ...]
    count: float
    measured_ns: float
    floor_ns: float | None
    worth_ns: float | None
    reachable_ns: float | None
    bound: str
    plausible: bool
    product: Product | None
    why_unknown: str
    reason: str | None = None

    @property
    def redundant(self) -> bool:
        """Whether the work need not be done at all."""
        return self.part in REDUNDANT_PARTS


def ranked_kernels(roof: Roofline, kernels: pl.DataFrame) -> list[PlanCandidate]:
    """Return a roofline's kernels, with PRODUCT, as candidates: the largest saving first, unknown ones last."""
    steps = max(roof.steps, 1)
    groups = kernels.group_by("name", "role", "part", "n", "k", "experts", "top_k", maintain_order=True).agg(
        count=pl.len() / steps,
        measured=pl.col("dur_ns").sum() / steps,
        floor=strict_sum("floor_ns", steps),
        worth=strict_sum("headroom_ns", steps),
        reachable=strict_sum("reachable_ns", steps),
        bound=pl.col("bound").first(),
        plausible=pl.col("plausible").all(),
        seen=pl.struct("m", "distinct"),
    )
    reasons = {(row.role, row.part): row.basis[-1] for row in roof.rows if row.bound == "unknown" and row.basis}
    made = [
        PlanCandidate(
            kernel=parse(row["name"]),
            role=row["role"] or "other",
            part=row["part"] or "",
            roles=(row["role"] or "other",),
            count=row["count"],
            measured_ns=row["measured"],
            floor_ns=row["floor"],
            worth_ns=row["worth"],
            reachable_ns=_above(row["measured"], row["reachable"], row["count"] * roof.latency.ns),
            bound=row["bound"],
            plausible=row["plausible"],
            product=_product(row),
            why_unknown=reasons.get((row["role"] or "other", row["part"] or ""), "its shape is unknown"),
        )
        for row in groups.iter_rows(named=True)
    ]
    ranked = sorted(_with_shared_configurations(made), key=_order)
    return [replace(one, reason=refuse(one, roof.period_ns)) for one in ranked]


def _above(measured: float, reachable: float | None, latency: float) -> float | None:
    return None if reachable is None else max(measured - max(reachable, latency), 0.0)


def _order(candidate: PlanCandidate) -> tuple[bool, float, float, str]:
    worth = candidate.worth_ns
    return worth is None, -(worth or 0.0), -candidate.measured_ns, candidate.kernel.name


def _product(row: dict[str, object]) -> Product | None:
    n, k, seen = row["n"], row["k"], row["seen"]
    if not isinstance(n, int) or not isinstance(k, int) or not isinstance(seen, list):
        return None
    rows = [one["m"] for one in seen if one["m"]]
    if not rows:
        return None
    experts, top_k = row["experts"], row["top_k"]
    return Product(
        m=tuple(sorted(set(rows))),
        common_m=max(sorted(set(rows)), key=rows.count),
        n=n,
        k=k,
        experts=experts if isinstance(experts, int) else None,
        top_k=top_k if isinstance(top_k, int) else None,
        distinct=tuple(sorted({one["m"]: one["distinct"] for one in seen if one["distinct"] is not None}.items())),
    )


def _with_shared_configurations(roof: Sequence[PlanCandidate]) -> list[PlanCandidate]:
    """Merge the products of a fused_moe kernel of the same experts: one configuration serves gate_up and down."""
    merged: dict[tuple[object, ...], PlanCandidate] = {}
    for one in sorted(roof, key=lambda candidate: candidate.role != "moe_gate_up"):
        shared = is_fused_moe(one.kernel) and one.role in ("moe_gate_up", "moe_down")
        experts = one.product.experts if one.product else None
        key: tuple[object, ...] = (one.kernel.name, experts) if shared else (id(one),)
        merged[key] = _joined(merged[key], one) if key in merged else one
    return list(merged.values())


def is_fused_moe(kernel: KernelName) -> bool:
    """Whether a kernel is vLLM's (or SGLang's) fused_moe, whose one configuration serves gate_up and down alike."""
    return kernel.scheme == "triton" and kernel.family == "moe_gemm"


def _joined(first: PlanCandidate, other: PlanCandidate) -> PlanCandidate:
    def both(a: float | None, b: float | None) -> float | None:
        return None if a is None or b is None else a + b

    return replace(
        first,
        roles=tuple(dict.fromkeys((*first.roles, *other.roles))),
        count=first.count + other.count,
        measured_ns=first.measured_ns + other.measured_ns,
        floor_ns=both(first.floor_ns, other.floor_ns),
        worth_ns=both(first.worth_ns, other.worth_ns),
        reachable_ns=both(first.reachable_ns, other.reachable_ns),
        plausible=first.plausible and other.plausible,
    )


def refuse(candidate: PlanCandidate, period_ns: float) -> str | None:
    """Return why a kernel is not to be tuned, or None; the period is the step with the pause before it."""
    if candidate.redundant:
        return "the work need not be done at all (the same in every block): remove it instead of tuning it"
    if candidate.bound == "communication":
        return "a collective has no tile; traceanalyzer ranks tells its transfer from waiting"
    if not candidate.kernel.retunable:
        return _closed(candidate.kernel)
    if not candidate.plausible:
        return "faster than its floor, which is impossible: model, GPU, layout or workload are not those that ran"
    if candidate.worth_ns is None:
        return f"what a faster kernel would save is unknown: {candidate.why_unknown}"
    return _too_little(candidate, period_ns)


def _too_little(candidate: PlanCandidate, period_ns: float) -> str | None:
    for worth, roof in ((candidate.worth_ns, "floor"), (candidate.reachable_ns, "achievable roof")):
        if worth is not None and worth < LEAST_WORTH * period_ns:
            share = worth / period_ns if period_ns else 0.0
            return (
                f"not worth tuning: at most {worth / 1000:,.1f} µs per step ({share * 100:.2f} %) above its {roof}, "
                f"less than {LEAST_WORTH * 100:g} %"
            )
    return None


def _closed(kernel: KernelName) -> str:
    whose = kernel.library or kernel.scheme
    if kernel.kind == "gemm":
        owner = f" ({whose})" if whose else ""
        return f"closed{owner}: {kernel.knob or 'no setting is known that changes its tile'}"
    if kernel.kind in ("attention", "ssm"):
        return f"no known way to change its tile: {kernel.knob or 'it is chosen in the code'}"
    return "not a matrix product, so there is no tile to choose; fuse or remove it instead"


def worth_listing(roof: Iterable[PlanCandidate], period_ns: float) -> list[PlanCandidate]:
    """Return those that look worth tuning: by what they could save, or as products that take long."""
    least = LEAST_WORTH * period_ns

    def listed(one: PlanCandidate) -> bool:
        if (one.worth_ns or 0.0) >= least:
            return True
        could_be = one.kernel.retunable or one.kernel.kind in ("gemm", "attention", "ssm")
        return could_be and one.measured_ns >= least

    return [one for one in roof if listed(one)]
