"""Demangling of what kernels' template arguments are made of."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traceanalyzer.names.demangle import demangle


@pytest.mark.parametrize(
    ("mangled", "demangled"),
    [
        ("_ZN4cute5tupleIJNS_1CILi1EEES2_EEE", "cute::tuple<cute::C<1>, cute::C<1>>"),
        ("_ZN5aiter3addIDF16bfLb1EEEvPf", "aiter::add<__bf16, float, true>"),
        ("_Z5plainPfi", "plain"),
        ("_Z9templatedIjLin3EEvv", "templated<unsigned int, -3>"),
        ("_ZN1a1bIPKfRiEEvv", "a::b<float const*, int&>"),
        ("_ZN1a1bILNS_4EnumE2ELj7EEEvv", "a::b<(a::Enum)2, 7u>"),
        ("_ZN1aL1bEv", None),
        ("_ZN12_GLOBAL__N_13runIfEEvv", "(anonymous namespace)::run<float>"),
        ("_ZN1a1bISt4plusIfESaIfEEEvv", "a::b<std::plus<float>, std::allocator<float>>"),
        ("_ZN7ck_tile6kentryILi1ENS_4FmhaINS_3seqIJLi1ELi2EEEENS2_IJEEEEEEEvv",
         "ck_tile::kentry<1, ck_tile::Fmha<ck_tile::seq<1, 2>, ck_tile::seq<>>>"),
    ],
)  # fmt: skip
def test_demangles(mangled: str, demangled: str | None) -> None:
    assert demangle(mangled) == demangled


@pytest.mark.parametrize(
    "name",
    ["plain", "_Z", "_ZN", "_ZNE", "_ZN9999999x", "_ZN1aIXadL_Z1bEEEEvv", "_ZN1aIS9_EEvv", "_ZN1aIUlvE_EEvv"],
)
def test_what_is_not_covered_is_left_alone(name: str) -> None:
    assert demangle(name) is None


def test_a_name_that_doubles_at_every_substitution_is_given_up() -> None:
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    doubling = "".join(f"1xIS{digits[at]}_S{digits[at]}_E" for at in range(1, 36, 2))
    assert demangle(f"_Z1aI1xIiiE{doubling[:10]}Evv") == "a<x<int, int>, x<x<int, int>, x<int, int>>>"
    assert demangle(f"_Z1aI1xIiiE{doubling}Evv") is None


def test_deep_nesting_is_given_up() -> None:
    assert demangle("_Z1a" + "I1b" * 30_000) is None


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.sampled_from(["N", "S_", "S0_", "1a", "1bI", "I", "J", "E", "Li1E", "P", "DF16b", "i", "St"])).map(
        "".join
    )
)
def test_no_input_raises(body: str) -> None:
    text = demangle("_Z" + body)
    assert text is None or text
