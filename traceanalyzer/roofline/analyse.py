"""The whole analysis: a trace in, its roofline out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import polars as pl

from traceanalyzer.findings import DOUBTFUL_NAMES, NO_TARGET, Finding
from traceanalyzer.hardware import DeviceName, Gpu, recognise
from traceanalyzer.model import Architecture, ExpertRouting, ModelError, Workload
from traceanalyzer.model.model_step import stage_layers
from traceanalyzer.roofline.ceilings import Ceilings, Reached, default_ceilings, proven
from traceanalyzer.roofline.cross_checks import cross_checks, kind_checks, message_checks
from traceanalyzer.roofline.facts import execution_of, layout_of, trace_facts
from traceanalyzer.roofline.join import join_work, reachable, with_shape_work
from traceanalyzer.roofline.latency import latency_floor
from traceanalyzer.roofline.messages import with_messages
from traceanalyzer.roofline.model_work import layer_kinds, model_ops
from traceanalyzer.roofline.op_shapes import with_shapes
from traceanalyzer.roofline.reasons import reasons_of
from traceanalyzer.roofline.recognition import ModelChoice, choose_model
from traceanalyzer.roofline.redundancy import redundancies
from traceanalyzer.roofline.role_parts import with_parts, with_shared_gates
from traceanalyzer.roofline.roofline_findings import with_findings
from traceanalyzer.roofline.roofline_result import Latency, Roofline, RooflineError, Row
from traceanalyzer.roofline.rows import merge_kinds, rows_of, with_reachable, with_row_numbers
from traceanalyzer.roofline.scope import STEP, Scope, scope_of
from traceanalyzer.roofline.workloads import Stated, workloads_of
from traceanalyzer.segment import segment
from traceanalyzer.segment.opening import opening
from traceanalyzer.segment.passes import passes_in_words
from traceanalyzer.trace import Trace

_READ = ("op", "types", "concrete", "call", "external_id", "correlation", "extra", "graph")
"""Columns that are not read once a kernel's work is known; ``dims`` also tells how far an input is padded."""

CONTRADICTED = 0.05
"""An inferred model is dropped if this share of the time would be below its floor. Chosen, not fitted."""


@dataclass(frozen=True)
class Request:
    """What the user asks for and states; None leaves it to the trace.

    Attributes:
        model: the model.
        gpu: the GPU.
        captures: traces of graph captures, for shapes of graph-launched kernels.
        phase, step: which steps; see ``scope_of``.
        stated: requests, tokens and KV tokens per step.
        tp, pp, ep: parallel degrees.
        routing: how tokens spread over experts.
        every_phase: look at complete steps of every phase where neither phase nor step is given.
    """

    model: Architecture | None = None
    gpu: Gpu | None = None
    captures: tuple[Trace, ...] = ()
    phase: str | None = None
    step: int | None = None
    stated: Stated = field(default_factory=Stated)
    tp: int | None = None
    pp: int | None = None
    ep: int | None = None
    routing: ExpertRouting = field(default_factory=ExpertRouting)
    every_phase: bool = False


@dataclass(frozen=True, eq=False)
class _Subject:
    """What is known of a trace before a model is chosen."""

    trace: Trace
    request: Request
    scope: Scope
    kernels: pl.DataFrame
    device: DeviceName
    ceilings: Ceilings | None
    latency: Latency
    redundant: tuple[str, ...]
    notes: tuple[str, ...]


def roofline(trace: Trace, request: Request | None = None) -> Roofline:
    """Compare every kernel of a trace's steps with the roofs of its GPU.

    Shapes that the trace gives come first; for kernels without, the model's ops are joined by block and role.

    Args:
        trace: one rank's trace.
        request: what the user states; nothing by default.

    Raises:
        RooflineError: there are no such steps, or what is stated contradicts itself or the model.
    """
    asked = request or Request()
    subject = _subject(trace, asked)
    facts = trace_facts(subject.scope, subject.kernels, world_size=trace.metadata.world_size)
    choice = choose_model(asked.model, facts)
    result = _assess(subject, choice)
    if choice.source == "inferred":
        below = sum(row.measured_ns for row in result.rows if not row.plausible and row.source != "shapes")
        if below > CONTRADICTED * result.measured_ns:
            name = choice.model.name if choice.model else ""
            message = f"model: unknown; {name} would fit the kernels but not their times; pass --model"
            return _assess(subject, ModelChoice(None, None, message))
    return result


