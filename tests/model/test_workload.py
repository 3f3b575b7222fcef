"""Attention pairs, cache reads and markers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.model import ModelError, Parallel, decode_step, from_lengths, from_marker, from_sums
from traceanalyzer.model.workload import chunk_pairs, full_pairs, window_pairs


def visible(q: int, p: int, first: int) -> int:
    """Tokens that query ``q`` of a sequence with ``p`` past ones sees when it sees nothing before ``first``."""
    return p + q - first + 1


@given(st.integers(1, 60), st.integers(0, 60), st.integers(1, 70))
def test_pairs_equal_those_counted_token_by_token(q: int, p: int, limit: int) -> None:
    assert full_pairs(q, p) == sum(visible(i, p, 0) for i in range(q))
    assert window_pairs(q, p, limit) == sum(min(visible(i, p, 0), limit) for i in range(q))
    assert chunk_pairs(q, p, limit) == sum(visible(i, p, (p + i) // limit * limit) for i in range(q))


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 200)), min_size=1, max_size=8))
def test_the_sums_of_a_detailed_marker_give_exact_pairs(lengths: list[tuple[int, int]]) -> None:
    sums = [sum(column) for column in zip(*((q, q + p, q * q, q * (q + p)) for q, p in lengths), strict=True)]
    label = f"execute_{sums[0]}_context_{len(lengths)}(sq{sums[0]}sk{sums[1]}sqsq{sums[2]}sqsk{sums[3]})" + (
        "_generation_0(sq0sk0sqsq0sqsk0)"
    )
    workload = from_marker(label)
    assert workload is not None
    assert workload.groups[0].pairs == sum(full_pairs(q, p) for q, p in lengths)
    assert workload.kv_tokens == sums[1]


def test_a_mixed_detailed_marker_keeps_both_phases_apart() -> None:
    label = "execute_130_context_1(sq100sk100sqsq10000sqsk10000)_generation_30(sq30sk3000sqsq30sqsk3000)"
    workload = from_marker(label)
    assert workload is not None
    assert [(group.decode, group.requests, group.pairs) for group in workload.groups] == [
        (False, 1, 5050.0),
        (True, 30, 3000.0),
    ]
    assert (workload.tokens, workload.sequences, workload.sampled) == (130, 31, 31)


@pytest.mark.parametrize(
    ("label", "sequences", "tokens"),
    [
        ("execute_context_0(0)_generation_4(4)", 4, 4),
        ("execute_context_2(700)_generation_4(4)", 6, 704),
        ("step[DECODE bs=32]", 32, 32),
        ("step[EXTEND bs=15 toks=15360]", 15, 15360),
    ],
)
def test_plain_markers_give_the_work_but_not_the_context(label: str, sequences: int, tokens: int) -> None:
    workload = from_marker(label)
    assert workload is not None
    assert (workload.sequences, workload.tokens, workload.kv_tokens) == (sequences, tokens, None)
    assert any("unknown" in note for note in workload.basis)


@pytest.mark.parametrize(
    "label",
    [None, "", "ProfilerStep#3", "execute_new_2_cached_3", "execute_context_0(0)_generation_0(0)",
     "execute_context_4(2)_generation_0(0)", "step[EXTEND bs=15]", "x" * 5000,
     "execute_5_context_0(sq0sk0sqsq0sqsk0)_generation_5(sq5sk3sqsq5sqsk3)"],
)  # fmt: skip
def test_markers_that_do_not_tell_the_work_give_none(label: str | None) -> None:
    assert from_marker(label) is None


def test_speculative_decoding_checks_every_new_token_against_lm_head() -> None:
    workload = from_marker("execute_12_context_0(sq0sk0sqsq0sqsk0)_generation_4(sq12sk412sqsq36sqsk1236)")
    assert workload is not None
    assert (workload.sequences, workload.tokens, workload.sampled) == (4, 12, 12)


def test_windows_of_known_lengths_are_exact_and_of_sums_an_upper_bound() -> None:
    lengths = [(1, 9), (1, 299)]
    exact = from_lengths(lengths).groups[0].sliding(128)
    assert (exact.pairs, exact.kv_tokens, exact.exact) == (10 + 128, 10 + 128, True)
    summed = decode_step(2, 310).groups[0].sliding(128)
    assert summed.pairs == 256
    assert not summed.exact


def test_prompts_and_decodes_are_told_apart_by_length() -> None:
    workload = from_lengths([(1, 10), (8, 0), (1, 0)])
    assert [(group.decode, group.requests) for group in workload.groups] == [(False, 2), (True, 1)]


def test_a_sequence_of_its_first_token_alone_is_a_prompt() -> None:
    assert from_lengths([(1, 0)]).groups[0].decode is False


@pytest.mark.parametrize("lengths", [[], [(0, 5)], [(1, -1)]])
def test_absurd_lengths_are_refused(lengths: list[tuple[int, int]]) -> None:
    with pytest.raises(ModelError):
        from_lengths(lengths)


@pytest.mark.parametrize("sums", [(0, 0, 0), (4, 2, 100), (4, 4, 2), (-1, 4, 4)])
def test_absurd_sums_are_refused(sums: tuple[int, int, int]) -> None:
    with pytest.raises(ModelError):
        from_sums(generation=sums)


@pytest.mark.parametrize("degrees", [{"tp": 0}, {"pp": -1}, {"ep": 3}, {"tp": 2, "dp": 2, "ep": 2}])
def test_layouts_that_cannot_be_are_refused(degrees: dict[str, int]) -> None:
    with pytest.raises(ModelError):
        Parallel(**degrees)
