"""A model recognised from what a trace shows, or left unknown."""

from __future__ import annotations

import pytest

from traceanalyzer.model import TraceFacts, architecture_of, candidates, named, recognise_model

GPT_OSS = TraceFacts(layers=24, moe=True, period=2, weight_formats=frozenset({"mxfp4"}))


def test_gpt_oss_20b_is_told_by_its_layers_and_kernels() -> None:
    found = recognise_model(GPT_OSS)
    assert found is not None
    assert found.architecture.name == "openai/gpt-oss-20b"
    assert any("24 layers" in reason for reason in found.reasons)
    assert any("mxfp4" in reason for reason in found.reasons)


def test_windows_that_look_alike_do_not_rule_the_model_out() -> None:
    found = recognise_model(TraceFacts(layers=36, moe=True, period=1, weight_formats=frozenset({"mxfp4"})))
    assert found is not None
    assert found.architecture.name == "openai/gpt-oss-120b"


def test_a_layer_count_alone_proves_nothing() -> None:
    assert recognise_model(TraceFacts(layers=126)) is None
    assert [found.architecture.name for found in candidates(TraceFacts(layers=126))] == ["meta-llama/Llama-3.1-405B"]


def test_models_of_one_shape_are_named_together() -> None:
    found = recognise_model(TraceFacts(layers=61, moe=True, mla=True, experts=256))
    assert found is not None
    assert found.architecture.name == "deepseek-ai/DeepSeek-V3"
    assert found.same_shape == ("deepseek-ai/DeepSeek-R1",)


def test_several_fitting_shapes_give_none() -> None:
    facts = TraceFacts(layers=61, moe=True, mla=True)
    assert len(candidates(facts)) == 2
    assert recognise_model(facts) is None


@pytest.mark.parametrize(
    "facts",
    [
        TraceFacts(),
        TraceFacts(layers=25, moe=True, period=2, weight_formats=frozenset({"mxfp4"})),
        TraceFacts(layers=24, moe=False, weight_formats=frozenset({"mxfp4"})),
        TraceFacts(layers=24, moe=True, period=2, weight_formats=frozenset({"mxfp4"}), hidden=2048),
        TraceFacts(layers=24, moe=True, period=2, weight_formats=frozenset({"mxfp4"}), experts=64),
        TraceFacts(layers=24, moe=True, period=3, weight_formats=frozenset({"mxfp4"})),
        TraceFacts(layers=24, moe=True, period=2, weight_formats=frozenset({"bf16"})),
        TraceFacts(layers=24, moe=True, period=2, weight_formats=frozenset({"mxfp4"}), hidden_limit=2048),
    ],
)
def test_what_fits_no_model_or_shows_nothing_gives_none(facts: TraceFacts) -> None:
    assert recognise_model(facts) is None


def test_a_dense_model_needs_its_width() -> None:
    assert recognise_model(TraceFacts(layers=36, moe=False, hidden=4096, qk_norm=True)) is not None
    assert recognise_model(TraceFacts(layers=36, moe=False)) is None


def test_models_that_differ_in_what_was_not_seen_give_none() -> None:
    # Llama-3.1-8B and Mistral-7B differ in their vocabulary alone.
    facts = TraceFacts(layers=32, moe=False, hidden=4096)
    assert len(candidates(facts)) == 2
    assert recognise_model(facts) is None


def test_quantised_weights_do_not_rule_a_published_model_out() -> None:
    facts = TraceFacts(layers=32, moe=False, hidden=4096, vocab=128256, weight_formats=frozenset({"fp8"}))
    found = recognise_model(facts)
    assert found is not None
    assert found.architecture.name == "meta-llama/Llama-3.1-8B"


def test_models_of_the_user_can_be_chosen_from() -> None:
    own = architecture_of(
        {"model_type": "llama", "num_hidden_layers": 7, "hidden_size": 96, "num_attention_heads": 4,
         "intermediate_size": 128, "vocab_size": 100}, name="own"
    )  # fmt: skip
    found = recognise_model(TraceFacts(layers=7, hidden=96), [own, named("Qwen3-8B")])
    assert found is not None
    assert found.architecture.name == "own"
