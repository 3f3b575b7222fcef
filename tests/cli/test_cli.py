from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from synthetic import generate, write
from synthetic.models import llama_decode
from tests.support.places import CASES
from traceanalyzer.cli.main import cli


def invoke(*arguments: object):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def trace(tmp_path_factory) -> Path:
    return write(generate(llama_decode(layers=4, steps=3)), tmp_path_factory.mktemp("cli") / "trace.json.gz")


@pytest.mark.parametrize("command", sorted(cli.declared()))
def test_every_command_has_help(command) -> None:
    result = invoke(command, "--help")
    assert result.exit_code == 0, result.output
    assert len(result.output.splitlines()[2].strip()) > 20


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, contextlib\n"
        "from traceanalyzer.cli.main import cli\n"
        "with contextlib.suppress(SystemExit): cli(['--help'])\n"
        "heavy = {'polars', 'torch', 'pandas', 'matplotlib', 'triton', 'numpy', 'rich'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_python_m_traceanalyzer_works() -> None:
    done = subprocess.run([sys.executable, "-m", "traceanalyzer", "--version"], capture_output=True, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith(b"traceanalyzer")


@pytest.mark.parametrize("command", ["ingest", "hotspots", "blocks", "idle"])
@pytest.mark.parametrize(
    ("content", "said"),
    [(None, ""), (b"", "empty"), (b"hello", "JSON"), (b'{"a": 1}', "traceEvents"), (b'{"traceEvents": []}', "")],
)
def test_unusable_input_ends_in_one_line_and_status_1(tmp_path, command, content, said) -> None:
    path = tmp_path / "bad trace.json"
    if content is not None:
        path.write_bytes(content)
    result = invoke(command, path, "--no-cache")
    assert result.exit_code == 1
    assert result.stdout == ""
    (line,) = result.stderr.strip().splitlines()
    assert "bad trace.json" in line
    assert said in line
    assert [p.name for p in tmp_path.iterdir()] in ([], ["bad trace.json"])


def test_a_path_with_control_characters_stays_on_one_line(tmp_path) -> None:
    result = invoke("ingest", tmp_path / "two\nlines\x1b[31m.json")
    assert result.exit_code == 1
    assert len(result.stderr.strip().splitlines()) == 1
    assert "\x1b" not in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["ingest"],
        ["hotspots", "x.json", "--by", "colour"],
        ["hotspots", "x.json", "--phase", "noon"],
        ["hotspots", "x.json", "--limit", "-1"],
        ["hotspots", "x.json", "--json", "--csv"],
        ["nonsense"],
        ["diff", "only-one.json"],
    ],
)
def test_wrong_usage_ends_with_status_2(arguments) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_a_step_that_does_not_exist_is_wrong_usage(trace) -> None:
    result = invoke("hotspots", trace, "--step", 99)
    assert result.exit_code == 2
    assert "no step 99" in result.stderr


@pytest.mark.parametrize("case", ["000_baseline.json", "305_pp2", "012_ranks.tar.gz"])
def test_the_commands_that_ingest_offers_run(case) -> None:
    lines = [line.split() for line in invoke("ingest", CASES / case).stdout.splitlines()]
    offered = [words[1:] for words in lines if words[:1] == ["traceanalyzer"]]
    assert len(offered) >= 4
    assert (offered[0][0] == "ranks") is (case != "000_baseline.json")
    for words in offered:
        result = invoke(*words)
        assert result.exit_code == 0, (words, result.output)


def test_a_step_is_shown_as_one_and_not_as_the_whole_trace(trace) -> None:
    shown = invoke("hotspots", trace, "--step", 1, "--phase", "decode").stdout
    assert "of kernel time, step 1, by kernel" in shown
    assert "whole trace" not in shown
    assert "mean over" not in shown


def test_a_step_of_another_phase_is_refused(trace) -> None:
    refused = invoke("hotspots", trace, "--step", 1, "--phase", "prefill")
    assert refused.exit_code == 2
    assert "the phase of step 1 is decode" in refused.stderr


def test_several_ranks_need_a_choice() -> None:
    refused = invoke("hotspots", CASES / "303_allreduce_wait", "--no-cache")
    assert refused.exit_code == 2
    assert "--rank" in refused.stderr
    assert invoke("hotspots", CASES / "303_allreduce_wait", "--rank", 1, "--no-cache").exit_code == 0


@pytest.mark.parametrize("command", ["ingest", "hotspots", "idle", "blocks"])
def test_json_is_one_document_and_the_only_thing_on_stdout(trace, command) -> None:
    result = invoke(command, trace, "--json", "--no-cache")
    assert json.loads(result.stdout)["schema"].startswith("traceanalyzer/")
    assert result.stdout.count("\n") == 1


def test_a_kernel_name_cannot_colour_the_terminal_or_run_as_markup(tmp_path) -> None:
    result = invoke("hotspots", CASES / "017_nasty_names.json", "--no-cache")
    assert "[red]bold[/red]" in result.stdout
    assert "\x1b" not in result.stdout


def test_csv_keeps_its_columns_and_defuses_formulas() -> None:
    result = invoke("hotspots", CASES / "017_nasty_names.json", "--csv", "--no-cache")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert len(rows) == 11
    assert None not in {key for row in rows for key in row}
    names = [row["name"] for row in rows]
    assert "'=SUM(A1:A9)" in names
    assert "'@cmd" in names
    assert "'-1+2" in names
    assert not any(name.startswith(("=", "+", "-", "@")) for name in names)


def test_numbers_in_csv_are_not_quoted_as_formulas(trace) -> None:
    result = invoke("diff", trace, trace, "--csv", "--no-cache")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert rows
    assert all(float(row["delta_us"]) == 0 for row in rows)


def test_an_output_directory_is_a_trace_for_every_command(trace, tmp_path) -> None:
    kept = tmp_path / "kept"
    assert invoke("ingest", trace, "--output", kept, "--no-cache").exit_code == 0
    from_file = json.loads(invoke("hotspots", trace, "--json", "--no-cache").stdout)
    from_store = json.loads(invoke("hotspots", kept, "--json", "--no-cache").stdout)
    assert from_store == from_file


def test_tables_fit_80_columns(trace, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for command in (["ingest", trace], ["hotspots", trace], ["idle", trace], ["diff", trace, trace]):
        result = invoke(*command, "--no-cache")
        # Commands to paste are never broken.
        tables = [line for line in result.stdout.splitlines() if not line.startswith("  traceanalyzer ")]
        assert max(map(len, tables)) <= 80
