"""Roles by position, where names do not tell."""

from __future__ import annotations

import polars as pl
import pytest
from test_architectures import ARCHITECTURES

from traceanalyzer.segment.roles import block_roles
from traceanalyzer.segment.vocabulary import encode

EXPERTS = "router moe_routing moe_routing gate_up activation down moe_gate_up activation moe_down moe_combine"
ROLES = {
    ("llama", 3): "norm qkv_proj rope kv_write attention attention o_proj norm gate_up activation down",
    ("one kernel name for all projections", 2): (
        "norm qkv_proj rope kv_write attention o_proj norm gate_up activation down"
    ),
    ("gpt-j, phi: attention and feed-forward in parallel", 1): (
        "norm qkv_proj rope kv_write attention o_proj gate_up activation down other other"
    ),
    ("deepseek: latent attention, shared and routed experts", 9): (
        "norm qkv_proj norm norm qkv_proj rope qkv_proj kv_write attention attention o_proj o_proj communication norm "
        f"{EXPERTS} communication"
    ),
    ("qwen3-next: three linear layers to one of attention", 1): (
        f"norm qkv_proj qkv_proj other other norm o_proj norm {EXPERTS}"
    ),
    ("qwen3-next: three linear layers to one of attention", 3): (
        f"norm qkv_proj norm norm rope kv_write attention other o_proj norm {EXPERTS}"
    ),
    ("olmo 2: norms behind both halves only", 4): (
        "qkv_proj norm norm rope kv_write attention o_proj norm other gate_up activation down norm other"
    ),
    ("attention in three products", 0): (
        "norm qkv_proj qkv_proj qkv_proj rope attention attention attention o_proj other norm gate_up activation down "
        "other"
    ),
    ("norm fused into the all-reduce", 2): (
        "communication qkv_proj rope kv_write attention attention o_proj communication gate_up activation down"
    ),
}


@pytest.mark.parametrize(("name", "block"), ROLES)
def test_each_kernel_of_a_block_has_its_role(name: str, block: int) -> None:
    step = ARCHITECTURES[name]
    tokens, vocabulary = encode(pl.Series(step.names))
    own = tokens[step.starts[block] : step.ends[block]]
    assert block_roles(own, vocabulary) == ROLES[name, block].split()
