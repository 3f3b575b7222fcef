"""Names whose fields were settled beforehand: what is in the name is read, what is not stays null."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.places import DATA
from traceanalyzer.names import parse

EXPECTED: dict[str, list[dict[str, Any]]] = json.loads((DATA / "names_cases.json").read_text())
ENTRIES = [entry for case in EXPECTED.values() for entry in case]


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry["name"][:40] for entry in ENTRIES])
def test_reads_the_fields_the_name_holds(entry: dict[str, Any]) -> None:
    kernel = parse(entry["name"])
    assert kernel.kind == entry["kind"]
    if entry["tile"] is None:
        assert kernel.tile is None
    else:
        m, n, k = entry["tile"]
        allowed = [(m, n, k)]
        allowed += [(m, n, None)] if entry.get("accept_k_null") else []
        assert kernel.tile in allowed or (entry.get("accept_null") and kernel.tile is None)
    if "stages" in entry:
        assert kernel.stages == entry["stages"]
    if "cluster" in entry:
        assert kernel.cluster == tuple(entry["cluster"])
    if "lib" in entry:
        assert kernel.library == entry["lib"]


def test_the_column_major_libraries_are_marked_ambiguous() -> None:
    assert "column-major" in (parse("nvjet_sm90_tst_192x8_64x8_2x1_v_bz_splitK_TNT").ambiguous or "")
