"""Parameter counts, bytes and KV sizes against published and independently computed values."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from traceanalyzer.model import kv_bytes, kv_bytes_per_token, named, parameters, state_bytes, with_formats
from traceanalyzer.model.formats import FORMATS

BILLIONS = {
    "gpt-oss-20b": (20.915, 3.607),
    "gpt-oss-120b": (116.829, 5.132),
    "Llama-3.1-8B": (8.030, None),
    "Llama-3.1-70B": (70.554, None),
    "Llama-3.1-405B": (405.853, None),
    "Llama-2-70B": (68.977, None),
    "Mixtral-8x7B": (46.703, None),
    "Qwen3-8B": (8.191, None),
    "Qwen3-30B-A3B": (30.532, None),
    "Qwen3-235B-A22B": (235.094, None),
    "DeepSeek-V3": (671.026, None),
}
PUBLISHED = {  # as the hub's model pages count them
    "Llama-3.2-1B": 1.236,
    "Llama-3.2-3B": 3.213,
    "Mistral-7B": 7.248,
    "Qwen1.5-0.5B": 0.464,
    "Qwen2.5-7B": 7.616,
    "Qwen2.5-14B": 14.770,
    "Qwen2.5-32B": 32.764,
    "Qwen2.5-72B": 72.706,
    "Qwen3-0.6B": 0.596,
    "Qwen3-1.7B": 1.721,
    "Qwen3-4B": 4.022,
    "Qwen3-14B": 14.768,
    "Qwen3-32B": 32.762,
}
KV_BYTES = {
    "gpt-oss-20b": 49_152,
    "gpt-oss-120b": 73_728,
    "Llama-3.1-70B": 327_680,
    "Llama-3.1-8B": 131_072,
    "DeepSeek-V3": 70_272,
}


@pytest.mark.parametrize(("name", "billions"), BILLIONS.items())
def test_parameters_equal_the_published_counts(name: str, billions: tuple[float, float | None]) -> None:
    counted = parameters(named(name))
    assert counted.total == pytest.approx(billions[0] * 1e9, rel=1e-3)
    if billions[1] is not None:
        assert counted.active == pytest.approx(billions[1] * 1e9, rel=1e-3)


@pytest.mark.parametrize(("name", "billions"), PUBLISHED.items())
def test_parameters_of_smaller_models_agree_with_their_pages(name: str, billions: float) -> None:
    assert parameters(named(name)).total == pytest.approx(billions * 1e9, rel=1e-3)


@pytest.mark.parametrize(("name", "size"), KV_BYTES.items())
def test_kv_bytes_of_a_token_equal_the_published_ones(name: str, size: int) -> None:
    assert kv_bytes_per_token(named(name)) == size


def test_every_model_of_the_facts_table_has_its_counts_and_bytes(shared: Path) -> None:
    rows = list(csv.DictReader((shared / "data" / "models.csv").read_text().splitlines()))
    assert len(rows) >= 15
    for row in rows:
        architecture = named(row["model"])
        counted = parameters(architecture)
        assert counted.total == pytest.approx(float(row["computed_total_B"]) * 1e9, rel=1e-3), row["model"]
        active = float(row["computed_active_B_with_lm_head_no_in_emb"])
        assert counted.active == pytest.approx(active * 1e9, rel=1e-3), row["model"]
        assert counted.weight_bytes == pytest.approx(float(row["computed_weight_GiB"]) * 2**30, rel=1e-3), row["model"]
        assert kv_bytes_per_token(architecture) == float(row["kv_bytes_per_token_16bit"]), row["model"]


def test_hybrid_models_are_counted_with_their_recurrent_layers() -> None:
    # Qwen3-Next-80B-A3B: 80 B in all, of which 79.67 B without the multi-token-prediction layer.
    assert parameters(named("Qwen3-Next-80B-A3B")).total == pytest.approx(79.7e9, rel=2e-3)


def test_llama_4_counts_its_shared_expert_and_dense_layers() -> None:
    assert parameters(named("Llama-4-Maverick-17B-128E")).total == pytest.approx(400.7e9, rel=2e-3)
    assert parameters(named("Llama-4-Scout-17B-16E")).total == pytest.approx(107.8e9, rel=2e-3)


def test_a_window_limits_the_cache_of_its_layers_only() -> None:
    model = named("gpt-oss-20b")
    per_layer = kv_bytes_per_token(model) / 24
    assert kv_bytes(model, 100) == 100 * 24 * per_layer
    assert kv_bytes(model, 1000) == 12 * 1000 * per_layer + 12 * 128 * per_layer


def test_fp8_cache_halves_the_bytes_of_a_token() -> None:
    model = with_formats(named("Llama-3.1-8B"), kv=FORMATS["fp8"])
    assert kv_bytes_per_token(model) == 65_536


def test_int4_weights_take_their_scales_along() -> None:
    model = named("Llama-3.1-8B")
    embeddings = 2 * 128256 * 4096
    matrices = 8.030e9 - embeddings
    packed = parameters(with_formats(model, weights=FORMATS["int4"])).weight_bytes
    assert packed == pytest.approx(embeddings * 2 + matrices * 4.125 / 8, rel=1e-3)


def test_state_of_a_recurrent_layer_does_not_grow_and_others_have_none() -> None:
    # 36 of 48 layers: 32 value heads of 128 x 128 in fp32, and 3 taps of 8192 channels in bf16.
    assert state_bytes(named("Qwen3-Next-80B-A3B")) == 36 * (32 * 128 * 128 * 4 + 8192 * 3 * 2)
    assert state_bytes(named("Qwen3-8B")) == 0
