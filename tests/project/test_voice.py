"""Phrases that the project's text does not use: each stood in an output or a page once, and puzzled readers."""

from __future__ import annotations

import re

import pytest

from tests.support.house import modules
from tests.support.places import ROOT

SAID_OTHERWISE = {
    r"\ba unknown\b": "a step (phase unknown)",
    r"\bat the least\b": "at minimum",
    r"\b(?:can|could) be won\b": "can be saved",
    r"\ba win (?:is|would)\b": "saves",
    r"\bblocks out of line\b": "outliers",
    r"\bone a (?:rank|step|layer|file)\b": "one per rank",
    r"\bms a step\b": "ms per step",
    r"\blaunched in time, then\b": "queued on the GPU",
    r"\bWhat to attack is not known\b": "No recommendation: ...",
    r"\bclocks by single rank\b": "",
}
"""What is not written -> what is."""

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("phrase", SAID_OTHERWISE)
def test_the_product_and_its_pages_do_not_say(phrase: str) -> None:
    said = re.compile(phrase)
    places = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in (*modules(), *PAGES)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if said.search(line)
    ]
    assert places == []
