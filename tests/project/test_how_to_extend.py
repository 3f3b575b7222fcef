"""The examples of CONTRIBUTING.md, as they stand there: one file or one row each, found without being listed."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module, resources
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from tests.support.places import ROOT
from traceanalyzer.cli.main import cli
from traceanalyzer.hardware import find_gpu, gpus, known_gpus, roofs
from traceanalyzer.model import known, named, parameters
from traceanalyzer.names import parse, registry
from traceanalyzer.names import parsing as reading

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
Add = Callable[[str], None]


def block(heading: str, language: str = "python") -> str:
    """Return the one code block of a section."""
    section = TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    (code,) = re.findall(rf"^```{language}\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return str(code)


@pytest.fixture
def add(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Add]:
    """Return a function that puts the module of a section into its package, until the test ends."""
    made = []

    def put(heading: str) -> None:
        section = TEXT.partition(f"\n## {heading}\n")[2]
        path = Path(re.findall(r"`(traceanalyzer/[\w/]+\.py)`:", section)[0])
        assert not (ROOT / path).exists(), f"{path} is in the package now: choose another example"
        home = path.parent if path.parent.is_dir() else path.parent.parent
        package = import_module(".".join(home.parts))
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
        place = tmp_path / path.relative_to(home)
        place.parent.mkdir(exist_ok=True)
        if home != path.parent:
            (place.parent / "__init__.py").touch()
            made.append(".".join(path.parent.parts))
        place.write_text(block(heading), encoding="utf-8")
        made.append(".".join(path.with_suffix("").parts))

    yield put
    for module in reversed(made):
        sys.modules.pop(module, None)
        vars(sys.modules[module.rpartition(".")[0]]).pop(module.rpartition(".")[2], None)


@pytest.fixture
def sample(samples: Path) -> str:
    return str(samples / "gptoss20b_decode_synthetic.json.gz")


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli, [*arguments, "--no-cache"])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_naming_scheme_is_one_module(add: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "zebra_gemm_bf16_64x128x32"
    assert parse(name).scheme != "zebra"
    monkeypatch.setattr(registry, "_SCHEMES", list(registry.schemes()))
    add("A naming scheme")
    try:
        for cached in (registry.schemes, registry._outlined, registry._kept_candidates, reading._cached):
            cached.cache_clear()
        kernel = parse(name)
    finally:
        monkeypatch.undo()
        for cached in (registry.schemes, registry._outlined, registry._kept_candidates, reading._cached):
            cached.cache_clear()
    assert (kernel.scheme, kernel.kind, kernel.tile) == ("zebra", "gemm", (64, 128, 32))
    assert kernel.dtypes.weight == "bf16"


def test_a_gpu_is_one_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = resources.files("traceanalyzer.hardware").joinpath("gpus.csv").read_text(encoding="utf-8")
    row = block("A GPU", "csv")
    assert len(next(csv.reader([row]))) == len(next(csv.reader([table.splitlines()[0]])))
    (tmp_path / "gpus.csv").write_text(table + row, encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(gpus.resources, "files", lambda _: tmp_path)
        known_gpus.cache_clear()
        try:
            gpu = find_gpu("NVIDIA Z100")
        finally:
            known_gpus.cache_clear()
    assert gpu.name == "Z100"
    assert roofs(gpu, "bf16").peak_tflops == 1200


def test_a_model_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = eval(block("A model"), vars(known))
    with monkeypatch.context() as patch:
        patch.setattr(known, "KNOWN", (*known.KNOWN, entry))
        known._index.cache_clear()
        try:
            model = named("Zebra-7B")
        finally:
            known._index.cache_clear()
    assert model.name == "zebra-ai/Zebra-7B"
    assert parameters(model).total == pytest.approx(8.03e9, rel=1e-3)


def test_an_analysis_is_one_module(add: Add, sample: str, tmp_path: Path) -> None:
    assert "streams" not in CliRunner().invoke(cli, ["--help"]).stdout
    add("An analysis")
    assert "streams   how busy each stream of a device is\n" in CliRunner().invoke(cli, ["--help"]).stdout
    assert "One row per stream" in CliRunner().invoke(cli, ["streams", "--help"]).stdout
    document = json.loads(run("streams", sample, "--json"))
    assert document["schema"] == "traceanalyzer/streams/1"
    kernels = json.loads(run("hotspots", sample, "--json"))
    total = sum(row["total_us"] for row in kernels["rows"] + kernels["copies"])
    assert sum(row["total_us"] for row in document["rows"]) == pytest.approx(total)
    assert "device" in run("streams", sample).splitlines()[0]
    rows = list(csv.DictReader(io.StringIO(run("streams", sample, "--csv"))))
    assert [float(row["longest_us"]) for row in rows] == [row["longest_us"] for row in document["rows"]]
    run("export", "parquet", sample, "--table", "streams", "-o", str(tmp_path / "streams.parquet"))
    assert pl.read_parquet(tmp_path / "streams.parquet")["events"].to_list() == [r["events"] for r in document["rows"]]


def test_an_export_format_is_one_module(add: Add, sample: str, tmp_path: Path) -> None:
    add("An export format")
    assert "tables as JSON Lines" in CliRunner().invoke(cli, ["export", "--help"]).stdout
    run("export", "jsonl", sample, "--table", "steps", "--table", "gaps", "-o", str(tmp_path / "out"))
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"steps.jsonl", "gaps.jsonl"}
    lines = (tmp_path / "out" / "steps.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(json.loads(run("ingest", sample, "--json"))["timelines"][0]["steps"])


def test_a_column_of_hotspots_is_one_line(sample: str, tmp_path: Path) -> None:
    package = tmp_path / "traceanalyzer"
    shutil.copytree(ROOT / "traceanalyzer", package, ignore=shutil.ignore_patterns("__pycache__"))
    result = package / "commands" / "hotspots" / "result.py"
    head, field, rest = result.read_text(encoding="utf-8").partition("    per_step_us: ")
    assert field
    result.write_text(head + block("A column of hotspots") + field + rest, encoding="utf-8")
    code = """
