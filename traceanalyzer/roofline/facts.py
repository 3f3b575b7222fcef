"""What a trace shows of its model, of its layout and of how the engine carries the model out."""

from __future__ import annotations

import re

import polars as pl

from traceanalyzer.model import FORMATS, Architecture, Execution, ModelError, Parallel, TraceFacts
from traceanalyzer.model.model_step import stage_layers
from traceanalyzer.names import KernelName, parse
from traceanalyzer.roofline.roofline_result import RooflineError
from traceanalyzer.roofline.scope import STEP, Scope
from traceanalyzer.trace import Trace

PAD_MULTIPLE = 256
"""Multiple that an engine is taken to pad the experts' input to, where no shape tells. Assumed."""

EXPERT_ROLES = ("moe_gate_up", "moe_down")
MOE_ROLES = (*EXPERT_ROLES, "moe_routing", "moe_combine", "router")


def trace_facts(scope: Scope, shaped: pl.DataFrame, *, world_size: int | None) -> TraceFacts:
    """Return what the kernels show; None for what they do not.

    Args:
        scope: the steps looked at.
        shaped: their kernels with the columns ``what``, ``n`` and ``k`` of explicit shapes (None where unknown).
        world_size: ranks of the job; sizes that tensor parallelism splits are only used when there is one.
    """
    blocks = _in_blocks(scope)
    if blocks.is_empty():
        return TraceFacts()
    roles = set(blocks["role"].unique().to_list())
    names = blocks["name"].unique().to_list()
    shaped = shaped.select("section", "role", "what", "n", "k")
    hidden = _size(shaped.filter(pl.col("section") == "block"), "qkv_proj", "k")
    return TraceFacts(
        layers=_common(scope.steps["blocks"]) if world_size in (None, 1) else None,
        moe=bool(roles & set(MOE_ROLES)) if roles & {*MOE_ROLES, "gate_up", "down"} else None,
        period=_common(scope.steps["period_blocks"]),
        experts=_size(shaped, "router", "n"),
        hidden=hidden,
        # The vocabulary alone is shared by whole families of models.
        vocab=_size(shaped, "lm_head", "n") if hidden and world_size in (None, 1) else None,
        weight_formats=_weight_formats(blocks),
        mla=True if any(re.search(r"mla(?![a-z])|_mla|mla_", name, re.IGNORECASE) for name in names) else None,
        recurrent=any(parse(name).kind == "ssm" for name in names),
        qk_norm=_qk_norm(blocks),
    )


def _in_blocks(scope: Scope) -> pl.DataFrame:
    """The kernels of blocks, with what is asked of them here."""
    return scope.kernels.select(*STEP, "block", "section", "role", "name").filter(pl.col("section") == "block")


def _common(values: pl.Series) -> int | None:
    counted = values.drop_nulls().filter(values.drop_nulls() > 0).value_counts(sort=True)
    return int(counted[values.name][0]) if counted.height else None


def _size(shaped: pl.DataFrame, role: str, column: str) -> int | None:
    """The one size that all matrix products of a role have; None where they have none or several."""
    own = shaped.filter(pl.col("role") == role, pl.col("what") == "gemm")[column].drop_nulls().unique()
    return int(own[0]) if len(own) == 1 else None


def _weight_formats(blocks: pl.DataFrame) -> frozenset[str]:
    """Formats of weights that the names of matrix products tell."""
    products = blocks.filter(pl.col("role").is_in([*EXPERT_ROLES, "gate_up", "down", "qkv_proj", "o_proj"]))
    weights = {parse(name).dtypes.weight for name in products["name"].unique().to_list()}
    return frozenset(weight for weight in weights if weight in FORMATS)


def _qk_norm(blocks: pl.DataFrame) -> bool | None:
    """True where most blocks have a norm between projection and attention; None otherwise, as it may be fused."""
    place = pl.col("place")
    projected = place.filter(pl.col("role") == "qkv_proj").min()
    attended = place.filter(pl.col("role") == "attention").min()
    before = (place < attended).fill_null(True)
    per_block = (
        blocks.with_row_index("place")
        .group_by(*STEP, "block")
        .agg(between=((pl.col("role") == "norm") & (place > projected) & before).any())
    )
    return True if per_block["between"].sum() > 0.5 * per_block.height else None


def execution_of(scope: Scope, shaped: pl.DataFrame, model: Architecture) -> tuple[Execution, list[str]]:
    """Return how the engine carries the model out, as far as its kernels tell, and what was assumed."""
    blocks = _in_blocks(scope)
    experts = blocks.filter(pl.col("role").is_in(EXPERT_ROLES))
    if model.moe is None or experts.is_empty():
        return Execution(), []
    with_experts = blocks.join(experts.select(*STEP, "block").unique(), on=[*STEP, "block"], nulls_equal=True)
    activation = with_experts.filter(pl.col("role") == "activation")
    tiles = {_certain_rows(parse(name)) for name in experts["name"].unique().to_list()} - {None}
    width, notes = _padded_width(with_experts, shaped, model)
    return Execution(
        moe_block_m=tiles.pop() if len(tiles) == 1 else None,
        fused_moe_activation=activation.is_empty(),
        moe_input_width=width,
    ), notes


