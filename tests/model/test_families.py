"""Configs of many families, as published: the parameters add up to the published count."""

from __future__ import annotations

from typing import Any

import pytest

from traceanalyzer.model import (
    Parallel,
    architecture_of,
    decode_step,
    from_lengths,
    kv_bytes_per_token,
    ops,
    parameters,
)


def sizes(layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, vocab: int) -> dict[str, Any]:
    return {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": ffn,
        "vocab_size": vocab,
        "max_position_embeddings": 32768,
    }


def moe(key: str, experts: int, top_k: int, expert_size: int | None = None, **more: Any) -> dict[str, Any]:
    size = {} if expert_size is None else {"moe_intermediate_size": expert_size}
    return {key: experts, "num_experts_per_tok": top_k, **size, **more}


MLA = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
NEMOTRON = "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"

CONFIGS: dict[str, tuple[float, dict[str, Any]]] = {
    "qwen2_moe": (14.316, {
        **sizes(24, 2048, 16, 16, 5632, 151936), **moe("num_experts", 60, 4, 1408),
        "shared_expert_intermediate_size": 5632, "decoder_sparse_step": 1}),
    "qwen3_moe": (480.155, {
        **sizes(62, 6144, 96, 8, 8192, 151936), **moe("num_experts", 160, 8, 2560), "head_dim": 128}),
    "mixtral": (140.63, {**sizes(56, 6144, 48, 8, 16384, 32768), **moe("num_local_experts", 8, 2)}),
    "deepseek_v2": (235.741, {
        **sizes(60, 5120, 128, 128, 12288, 102400), **moe("n_routed_experts", 160, 6, 1536), **MLA,
        "q_lora_rank": 1536, "n_shared_experts": 2, "first_k_dense_replace": 1, "moe_layer_freq": 1}),
    "deepseek_v2 ": (15.706, {
        **sizes(27, 2048, 16, 16, 10944, 102400), **moe("n_routed_experts", 64, 6, 1408), **MLA,
        "q_lora_rank": None, "n_shared_experts": 2, "first_k_dense_replace": 1}),
    "glm4_moe": (352.8, {
        **sizes(92, 5120, 96, 8, 12288, 151552), **moe("n_routed_experts", 160, 8, 1536), "head_dim": 128,
        "n_shared_experts": 1, "first_k_dense_replace": 3, "attention_bias": True, "use_qk_norm": True}),
    "qwen2_5_vl": (7.616, {**sizes(28, 3584, 28, 4, 18944, 152064), "vision_config": {"depth": 32}}),
    "glm4": (9.400, {**sizes(40, 4096, 32, 2, 13696, 151552), "head_dim": 128, "attention_bias": True}),
    "minimax_m2": (228.69, {
        **sizes(62, 3072, 48, 8, 1536, 200064), **moe("num_local_experts", 256, 8), "head_dim": 128,
        "use_qk_norm": True, "qk_norm_type": "per_layer"}),
    "jamba": (51.570, {
        **sizes(32, 4096, 32, 8, 14336, 65536), **moe("num_experts", 16, 2), "expert_layer_period": 2,
        "expert_layer_offset": 1, "attn_layer_period": 8, "attn_layer_offset": 4, "mamba_d_state": 16,
        "mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": 256}),
    "nemotron_h": (8.101, {
        **sizes(52, 4096, 32, 8, 21504, 131072), "hybrid_override_pattern": NEMOTRON, "mamba_num_heads": 128,
        "mamba_head_dim": 64, "n_groups": 8, "ssm_state_size": 128, "conv_kernel": 4, "attention_head_dim": 128}),
    "granitemoehybrid": (32.2, {
        **sizes(40, 4096, 32, 8, 768, 100352), **moe("num_local_experts", 72, 10),
        "layer_types": (["mamba"] * 9 + ["attention"]) * 4, "mamba_n_heads": 128, "mamba_d_head": 64,
        "mamba_n_groups": 1, "mamba_d_state": 128, "shared_intermediate_size": 1536}),
    "mamba": (2.768, {
        "num_hidden_layers": 64, "hidden_size": 2560, "intermediate_size": 5120, "vocab_size": 50280, "state_size": 16,
        "conv_kernel": 4, "expand": 2, "time_step_rank": 160}),
    "mamba2": (2.703, {
        "num_hidden_layers": 64, "hidden_size": 2560, "num_heads": 80, "head_dim": 64, "vocab_size": 50288,
        "state_size": 128, "n_groups": 1, "expand": 2, "conv_kernel": 4, "tie_word_embeddings": True}),
    "falcon_mamba": (7.273, {
        "num_hidden_layers": 64, "hidden_size": 4096, "intermediate_size": 8192, "vocab_size": 65024, "state_size": 16,
        "conv_kernel": 4, "expand": 2, "time_step_rank": 256, "tie_word_embeddings": False}),
    "gemma": (2.506, {**sizes(18, 2048, 8, 1, 16384, 256000), "head_dim": 256}),
    "gemma2": (9.242, {**sizes(42, 3584, 16, 8, 14336, 256000), "head_dim": 256, "sliding_window": 4096}),
    "gemma3": (3.880, {
        "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
                        "num_hidden_layers": 34, "sliding_window": 1024}}),
    "phi": (2.780, sizes(32, 2560, 32, 32, 10240, 51200)),
    "phimoe": (41.873, {
        **sizes(32, 4096, 32, 8, 6400, 32064), **moe("num_local_experts", 16, 2), "attention_bias": True}),
    "olmoe": (6.919, {**sizes(16, 2048, 16, 16, 1024, 50304), **moe("num_experts", 64, 8)}),
    "olmo2": (7.299, sizes(32, 4096, 32, 32, 11008, 100352)),
    "cohere": (34.981, sizes(40, 8192, 64, 64, 22528, 256000)),
    "gpt_neox": (20.554, sizes(44, 6144, 64, 64, 24576, 50432)),
    "starcoder2": (7.174, {**sizes(32, 4608, 36, 4, 18432, 49152), "use_bias": True, "sliding_window": 4096}),
}  # fmt: skip
"""``model_type`` (a space at its end tells two of one type apart) -> (billions, config)."""


@pytest.mark.parametrize("name", CONFIGS)
def test_parameters_of_each_family_add_up(name: str) -> None:
    billions, config = CONFIGS[name]
    architecture = architecture_of({"model_type": name.strip(), **config})
    assert parameters(architecture).total == pytest.approx(billions * 1e9, rel=1e-3)


@pytest.mark.parametrize("name", CONFIGS)
def test_each_family_has_ops_for_prompt_and_decode_on_two_gpus(name: str) -> None:
    architecture = architecture_of({"model_type": name.strip(), **CONFIGS[name][1]})
    for workload in (decode_step(4, 4000), from_lengths([(100, 0), (1, 50)])):
        found = ops(architecture, workload, Parallel(tp=2))
        assert all(op.flops is not None and op.bytes is not None for op in found)


@pytest.mark.parametrize("name", ["mamba", "mamba2", "falcon_mamba"])
def test_models_of_nothing_but_recurrent_layers_have_no_ffn_and_no_cache(name: str) -> None:
    architecture = architecture_of({"model_type": name, **CONFIGS[name][1]})
    assert {layer.words for layer in architecture.layers} == {("mamba",)}
    assert kv_bytes_per_token(architecture) == 0
    assert not [note for note in architecture.notes if "not known" in note]


def test_defaults_that_a_config_leaves_out_are_said() -> None:
    architecture = architecture_of({"model_type": "gemma3", **CONFIGS["gemma3"][1]})
    assert any("vocab_size" in note for note in architecture.notes)
