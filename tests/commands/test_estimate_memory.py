"""What fits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from tests.support.deployments import deployment
from traceanalyzer.commands.estimate.efficiencies import EstimateError
from traceanalyzer.commands.estimate.memory_fit import (
    fewest_gpus,
    kv_a_sequence,
    layout_name,
    memory,
    refuse_unfit,
    weight_bytes,
)
from traceanalyzer.commands.estimate.parallel import layout
from traceanalyzer.hardware import find_gpu
from traceanalyzer.model import Parallel, architecture_of, kv_bytes_per_token, load, parameters
from traceanalyzer.model.parameters import tensors


def test_gpt_oss_120b_is_refused_on_one_48_gb_gpu_and_two_hold_it() -> None:
    own = deployment("gpt-oss-120b", "RTX 6000 Ada")
    with pytest.raises(EstimateError, match=r"65\.2 GB of weights .* tp = 2 is the smallest"):
        refuse_unfit(own)
    for degree in ({"tp": 2}, {"pp": 2}, {"ep": 2}):
        refuse_unfit(replace(own, parallel=layout(**degree)))
    assert fewest_gpus(own.architecture, own.gpu) == 2


@pytest.mark.parametrize("name", ["llama-3.1-8b", "gpt-oss-120b", "deepseek-v3"])
def test_the_weights_of_all_gpus_are_at_least_those_of_the_model(name: str) -> None:
    model = load(name)
    whole = parameters(model).weight_bytes
    assert whole is not None
    assert weight_bytes(model, Parallel()) == pytest.approx(whole)
    for parallel in (Parallel(tp=4), Parallel(pp=4), Parallel(dp=4, ep=4), Parallel(tp=2, pp=2)):
        if parallel.ep > 1 and model.moe is None:
            continue
        each = weight_bytes(model, parallel)
        assert each is not None
        assert whole / parallel.gpus <= each * (1 + 1e-9) < whole


def test_every_rank_holds_the_projections_to_the_latents() -> None:
    model = load("deepseek-v3")
    eight, sixteen = (weight_bytes(model, Parallel(tp=tp)) for tp in (8, 16))
    assert eight is not None
    assert sixteen is not None
    others = sum(t.count * t.format.bytes for t in tensors(model) if t.count and t.part in ("norm", "router"))
    assert {t.part for t in tensors(model) if t.parts == 1} == {"norm", "router", "attention"}
    down = 61 * 7168 * (1536 + 512 + 64) * model.weights.attention.bytes
    assert 2 * sixteen - eight == pytest.approx(others + down)


def test_ranks_beyond_the_heads_of_keys_and_values_hold_the_same_ones() -> None:
    model = load("llama-3.1-8b")
    assert model.kv_heads == 8
    eight, sixteen = (weight_bytes(model, Parallel(tp=tp)) for tp in (8, 16))
    assert eight is not None
    assert sixteen is not None
    norms = sum(t.count * t.format.bytes for t in tensors(model) if t.count and t.part == "norm")
    one_head_each = 32 * 2 * 4096 * 128 * 2
    assert 2 * sixteen - eight == pytest.approx(norms + one_head_each)


def test_expert_parallel_ranks_repeat_attention_but_not_experts() -> None:
    model = load("gpt-oss-120b")
    tensor, expert = (weight_bytes(model, p) for p in (Parallel(tp=4), Parallel(dp=4, ep=4)))
    assert tensor is not None
    assert expert is not None
    assert tensor < expert < 1.5 * tensor


def test_kv_heads_are_repeated_where_there_are_fewer_than_gpus() -> None:
    model = load("llama-3.1-8b")
    whole = kv_bytes_per_token(model) * 100
    assert kv_a_sequence(model, Parallel(), 100) == whole
    assert kv_a_sequence(model, Parallel(tp=8), 100) == whole / 8
    assert kv_a_sequence(model, Parallel(tp=16), 100) == whole / 8
    assert kv_a_sequence(model, Parallel(pp=2), 100) == whole / 2
    latent = load("deepseek-v3")
    assert kv_a_sequence(latent, Parallel(tp=8), 100) == kv_bytes_per_token(latent) * 100


def test_the_cache_holds_fewer_long_sequences_than_short_ones() -> None:
    own = deployment("llama-3.1-8b", "H100 SXM5")
    short, long = memory(own, 1000), memory(own, 4000)
    assert short.sequences is not None
    assert long.sequences is not None
    assert short.sequences > 3 * long.sequences
    assert memory(own, 4000, batch=long.sequences).batch_fits is True
    assert memory(own, 4000, batch=long.sequences + 1).batch_fits is False


def test_a_model_without_attention_keeps_a_state_and_no_cache() -> None:
    config = {"model_type": "mamba2", "num_hidden_layers": 2, "hidden_size": 256, "vocab_size": 1000}
    model = architecture_of({**config, "num_heads": 8, "head_dim": 64, "state_size": 128})
    one, eight = (kv_a_sequence(model, Parallel(), context) for context in (1, 8000))
    assert one == eight == 2 * (8 * 64 * 128 * 4 + (8 * 64 + 2 * 128) * 3 * 2)


def test_a_gpu_of_unknown_memory_is_neither_refused_nor_said_to_fit() -> None:
    own = deployment("gpt-oss-120b", "RTX 6000 Ada")
    unknown = replace(own, gpu=structs.replace(find_gpu("RTX 6000 Ada"), memory_gb=None))
    refuse_unfit(unknown)
    assert memory(unknown, 100).weights_fit is None
    assert memory(unknown, 100).batch_fits is None


def test_layouts_are_named_as_they_are_written() -> None:
    names = [
        layout_name(layout(**d)) for d in ({"tp": 4}, {"ep": 4}, {"tp": 2, "pp": 2}, {"tp": 2, "ep": 4}, {"dp": 2})
    ]
    assert names == ["tp=4", "ep=4", "tp=2+pp=2", "tp=2+ep=4", "dp=2"]


def test_a_dense_model_has_no_experts_to_spread() -> None:
    with pytest.raises(EstimateError, match="no experts"):
        deployment("llama-3.1-8b", "H100 SXM5", parallel=Parallel(dp=4, ep=4))
