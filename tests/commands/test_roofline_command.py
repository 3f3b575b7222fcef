"""The command: its formats, its plot, its errors."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.places import CASES
from traceanalyzer.cli.main import cli

SHAPES = str(CASES / "403_roofline_shapes.json")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["roofline", *arguments, "--no-cache"])


@pytest.fixture(scope="module")
def sample(request: pytest.FixtureRequest) -> str:
    folder: Path = request.getfixturevalue("samples")
    return str(folder / "gptoss20b_decode_synthetic.json.gz")


@pytest.mark.parametrize("width", [80, 100])
def test_the_table_fits_a_terminal_and_ends_with_what_to_attack(
    sample: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    result = run(sample)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= width
    assert "openai/gpt-oss-20b (inferred) on Radeon 8060S" in lines[0]
    assert any(line.startswith("floor") for line in lines[1:3])
    last = result.stdout.rsplit("\n\n", 1)[-1]
    assert last.startswith("Attack moe_gate_up first")


@pytest.mark.parametrize("width", [40, 60])
def test_a_narrow_terminal_gets_fewer_columns_and_whole_figures(
    sample: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run(sample, "--limit", "0").stdout.splitlines()
    assert max(map(len, lines)) <= width
    heading = next(at for at, line in enumerate(lines) if line.startswith("work"))
    assert lines[heading].split()[:2] == ["work", "µs"]
    rows = json.loads(run(sample, "--json").stdout)["rows"]
    table = lines[heading + 2 : heading + 2 + len(rows)]
    figures = [f"{row['measured_us']:,.1f}" for row in rows]
    assert all(f" {figure} " in line for line, figure in zip(table, figures, strict=True))
    assert lines[heading + 2 + len(rows)].startswith("  no room for n, %, FLOP/B")


def test_csv_has_a_row_for_each_of_json(sample: str) -> None:
    rows = list(csv.DictReader(io.StringIO(run(sample, "--csv").stdout)))
    document = json.loads(run(sample, "--json").stdout)
    assert [row["role"] for row in rows] == [row["role"] for row in document["rows"]]
    assert float(rows[0]["measured_us"]) == document["rows"][0]["measured_us"]


def test_what_if_is_shown_and_in_json(sample: str) -> None:
    text = run(sample, "--assume", "moe_down=0.8", "--assume", "moe_gate_up=80%").stdout
    assert "If moe_down reached 80.0 % of its roof" in text
    assert "TPOT" in text
    document: dict[str, Any] = json.loads(run(sample, "--assume", "moe_down=0.8", "--json").stdout)
    effect = document["what_if"]
    row = next(row for row in document["rows"] if row["role"] == "moe_down")
    assert effect["assumptions"][0]["after_us"] == pytest.approx(row["floor_us"] / 0.8)
    saved = row["measured_us"] - row["floor_us"] / 0.8
    assert effect["tpot_us"]["before"] - effect["tpot_us"]["after"] == pytest.approx(saved)


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_plot_is_written_whole(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"roofline.{ending}"
    result = run(SHAPES, "--plot", str(path))
    assert result.exit_code == 0, result.output
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert path.read_bytes().startswith(starts[ending])
    assert list(tmp_path.iterdir()) == [path]


def test_the_plot_draws_both_roofs_and_names_every_point(tmp_path: Path, sample: str) -> None:
    path = tmp_path / "roofline.svg"
    run(sample, "--plot", str(path))
    text = path.read_text(encoding="utf-8")
    for words in ("peak bf16", "achievable", "moe_gate_up 5", "moe_down 2", "lm_head", "GB/s", "(inferred)"):
        assert words in text
    assert "moe_routing" in text.split("not drawn")[1]


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31m", "$x_{1}$", "名前"])
def test_names_in_a_plot_are_harmless(tmp_path: Path, name: str) -> None:
    document = json.loads(Path(SHAPES).read_text(encoding="utf-8"))
    for event in document["traceEvents"]:
        if event.get("cat") == "kernel":
            event["name"] = f"gemm {name} {event['name']}"
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps(document), encoding="utf-8")
    result = run(str(trace), "--plot", str(tmp_path / "plot.png"))
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "gpt-oss-21b"], "similar names are"),
        (["--gpu", "H99"], "is not known"),
        (["--plot", "roofline.txt"], "--plot writes .png"),
        (["--assume", "moe_down"], "role=share"),
        (["--assume", "moe_down=0.8"], "not among the rows"),
        (["--step", "4"], "no step 4"),
        (["--json", "--csv"], "exclude each other"),
    ],
)
def test_usage_errors_say_what_to_do(arguments: list[str], words: str) -> None:
    result = run(SHAPES, *arguments)
    assert result.exit_code == 2
    assert words in result.output
    assert "Traceback" not in result.output


def test_a_gpu_of_ones_own_can_be_described(tmp_path: Path) -> None:
    file = tmp_path / "gpus.toml"
    file.write_text('[[gpu]]\nname = "X1"\nbandwidth_gbps = 10000\npeak_tflops = { bf16 = 2000 }\n')
    document = json.loads(run(SHAPES, "--gpu-file", str(file), "--json").stdout)
    assert document["gpu"]["name"] == "X1"
    assert document["gpu"]["source"] == "option"
    assert all(row["plausible"] for row in document["rows"])


def test_a_plot_without_anything_to_draw_is_refused(tmp_path: Path) -> None:
    result = run(str(CASES / "000_baseline.json"), "--plot", str(tmp_path / "plot.png"))
    assert result.exit_code == 1
    assert "--model" in result.output
    assert not list(tmp_path.iterdir())


def test_a_cpu_only_trace_has_no_roofs() -> None:
    document = json.loads(run(str(CASES / "109_cpu_only.json"), "--model", "Qwen3-8B", "--json").stdout)
    assert {row["bound"] for row in document["rows"]} == {"unknown"}
    assert any("CPU ops only" in line for line in document["basis"])
    assert "record GPU activity" in document["findings"][-1]["message"]


def test_hotspots_take_bounds_from_the_roofline(sample: str) -> None:
    result = CliRunner().invoke(cli, ["hotspots", sample, "--model", "gpt-oss-20b", "--json", "--no-cache"])
    rows = json.loads(result.stdout)["rows"]
    assert rows[0]["role"] == "moe_gate_up"
    assert rows[0]["bound"] == "memory"
    known = [row["headroom_us"] for row in rows if row["headroom_us"] is not None]
    assert known == sorted(known, reverse=True)
    assert len(known) > 10
    text = CliRunner().invoke(cli, ["hotspots", sample, "--gpu", "Radeon 8060S", "--no-cache"]).stdout
    assert max(map(len, text.splitlines())) <= 100
    assert "headroom" in text
    plain = CliRunner().invoke(cli, ["hotspots", sample, "--json", "--no-cache"])
    assert {row["bound"] for row in json.loads(plain.stdout)["rows"]} == {None}


def test_a_step_of_another_phase_than_the_asked_one_is_refused(sample: str) -> None:
    result = run(sample, "--step", "3", "--phase", "prefill")
    assert result.exit_code == 2
    assert "no step fits --step and --phase: the phase of step 3 is decode" in result.stderr