def _subject(trace: Trace, request: Request) -> _Subject:
    scope = scope_of(trace, request.phase, request.step, every_phase=request.every_phase)
    tokens = scope.steps.select(*STEP, "tokens")
    with_tokens = scope.kernels.join(tokens, on=list(STEP), how="left", nulls_equal=True, maintain_order="left")
    shaped, notes = with_shapes(trace, with_tokens, request.captures)
    device = _device(trace, scope, request.gpu)
    redundant = tuple(one.name for one in redundancies(trace))
    kernels = with_parts(
        with_messages(trace, with_shape_work(shaped)),
        redundant,
        own_rows=scope.kernels["block"].null_count() == scope.kernels.height,
    ).drop(_READ)
    return _Subject(
        trace=trace,
        request=request,
        scope=scope,
        kernels=kernels,
        device=device,
        ceilings=default_ceilings(device.gpu) if device.gpu and not trace.cpu_only else None,
        latency=latency_floor(scope.kernels),
        redundant=redundant,
        notes=tuple(notes),
    )


def _device(trace: Trace, scope: Scope, given: Gpu | None) -> DeviceName:
    if given is not None:
        return DeviceName(given.name, "option", given)
    devices = scope.steps["device"].drop_nulls().unique().to_list()
    named = {one.name: one for one in (recognise(trace.metadata.device_properties, device) for device in devices)}
    return named.popitem()[1] if len(named) == 1 else DeviceName(None, None, None)


@dataclass(frozen=True, eq=False)
class _Modelled:
    """A model's ops for the steps, and the kernels with the layer each belongs to."""

    kernels: pl.DataFrame
    ops: pl.DataFrame | None
    workloads: list[Workload | None]
    notes: list[str]
    findings: list[Finding]


def _assess(subject: _Subject, choice: ModelChoice) -> Roofline:
    modelled = _modelled(subject, choice.model)
    ceilings = subject.ceilings
    rows, kernels = _rows(subject, choice, modelled, ceilings)
    if ceilings is not None:
        raised = proven(ceilings, _reached(rows, kernels))
        if raised != ceilings:
            ceilings = raised
            kernels = reachable(kernels, modelled.ops, ceilings)
            rows = with_reachable(rows, kernels, max(subject.scope.steps.height, 1))
    kernels = _numbered(kernels, rows)
    ordered = tuple(sorted(rows, key=lambda row: (-row.measured_ns, row.role, row.kind or "", row.part)))
    steps = subject.scope.steps
    requests = [workload.sequences for workload in modelled.workloads if workload is not None]
    result = Roofline(
        rows=ordered,
        device=subject.device,
        ceilings=ceilings,
        model=choice.model,
        model_source=choice.source,
        phase=subject.scope.phase,
        steps=steps.height,
        requests=sum(requests) / len(requests) if requests and len(requests) == steps.height else None,
        decode=bool(modelled.workloads) and all(_one_token_each(workload) for workload in modelled.workloads),
        measured_ns=sum(row.measured_ns for row in rows),
        copies_ns=subject.scope.copies_ns / max(steps.height, 1),
        span_ns=_mean(steps["span_ns"]),
        period_ns=_period(steps),
        latency=subject.latency,
        kernels=kernels,
        basis=_basis(subject, choice, modelled, ceilings),
    )
    checks = [*cross_checks(kernels), *message_checks(kernels), *kind_checks(kernels)] if choice.model else []
    asked = subject.request
    first = opening(segment(subject.trace), phase=subject.scope.phase, step=asked.step)
    if subject.trace.names_doubtful:
        return replace(result, findings=(*first, Finding("target", f"{NO_TARGET} {DOUBTFUL_NAMES}.")))
    return with_findings(result, [*modelled.findings, *checks], first)


