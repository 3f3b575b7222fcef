"""Architectures from config.json: families, layer kinds, quantisation, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.model import ModelError, architecture_of, decode_step, load, named, ops, parameters, read_config

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 1000,
    "max_position_embeddings": 4096,
}
MOE = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32}


def model(**changes: Any) -> Any:
    return architecture_of({**LLAMA, **changes})


def attention(**changes: Any) -> list[str | None]:
    return [layer.attention for layer in model(**changes).layers]


def ffn(**changes: Any) -> list[str | None]:
    return [layer.ffn for layer in model(**changes).layers]


def test_the_sample_configs_are_read(shared: Path) -> None:
    kinds = {}
    for folder in sorted((shared / "models").iterdir()):
        architecture = read_config(folder)
        kinds[folder.name] = (len(architecture.layers), architecture.period, architecture.moe is not None)
        assert architecture.notes == ()
    assert kinds == {
        "gptoss_24": (24, 2, True),
        "llama_24": (24, 1, False),
        "qwen3_24": (24, 1, False),
        "qwen3moe_12": (12, 1, True),
    }


def test_a_config_file_and_its_directory_give_the_same_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    assert load(str(tmp_path)) == load(str(tmp_path / "config.json"))


def test_head_dim_defaults_to_hidden_over_heads_and_kv_heads_to_heads() -> None:
    without = {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"}
    architecture = architecture_of(without)
    assert (architecture.head_dim, architecture.kv_heads) == (8, 8)


def test_layer_types_decide_over_patterns() -> None:
    types = ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]
    assert attention(layer_types=types, sliding_window=16) == ["full", "sliding", "sliding", "full"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"model_type": "gemma3_text", "sliding_window_pattern": 2}, ["sliding", "full", "sliding", "full"]),
        ({"model_type": "gemma2"}, ["sliding", "full", "sliding", "full"]),
        ({"model_type": "cohere2"}, ["sliding", "sliding", "sliding", "full"]),
        ({"model_type": "gpt_oss", **MOE}, ["sliding", "full", "sliding", "full"]),
        ({"model_type": "mistral"}, ["sliding"] * 4),
        ({"model_type": "qwen2", "use_sliding_window": True, "max_window_layers": 3}, ["full"] * 3 + ["sliding"]),
        ({"model_type": "qwen2", "use_sliding_window": False, "max_window_layers": 3}, ["full"] * 4),
        ({"model_type": "qwen2", "max_window_layers": 3}, ["full"] * 4),
        ({"model_type": "mistral", "sliding_window": None}, ["full"] * 4),
        ({"model_type": "mistral", "sliding_window": 4096}, ["full"] * 4),
    ],
)
def test_sliding_layers_follow_the_family(changes: dict[str, Any], expected: list[str]) -> None:
    assert attention(**{"sliding_window": 16, **changes}) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}, ["moe"] * 4),
        ({"model_type": "qwen3_moe", **MOE, "mlp_only_layers": [1]}, ["moe", "dense", "moe", "moe"]),
        ({"model_type": "qwen3_moe", **MOE, "decoder_sparse_step": 2}, ["dense", "moe", "dense", "moe"]),
        ({"model_type": "deepseek_v2", **MOE, "first_k_dense_replace": 2}, ["dense", "dense", "moe", "moe"]),
        ({"model_type": "deepseek_v3", **MOE, "moe_layer_freq": [0, 1, 0, 1]}, ["dense", "moe", "dense", "moe"]),
        ({"model_type": "llama4_text", **MOE, "interleave_moe_layer_step": 2}, ["dense", "moe", "dense", "moe"]),
        ({"model_type": "llama4_text", **MOE, "moe_layers": [0]}, ["moe", "dense", "dense", "dense"]),
        ({"model_type": "jamba", **MOE, "expert_layer_period": 2, "expert_layer_offset": 1}, ["dense", "moe"] * 2),
        ({"model_type": "ernie4_5_moe", "moe_num_experts": 8, "moe_k": 2, "moe_layer_start_index": 1,
          "moe_intermediate_size": 32}, ["dense", "moe", "moe", "moe"]),
        ({"num_experts": 1}, ["dense"] * 4),
    ],
)  # fmt: skip
def test_moe_layers_follow_the_family(changes: dict[str, Any], expected: list[str]) -> None:
    assert ffn(**changes) == expected


def test_llama_4_chunks_rotated_layers_and_leaves_every_fourth_full() -> None:
    architecture = model(model_type="llama4_text", **MOE, interleave_moe_layer_step=1, attention_chunk_size=512)
    assert [layer.attention for layer in architecture.layers] == ["chunked"] * 3 + ["full"]
    assert [layer.rope for layer in architecture.layers] == [True] * 3 + [False]
    assert architecture.layers[0].window == 512


def test_hybrid_models_are_recognised() -> None:
    jamba = model(model_type="jamba", attn_layer_period=4, attn_layer_offset=2, mamba_d_state=16)
    assert [layer.attention for layer in jamba.layers] == ["mamba", "mamba", "full", "mamba"]
    assert jamba.mixer is not None
    nemotron = model(
        model_type="nemotron_h", hybrid_override_pattern="M-*-", mamba_num_heads=4, mamba_head_dim=32, ssm_state_size=16
    )
    assert [layer.words for layer in nemotron.layers] == [("mamba",), ("dense",), ("full",), ("dense",)]
    assert [nemotron.kind_of(i) for i in range(3)] == ["mamba", "dense", "full"]
    assert named("Qwen3-Next-80B-A3B").layers[3].attention == "full"


def test_recurrent_layers_of_unknown_size_leave_the_count_unknown() -> None:
    architecture = model(layer_types=["linear_attention"] * 3 + ["full_attention"])
    assert parameters(architecture).total is None
    assert any("unknown size" in note for note in architecture.notes)


def test_attention_of_an_unknown_kind_is_said_and_left_unknown() -> None:
    architecture = model(layer_types=["full_attention", "quantum_attention"] * 2)
    assert [layer.attention for layer in architecture.layers] == ["full", "other"] * 2
    assert parameters(architecture).total is None
    assert any("quantum_attention" in note for note in architecture.notes)
    assert [
        op.flops for op in ops(architecture, decode_step(1, 10)) if op.kind == "other" and op.name == "attention"
    ] == [
        None,
        None,
    ]


def test_state_keys_without_a_place_are_said() -> None:
    architecture = model(model_type="falcon_h1", mamba_d_state=16)
    assert any("recurrent" in note for note in architecture.notes)


def test_multi_head_latent_attention_is_read() -> None:
    mla = named("DeepSeek-V3").mla
    assert mla is not None
    assert (mla.q_rank, mla.kv_rank, mla.nope, mla.rope, mla.v) == (1536, 512, 128, 64, 128)
    lite = model(model_type="deepseek_v2", q_lora_rank=None, kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=4,
                 v_head_dim=8)  # fmt: skip
    assert lite.mla.q_rank is None
    assert [layer.attention for layer in lite.layers] == ["mla"] * 4


def test_the_text_part_of_a_multimodal_config_is_used() -> None:
    config = {"model_type": "mistral3", "text_config": {**LLAMA, "model_type": "mistral"}, "vision_config": {"a": 1}}
    architecture = architecture_of(config)
    assert architecture.model_type == "mistral"
    assert any("vision" in note for note in architecture.notes)


def test_an_unknown_model_type_is_derived_and_said() -> None:
    architecture = model(model_type="brand_new")
    assert len(architecture.layers) == 4
    assert any("brand_new" in note for note in architecture.notes)


QUANTISED = [
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8_block"),
    ({"quant_method": "fp8", "activation_scheme": "dynamic"}, "fp8"),
    ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}, "int4_zero_point"),
    ({"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True}, "int4"),
    ({"quant_method": "gptq", "bits": 8}, "int8_weight"),
    ({"quant_method": "mxfp4"}, "mxfp4"),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
    ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
    ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {
        "weights": {"num_bits": 8, "type": "float", "strategy": "channel"},
        "input_activations": {"num_bits": 8}}}}, "fp8"),
    ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {
        "weights": {"num_bits": 4, "type": "int", "group_size": 128, "symmetric": True},
        "input_activations": None}}}, "int4"),
    ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {
        "weights": {"num_bits": 4, "type": "float", "group_size": 16},
        "input_activations": {"num_bits": 4}}}}, "nvfp4"),
    ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {
        "weights": {"num_bits": 8, "type": "int", "strategy": "channel"},
        "input_activations": {"num_bits": 8}}}}, "int8"),
    ({"quant_method": "quark", "global_quant_config": {
        "weight": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}, "input_tensors": {"dtype": "fp8_e4m3"}}}, "fp8"),
    ({"quant_method": "quark", "global_quant_config": {
        "weight": {"dtype": "fp4", "qscheme": "per_group", "group_size": 32},
        "input_tensors": {"dtype": "fp4"}}}, "mxfp4_w4a4"),
    ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "int4", "group_size": 128}}}, "int4"),
]  # fmt: skip


@pytest.mark.parametrize(("section", "name"), QUANTISED)
def test_quantisation_is_read_per_class_of_op(section: dict[str, Any], name: str) -> None:
    architecture = model(model_type="qwen3_moe", **MOE, quantization_config=section)
    assert architecture.weights.experts.name == name
    assert architecture.weights.lm_head.name == "bf16"
    assert architecture.weights.attention.name == ("bf16" if name == "mxfp4" else name)


def test_modules_left_alone_keep_their_format() -> None:
    section = {
        "quant_method": "modelopt",
        "quant_algo": "NVFP4",
        "exclude_modules": ["model.layers.3.self_attn*", "model.layers.5.mlp.gate", "lm_head"],
        "kv_cache_quant_algo": "FP8",
    }
    architecture = model(quantization_config=section)
    assert architecture.weights.attention.name == "bf16"
    assert architecture.weights.ffn.name == "nvfp4"
    assert architecture.kv.name == "fp8"


def test_quark_tells_the_cache_by_what_its_modules_put_out() -> None:
    fp8 = {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}
    section = {
        "quant_method": "quark",
        "global_quant_config": {"weight": fp8, "input_tensors": fp8},
        "layer_quant_config": {name: {"output_tensors": fp8} for name in ("*k_proj", "*v_proj")},
        "export": {"kv_cache_group": ["*k_proj", "*v_proj"]},
        "exclude": ["lm_head", "model.layers.0.self_attn.o_proj"],
    }
    architecture = model(quantization_config=section)
    assert (architecture.weights.ffn.name, architecture.weights.attention.name) == ("fp8", "bf16")
    assert architecture.kv.name == "fp8"


def test_modelopts_own_file_beside_the_config_counts(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    (tmp_path / "hf_quant_config.json").write_text(json.dumps({"quantization": {"quant_algo": "NVFP4"}}))
    assert read_config(tmp_path).weights.ffn.name == "nvfp4"


@pytest.mark.parametrize("whole", [None, 7, {"weight": [{"dtype": "fp4"}, {"dtype": "fp8_e4m3"}]}, {"weight": {}}])
def test_what_quark_does_not_tell_is_said_and_not_guessed(whole: Any) -> None:
    architecture = model(quantization_config={"quant_method": "quark", "global_quant_config": whole, "export": 1})
    assert architecture.weights.ffn.name == "bf16"
    assert any("quark" in note for note in architecture.notes)


def test_an_unknown_quantisation_is_said_and_not_guessed() -> None:
    architecture = model(quantization_config={"quant_method": "quip"})
    assert architecture.weights.ffn.name == "bf16"
    assert any("quip" in note for note in architecture.notes)


@pytest.mark.parametrize("key", ["num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size"])
@pytest.mark.parametrize("value", [None, 0, -1, "8", 3.5, True, float("nan"), float("inf"), 10**12, []])
def test_a_missing_or_absurd_key_is_named(key: str, value: Any) -> None:
    with pytest.raises(ModelError, match=key):
        model(**{key: value})


@pytest.mark.parametrize(
    ("changes", "named_key"),
    [
        ({"num_key_value_heads": 3}, "num_key_value_heads"),
        ({"num_attention_heads": 7, "num_key_value_heads": 7}, "num_attention_heads"),
        ({"layer_types": ["full_attention"]}, "layer_types"),
        ({"num_experts": 8, "moe_intermediate_size": 32}, "num_experts_per_tok"),
        ({**MOE, "num_experts_per_tok": 9}, "num_experts_per_tok"),
        ({"hybrid_override_pattern": "MX*-"}, "hybrid_override_pattern"),
        ({"quantization_config": 7}, "quantization_config"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
        ({**MOE, "first_k_dense_replace": "x"}, "first_k_dense_replace"),
        ({**MOE, "mlp_only_layers": "x"}, "mlp_only_layers"),
    ],
)
def test_contradictions_are_named(changes: dict[str, Any], named_key: str) -> None:
    with pytest.raises(ModelError, match=named_key):
        model(**changes)


@pytest.mark.parametrize("content", ["", "[1]", "{", "[" * 100_000, '"x"'])
def test_a_file_that_is_no_config_is_refused_by_its_name(tmp_path: Path, content: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(content)
    with pytest.raises(ModelError, match=r"config\.json"):
        read_config(file)


def test_a_missing_file_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"nothing\.json"):
        load(str(tmp_path / "nothing.json"))


JUNK = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.integers(), max_size=4)
)
KEYS_READ = sorted(
    {*LLAMA, *MOE, "layer_types", "sliding_window", "sliding_window_pattern", "use_sliding_window", "max_window_layers",
     "kv_lora_rank", "first_k_dense_replace", "moe_layer_freq", "decoder_sparse_step", "mlp_only_layers",
     "attn_layer_period", "attn_layer_offset", "full_attention_interval", "quantization_config", "text_config",
     "partial_rotary_factor", "torch_dtype", "head_dim", "n_shared_experts", "no_rope_layers", "moe_layers",
     "expert_layer_period", "expert_layer_offset", "moe_layer_start_index", "hybrid_override_pattern",
     "linear_num_value_heads", "mamba_num_heads", "mamba_d_state", "attention_bias", "interleave_moe_layer_step"}
)  # fmt: skip
TYPES = st.sampled_from(["llama", "llama4_text", "jamba", "qwen3_moe", "deepseek_v3", "gpt_oss", "nemotron_h", "x", ""])


@given(st.dictionaries(st.sampled_from(KEYS_READ), JUNK, max_size=4), TYPES)
def test_junk_in_a_config_is_read_or_refused_but_never_crashes(junk: dict[str, Any], model_type: str) -> None:
    message = ""
    try:
        parameters(architecture_of({**LLAMA, **MOE, **junk, "model_type": model_type}))
    except ModelError as error:
        message = str(error)
    assert "\n" not in message


@pytest.mark.parametrize(
    ("given_name", "found"),
    [
        ("GPT-OSS-20B", "openai/gpt-oss-20b"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B"),
        ("llama3.1-70b", "meta-llama/Llama-3.1-70B"),
        ("llama-2-70b-chat-hf", "meta-llama/Llama-2-70b"),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek-ai/DeepSeek-V3"),
        ("mixtral-8x7b-instruct-v0.1", "mistralai/Mixtral-8x7B"),
        ("Qwen3 8B", "Qwen/Qwen3-8B"),
        ("google/gemma-3-27b-it", "google/gemma-3-27b"),
    ],
)
def test_built_in_names_are_found_however_they_are_written(given_name: str, found: str) -> None:
    assert named(given_name).name == found


def test_an_ending_that_names_a_format_changes_the_weights_and_says_so() -> None:
    architecture = named("Qwen/Qwen3-8B-FP8")
    assert architecture.weights.ffn.name == "fp8"
    assert any("FP8".lower() in note for note in architecture.notes)


def test_an_unknown_name_lists_similar_ones() -> None:
    with pytest.raises(ModelError, match="openai/gpt-oss-20b"):
        named("gpt-oss-21b")
    with pytest.raises(ModelError, match=r"config\.json"):
        named("zzz")
