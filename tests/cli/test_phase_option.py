"""A phase that no complete step has: every command says which steps there are and what to do, with status 1."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.places import CASES
from traceanalyzer.cli.main import cli

COMMANDS = {
    "hotspots": ("hotspots", "TRACE"),
    "hotspots --json": ("hotspots", "TRACE", "--json"),
    "roofline": ("roofline", "TRACE"),
    "blocks": ("blocks", "TRACE"),
    "diff": ("diff", "TRACE", "TRACE"),
    "report": ("report", "TRACE", "-o", "OUT/page.html"),
    "export": ("export", "csv", "TRACE", "-o", "OUT/tables"),
    "tune plan": ("tune", "plan", "TRACE"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_steps_and_what_to_do_are_said(name: str, tmp_path: Path) -> None:
    trace = str(CASES / "201_vllm_native.json.gz")
    words = [word.replace("TRACE", trace).replace("OUT", str(tmp_path)) for word in COMMANDS[name]]
    result = CliRunner().invoke(cli, [*words, "--phase", "training", "--no-cache"])
    assert result.exit_code == 1, result.output
    told = "has no complete training step; it has 5 complete steps: 1 prefill, 3 decode, 1 mixed. Use --phase decode"
    assert told in result.stderr
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_a_mean_over_several_phases_counts_them() -> None:
    trace = str(CASES / "201_vllm_native.json.gz")
    hotspots = CliRunner().invoke(cli, ["hotspots", trace, "--no-cache"]).stdout
    assert "1 prefill, 3 decode, 1 mixed" in " ".join(hotspots.split())
    diff = CliRunner().invoke(cli, ["diff", trace, trace, "--no-cache"]).stdout
    assert "a mean over steps of different phases, as often as before: 3 decode, 1 mixed, 1 prefill" in " ".join(
        diff.split()
    )