import csv, io, json, sys
from click.testing import CliRunner
import traceanalyzer as ta
from traceanalyzer.cli.main import cli
from traceanalyzer.commands.hotspots.result import HotspotsDocument
from traceanalyzer.show.schema import schema_of
printed = lambda form: CliRunner().invoke(cli, ["hotspots", sys.argv[1], form, "--no-cache"]).stdout
told = {
    "json": [row["max_us"] for row in json.loads(printed("--json"))["rows"]],
    "csv": [float(row["max_us"]) for row in csv.DictReader(io.StringIO(printed("--csv")))],
    "frame": ta.hotspots(ta.open_trace(sys.argv[1])).rows["max_ns"].to_list(),
    "schema": schema_of(HotspotsDocument)["$defs"]["HotspotRow"]["properties"]["max_us"]["description"],
}
print(json.dumps(told))
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-c", code, sample]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, env=environment, check=False, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    durations: dict[str, int] = {}
    for event in json.loads(gzip.decompress(Path(sample).read_bytes()))["traceEvents"]:
        if event.get("cat") == "kernel":
            durations[event["name"]] = max(durations.get(event["name"], 0), round(event["dur"] * 1000))
    assert sorted(told["frame"]) == sorted(durations.values())
    assert told["json"] == told["csv"] == [longest / 1000 for longest in told["frame"]]
    assert told["schema"] == "Longest duration. Unit: µs."


def test_every_command_is_found() -> None:
    from traceanalyzer.discovery import declared

    commands = {"": "traceanalyzer.commands", "tune": "traceanalyzer.commands.tune"}
    for group, package in (commands | {"export": "traceanalyzer.commands.export.formats"}).items():
        for one in declared(package, group).values():
            assert callable(one.load()), one.module
    # A folder that holds a command but no first line would be lost in silence.
    for path in (ROOT / "traceanalyzer" / "commands").rglob("command.py"):
        assert path.read_text(encoding="utf-8").startswith('"""``traceanalyzer '), path
