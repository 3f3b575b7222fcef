"""Lower bounds of dependencies: every one has one, in a form that pip can be held to."""

from __future__ import annotations

import pytest

from tests.support.lowest_bounds import lowest, project_table


def test_every_dependency_has_a_lower_bound() -> None:
    lines = lowest(project_table())
    assert len(lines) == len(project_table()["dependencies"])
    assert all("==" in line for line in lines)


def test_a_dependency_without_one_is_named() -> None:
    with pytest.raises(ValueError, match="numpy<3"):
        lowest({"dependencies": ["polars>=1.36.1", "numpy<3"]})


def test_markers_and_extras_are_kept() -> None:
    table = {
        "dependencies": ["tomli>=2; python_version < '3.11'"],
        "optional-dependencies": {"xlsx": ["xlsxwriter>=3.2"]},
    }
    assert lowest(table, ("xlsx",)) == ['tomli==2; python_version < "3.11"', "xlsxwriter==3.2"]
