"""``traceanalyzer gpus``."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from traceanalyzer.cli.main import cli


def test_the_list_names_every_gpu_in_full() -> None:
    result = CliRunner().invoke(cli, ["gpus"])
    assert result.exit_code == 0
    assert "MI300X" in result.output
    assert "2,615" in result.output
    assert "…" not in result.output


def test_json_gives_source_confidence_and_both_roofs() -> None:
    document = json.loads(CliRunner().invoke(cli, ["gpus", "--json"]).stdout)
    assert document["schema"] == "traceanalyzer/gpus/1"
    assert len(document["gpus"]) >= 33
    for gpu in document["gpus"]:
        assert gpu["source"]
        assert gpu["confidence"]
        assert gpu["achievable_gbps"] < gpu["bandwidth_gbps"]


def test_one_gpu_is_shown_with_its_source() -> None:
    result = CliRunner().invoke(cli, ["gpus", "mi300x"])
    assert result.exit_code == 0
    assert "AMD docs" in result.output
    assert "4,234 GB/s" in result.output


def test_an_unknown_gpu_is_a_usage_error_as_in_every_command() -> None:
    result = CliRunner().invoke(cli, ["gpus", "Voodoo 2"])
    assert result.exit_code == 2
    assert "Voodoo 2" in result.stderr.splitlines()[-1]


def test_gpus_of_a_file_come_first(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[[gpu]]\nname = "Mine"\nbandwidth_gbps = 1000\npeak_tflops = { bf16 = 100 }\n')
    document = json.loads(CliRunner().invoke(cli, ["gpus", "--gpu-file", str(file), "--json"]).stdout)
    assert document["gpus"][0]["name"] == "Mine"
    file.write_text("[[gpu]]")
    assert CliRunner().invoke(cli, ["gpus", "--gpu-file", str(file)]).exit_code == 1
