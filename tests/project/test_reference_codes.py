"""Codes and environment variables: what the source has is what the reference tells of, no more and no less."""

from __future__ import annotations

import ast
import re

from tests.support import source_facts
from tests.support.places import ROOT

REFERENCE = ROOT / "docs" / "reference"
WARNINGS = (REFERENCE / "warnings.md").read_text(encoding="utf-8")
ENVIRONMENT = (REFERENCE / "environment.md").read_text(encoding="utf-8")


def test_every_code_in_the_source_is_documented_and_no_other() -> None:
    found, unread = source_facts.codes()
    assert unread == [], "say these codes so that they can be found"
    assert len(found) > 80
    assert set(re.findall(r"^\| `(\w+)` \|", WARNINGS, re.MULTILINE)) == found


def test_every_effect_that_the_doctor_knows_is_of_a_code() -> None:
    from traceanalyzer.commands.doctor.compute import EFFECTS

    assert set(EFFECTS) <= source_facts.codes()[0]


def test_no_cell_of_the_codes_is_left_out() -> None:
    for line in re.findall(r"^\| `.*$", WARNINGS, re.MULTILINE):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert all(cells), line


def test_codes_behind_parameters_loops_and_tables_are_found() -> None:
    found, _ = source_facts.codes()
    assert {"truncated_tail", "invalid_host_times", "pooled_points", "target"} <= found


def test_every_environment_variable_in_the_source_is_named() -> None:
    found = source_facts.variables()
    assert {"COLUMNS", "VLLM_TORCH_PROFILER_DIR", "TRITON_CACHE_DIR", "POLARS_MAX_THREADS"} <= found
    told = set(re.findall(r"`(_?[A-Z][A-Z_]+)`", ENVIRONMENT))
    assert found - told == set()


def test_defaults_that_name_a_variable_are_told() -> None:
    """Such as the default of --api-key-env, which is read under whatever name it has."""
    named = {
        keyword.value.value
        for source in source_facts.sources()
        if source.path.name == "command.py"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and source_facts.called(node) == "option" and "env" in ast.unparse(node.args[0])
        for keyword in node.keywords
        if keyword.arg == "default" and isinstance(keyword.value, ast.Constant)
    }
    assert named
    assert all(f"`{name}`" in ENVIRONMENT for name in named)


def test_every_exit_status_in_the_source_is_told() -> None:
    told = {int(status) for status in re.findall(r"^\| (\d) \|", ENVIRONMENT, re.MULTILINE)}
    used = {
        node.args[0].value
        for source in source_facts.sources()
        if source.path.name == "command.py"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and source_facts.called(node) == "exit"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }
    assert used <= told == {0, 1, 2}