def _certain_rows(kernel: KernelName) -> int | None:
    """Return the rows of a kernel's tile, or None where its name leaves open which side they are."""
    return kernel.block_m if kernel.ambiguous is None else None


def pads(name: str) -> bool:
    """Whether a kernel pads its input, and does nothing else of note."""
    kernel = parse(name)
    return kernel.library == "Inductor" and "constant_pad_nd" in (kernel.fused_ops or "")


def _padded_width(blocks: pl.DataFrame, shaped: pl.DataFrame, model: Architecture) -> tuple[int | None, list[str]]:
    padding = [name for name in blocks["name"].unique().to_list() if pads(name)]
    if not padding:
        return None, []
    dims = shaped.filter(pl.col("name").is_in(padding))["dims"].drop_nulls().unique().to_list()
    widths = {int(match[1]) for text in dims for match in re.finditer(r"(\d{1,9})\]", text)} - {model.hidden}
    given = [width for width in widths if width > model.hidden]
    if len(given) == 1:
        return given[0], [f"experts' input padded from {model.hidden} to {given[0]}, as the trace's shapes say"]
    width = -(-model.hidden // PAD_MULTIPLE) * PAD_MULTIPLE
    return width, [
        f"experts' input padded from {model.hidden} to {width}: the next multiple of {PAD_MULTIPLE}, assumed"
    ]


def layout_of(
    trace: Trace, scope: Scope, model: Architecture, stated: tuple[int | None, int | None, int | None]
) -> tuple[Parallel, int | None, list[str]]:
    """Return the parallel layout, this rank's pipeline stage (None: there is one stage), and what was inferred.

    Args:
        trace: for its world size and the ranks that its file name tells.
        scope: the steps looked at.
        model: the model.
        stated: tp, pp and ep as the user states them; None where not.

    Raises:
        RooflineError: the degrees contradict each other.
    """
    tp, pp, ep = stated
    world = trace.metadata.world_size or 1
    notes = []
    blocks = _common(scope.steps["blocks"])
    if pp is None:
        pp = _stages(len(model.layers), blocks, world)
        if pp > 1:
            notes.append(f"pp = {pp}, inferred: {blocks} of {len(model.layers)} layers run here")
    if tp is None:
        tp = max(world // pp, 1) if ep is None else max(ep, 1) if world > 1 else 1
        if tp > 1:
            notes.append(f"tp = {tp}, inferred from {world} ranks; pass --tp, --pp or --ep where that is wrong")
    try:
        if ep is not None and ep > 1 and ep % tp == 0:
            parallel = Parallel(tp=tp, pp=pp, ep=ep, dp=ep // tp)
        else:
            parallel = Parallel(tp=tp, pp=pp, ep=ep or 1)
    except ModelError as error:
        raise RooflineError(str(error)) from error
    stage, basis = _stage(trace, scope, model, parallel.pp)
    return parallel, stage, [*notes, *basis]


def _stages(layers: int, blocks: int | None, world: int) -> int:
    if not blocks or world == 1 or blocks >= layers:
        return 1
    for pp in range(2, world + 1):
        if world % pp == 0 and layers // pp <= blocks <= -(-layers // pp):
            return pp
    return 1


def _stage(trace: Trace, scope: Scope, model: Architecture, pp: int) -> tuple[int | None, list[str]]:
    """Return this rank's stage and what it was inferred from; None where there is one stage or nothing tells which.

    Between the first and the last one, stages of as many layers are taken for one another if they have the same kinds.
    """
    if pp == 1:
        return None, []
    rank = (trace.metadata.parallel or {}).get("pp")
    if rank is not None:
        if rank >= pp:
            raise RooflineError(f"pp = {pp} contradicts the trace, which is of pipeline rank {rank} (from 0)")
        return rank, []
    roles = set(scope.kernels["role"].unique().to_list())
    if "lm_head" in roles:
        return pp - 1, []
    if "embedding" in roles or pp == 2:
        return 0, []
    blocks = _common(scope.steps["blocks"])
    layers = {stage: stage_layers(len(model.layers), pp, stage) for stage in range(1, pp - 1)}
    middle = {stage: tuple(model.layers[i] for i in own) for stage, own in layers.items() if len(own) == blocks}
    if len(set(middle.values())) != 1:
        return None, []
    first = min(middle)
    return first, [f"pipeline stage {first} (from 0) or one like it, inferred: neither embedding nor lm_head run here"]