def _modelled(subject: _Subject, model: Architecture | None) -> _Modelled:
    scope, request = subject.scope, subject.request
    workloads = workloads_of(scope.steps, request.stated)
    plain = subject.kernels.with_columns(
        workload=pl.lit(None, dtype=pl.Int32),
        layer=pl.col("block").cast(pl.Int32),
        row_kind=_trace_kind(),
        trace_kind=_trace_kind(),
    )
    if model is None:
        return _Modelled(plain, None, workloads, [], [])
    try:
        parallel, stage, notes = layout_of(subject.trace, scope, model, (request.tp, request.pp, request.ep))
        layers = stage_layers(len(model.layers), parallel.pp, stage)
        execution, assumed = execution_of(scope, subject.kernels, model)
        distinct = list(dict.fromkeys(workload for workload in workloads if workload is not None))
        ops = model_ops(model, distinct, parallel, stage, execution, request.routing, subject.ceilings)
    except ModelError as error:
        raise RooflineError(str(error)) from error
    # Kernels of a draft model, or of half a batch, are of no layer's size.
    fits = (scope.steps["blocks"] == len(layers)) & (scope.steps["passes"].list.len() == 1)
    numbers = [None if one is None else distinct.index(one) for one in workloads]
    steps = scope.steps.select(*STEP).with_columns(
        workload=pl.Series(numbers, dtype=pl.Int32), fits=fits.fill_null(False)
    )
    kernels = (
        plain.drop("workload", "layer", "row_kind")
        .join(steps, on=list(STEP), how="left", nulls_equal=True, maintain_order="left")
        .with_columns(workload=pl.when("fits").then("workload"), layer=(pl.col("block") + layers.start).cast(pl.Int32))
        .join(layer_kinds(model), on="layer", how="left", maintain_order="left")
        .with_columns(
            row_kind=pl.when(~pl.col("fits"))
            .then("trace_kind")
            .when(pl.col("role") == "attention")
            .then("attention_kind")
            .otherwise("layer_kind")
        )
    )
    kernels = with_shared_gates(kernels, model)
    return _Modelled(kernels, ops, workloads, [*notes, *assumed], _misfit(scope, model, fits, len(layers)))


def _misfit(scope: Scope, model: Architecture, fits: pl.Series, layers: int) -> list[Finding]:
    if fits.fill_null(False).all():
        return []
    if (scope.steps["passes"].list.len() > 1).any():
        beside = passes_in_words(scope.steps)
        text = f"Several passes run in a step ({beside}): their kernels are not matched to the layers of {model.name}."
        return [Finding("model_mismatch", text)]
    counts = sorted(set(scope.steps.filter(~fits.fill_null(False))["blocks"].drop_nulls().to_list()))
    shown = ", ".join(str(count) for count in counts) or "no"
    text = (
        f"{model.name} has {layers} layers here, but {(~fits.fill_null(False)).sum()} of {scope.steps.height} steps "
        f"have {shown} blocks: their kernels cannot be matched to its layers. Pass the right --model, or --pp."
    )
    return [Finding("model_mismatch", text)]


def _trace_kind() -> pl.Expr:
    """The kind of attention that segmentation tells, for attention only."""
    reach = pl.col("kind").str.extract(r"\b(sliding|full|chunked|mamba|linear)\b")
    return pl.when(pl.col("role") == "attention").then(reach)


def _rows(
    subject: _Subject, choice: ModelChoice, modelled: _Modelled, ceilings: Ceilings | None
) -> tuple[list[Row], pl.DataFrame]:
    joined = merge_kinds(join_work(modelled.kernels, modelled.ops, ceilings))
    kernels = with_row_numbers(joined)
    reasons = reasons_of(kernels, model=choice.model, gpu=ceilings is not None)
    tiny = choice.model is not None and ceilings is not None
    return rows_of(kernels, max(subject.scope.steps.height, 1), subject.latency, reasons, tiny), kernels


