"""Encoders with a norm behind each half of a block: told by what lies around, never by the blocks alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from synthetic import BlockSpec, KernelSpec, ModelSpec, TraceSpec, decode_steps, generate, write
from tests.support.architectures import (
    ADD,
    ARGMAX,
    COPY,
    DOWN,
    EMBED,
    FA2,
    FA3,
    GELU,
    HEAD,
    KV,
    LAYER_NORM,
    OUT,
    QKV,
    RMS,
    UP,
    Step,
    step,
)
from tests.support.segment_faults import faults
from traceanalyzer.segment import segment
from traceanalyzer.segment.blocks import find_blocks
from traceanalyzer.segment.outer_roles import StepEvidence, outer_roles
from traceanalyzer.segment.roles import block_roles
from traceanalyzer.segment.tokens import encode
from traceanalyzer.trace import open_traces

SERVING = StepEvidence(serves=True, trains=False, typical_ns=0.0)
TANH = "void at::native::vectorized_elementwise_kernel<4, at::native::tanh_kernel_cuda(at::TensorIteratorBase&)>()"
INDUCTOR_NORM = "triton_per_fused_add_native_layer_norm_{}"
POST = [QKV, FA2, OUT, ADD, LAYER_NORM, UP, GELU, DOWN, ADD, LAYER_NORM]
PRE = [LAYER_NORM, QKV, FA2, OUT, ADD, LAYER_NORM, UP, GELU, DOWN, ADD]
CPU = [
    *("aten::addmm", "aten::addmm", "aten::addmm", "aten::scaled_dot_product_attention", "aten::addmm", "aten::add"),
    *("aten::native_layer_norm", "aten::addmm", "aten::gelu", "aten::addmm", "aten::add", "aten::native_layer_norm"),
]
TABLES = (COPY, EMBED, EMBED, ADD, EMBED, ADD)
POOLER = (QKV, TANH)

TOLD = {
    "bert": step([POST] * 12, (*TABLES, LAYER_NORM), POOLER),
    "bert, the last hidden states alone": step([POST] * 12, (*TABLES, LAYER_NORM), ()),
    "bert with a head of its own norm": step([POST] * 12, (*TABLES, LAYER_NORM), (QKV, GELU, LAYER_NORM, HEAD)),
    "two tables, with a pooler": step([POST] * 6, (EMBED, EMBED, ADD, LAYER_NORM), POOLER),
    "albert: a product behind the embedding": step([POST] * 12, (*TABLES, LAYER_NORM, DOWN), POOLER),
    "compiled": step(
        [[QKV, FA2, OUT, INDUCTOR_NORM.format(2), UP, "triton_poi_fused_gelu_3", DOWN, INDUCTOR_NORM.format(4)]] * 12,
        (COPY, "triton_per_fused_add_embedding_native_layer_norm_0"),
        (QKV, "triton_poi_fused_addmm_tanh_5"),
    ),
    "on a CPU": step(
        [CPU] * 6,
        ("aten::index_select", "aten::index_select", "aten::add", "aten::index_select", "aten::add", CPU[-1]),
        ("aten::addmm", "aten::tanh"),
    ),
    "no norm of the embedding at all": step([POST] * 12, (EMBED, EMBED, ADD), (HEAD, ARGMAX)),
}
NOT_TOLD = {
    "an encoder of which only the blocks show": step([PRE] * 12, (EMBED, EMBED, ADD), (LAYER_NORM,)),
    "a vision tower with a pooler": step([PRE] * 12, ("conv2d_kernel", ADD), (LAYER_NORM, *POOLER)),
    "a decoder of three tables that samples": step([PRE] * 12, TABLES, (LAYER_NORM, HEAD, ARGMAX)),
    "a norm behind the embedding and one ahead of each half": step(
        [PRE] * 12, (EMBED, LAYER_NORM), (LAYER_NORM, HEAD, ARGMAX)
    ),
    "a head whose logits are capped": step(
        [[RMS, QKV, KV, FA3, OUT, ADD, RMS, UP, GELU, DOWN, ADD]] * 12, (EMBED,), (RMS, HEAD, TANH, ARGMAX)
    ),
}


def borders(names: Sequence[str]) -> tuple[list[int], list[int]]:
    cut = find_blocks(*encode(pl.Series(names)))
    own = [np.flatnonzero(cut.block_of == block) for block in range(cut.count)]
    return [int(block[0]) for block in own], [int(block[-1]) + 1 for block in own]


@pytest.mark.parametrize("made", [*TOLD.values(), *NOT_TOLD.values()], ids=[*TOLD, *NOT_TOLD])
def test_the_norm_between_two_blocks_is_given_to_the_one_it_is_of(made: Step) -> None:
    assert borders(made.names) == (list(made.starts), list(made.ends))


def test_roles_of_a_block_that_ends_with_its_norm() -> None:
    tokens, vocabulary = encode(pl.Series(POST))
    roles = "qkv_proj attention o_proj other norm gate_up activation down other norm"
    assert block_roles(tokens, vocabulary) == roles.split()


def test_a_pooler_is_no_head_and_the_norm_of_the_embedding_is_ahead_of_the_blocks() -> None:
    names = TOLD["bert"].names
    tokens, vocabulary = encode(pl.Series(names))
    cut = find_blocks(tokens, vocabulary)
    outer = outer_roles(tokens, np.full(len(tokens), 100), cut.block_of, vocabulary, SERVING)
    roles = [(names[position], role) for position, role in sorted(outer.items())]
    assert (LAYER_NORM, "norm") in roles
    assert "lm_head" not in outer.values()
    capped = NOT_TOLD["a head whose logits are capped"].names
    tokens, vocabulary = encode(pl.Series(capped))
    cut = find_blocks(tokens, vocabulary)
    outer = outer_roles(tokens, np.full(len(tokens), 100), cut.block_of, vocabulary, SERVING)
    assert [capped[position] for position, role in outer.items() if role == "lm_head"] == [HEAD]


@pytest.mark.parametrize("engine", ["vllm", "profiler_step", "none"])
def test_a_recorded_encoder_is_cut_up_exactly(tmp_path: Path, engine: str) -> None:
    def kernels(*names: str) -> tuple[KernelSpec, ...]:
        return tuple(KernelSpec(name, "other", 5.0) for name in names)

    model = ModelSpec(
        "encoder",
        (BlockSpec("layer", kernels(*POST)),) * 12,
        kernels(*TABLES[1:], LAYER_NORM),
        kernels(*POOLER),
    )
    spec = TraceSpec(model=model, steps=decode_steps(4, batch=4), engine=engine, launch="eager")  # type: ignore[arg-type]
    truth = generate(spec, 3)
    found = segment(open_traces(write(truth, tmp_path / "trace.json"), cache=False).traces[0])
    assert faults(truth, found) == []