def _numbered(kernels: pl.DataFrame, rows: list[Row]) -> pl.DataFrame:
    """Add bound, plausible and headroom_ns: the row's headroom spread over its kernels by their time."""
    table = pl.DataFrame(
        {
            "row": pl.Series(range(len(rows)), dtype=kernels.schema["row"]),
            "bound": pl.Series([row.bound for row in rows], dtype=pl.String),
            "plausible": pl.Series([row.plausible for row in rows], dtype=pl.Boolean),
            "of_time": pl.Series(
                [None if row.headroom_ns is None else row.headroom_ns / row.measured_ns for row in rows],
                dtype=pl.Float64,
            ),
        }
    )
    joined = kernels.join(table, on="row", how="left", maintain_order="left")
    headroom = pl.col("dur_ns") * pl.col("of_time")
    return joined.with_columns(pl.col("name").cast(pl.String), headroom_ns=headroom).drop("of_time")


def _reached(rows: list[Row], kernels: pl.DataFrame) -> list[Reached]:
    """What the kernels of each row and name reach together."""
    summed = (
        kernels.group_by("row", "name", maintain_order=True)
        .agg(pl.col("flops", "bytes", "dur_ns").sum(), unknown=pl.col("floor_ns").is_null().any(), kernels=pl.len())
        .filter(~pl.col("unknown"))
    )
    rates = []
    for one in summed.iter_rows(named=True):
        row = rows[one["row"]]
        if not row.plausible or row.redundant or row.bound not in ("memory", "compute"):
            continue
        rate = one["bytes"] / one["dur_ns"] if row.bound == "memory" else one["flops"] / one["dur_ns"] / 1e3
        rates.append(Reached(row.label, row.bound, row.dtype, one["bytes"] / one["kernels"], rate))
    return rates


def _one_token_each(workload: Workload | None) -> bool:
    return (
        workload is not None
        and all(group.decode for group in workload.groups)
        and workload.tokens == workload.sequences
    )


def _mean(values: pl.Series) -> float:
    mean = values.mean()
    return float(mean) if isinstance(mean, int | float) else 0.0


def _period(steps: pl.DataFrame) -> float:
    """Span and the pause before, over steps where it is known; the span alone where it is for none."""
    known = steps.filter(pl.col("idle_before_ns").is_not_null())
    return _mean(known["span_ns"] + known["idle_before_ns"]) if known.height else _mean(steps["span_ns"])


def _basis(subject: _Subject, choice: ModelChoice, modelled: _Modelled, ceilings: Ceilings | None) -> tuple[str, ...]:
    work = sorted({line for one in modelled.workloads if one is not None for line in one.basis})
    return (
        choice.message,
        *(f"model: {note}" for note in (choice.model.notes if choice.model else ())),
        _gpu_basis(subject, ceilings),
        *(_roof_basis(modelled, ceilings) if ceilings is not None else ()),
        subject.latency.basis,
        *(f"work per step: {line}" for line in work),
        *subject.notes,
        *modelled.notes,
    )


def _gpu_basis(subject: _Subject, ceilings: Ceilings | None) -> str:
    device = subject.device
    if subject.trace.cpu_only:
        return "GPU: none; the trace has CPU ops only"
    if ceilings is None:
        seen = f" ({device.name} is not in the table)" if device.name else ""
        return f"GPU: unknown{seen}; pass --gpu NAME or --gpu-file (traceanalyzer gpus lists those known)"
    how = {"option": "as given", "trace": "as the trace says", "fingerprint": "inferred from its size"}
    return f"GPU: {ceilings.gpu.name}, {how[device.source or 'trace']}"


def _roof_basis(modelled: _Modelled, ceilings: Ceilings) -> tuple[str, ...]:
    """Where the achievable roofs come from, of the data types that limit something."""
    dtypes = set(modelled.kernels["shape_dtype"].drop_nulls().unique().to_list())
    if modelled.ops is not None:
        dtypes |= set(modelled.ops.filter(pl.col("compute_ns") > pl.col("memory_ns"))["dtype"].unique().to_list())
    told = {say(dtype) for say in (ceilings.tflops_basis, ceilings.stand_in) for dtype in dtypes}
    return ceilings.gbps_basis, *sorted(text for text in told if text)
