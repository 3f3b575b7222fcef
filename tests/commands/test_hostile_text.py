"""Text that no encoding can write, and control characters, wherever a trace may hold them: no command may end by it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from synthetic import generate, write
from synthetic.models import llama_decode
from traceanalyzer.cli.main import cli

HOSTILE = ("\ud800half", "\udc80\x00\x1b[31mred", "\u202eleft\r\nline", '"quoted" <b>&</b>, $x_1$ [red]', "\U0010ffff")
COMMANDS = (
    "ingest TRACE",
    "ingest TRACE --json",
    "hotspots TRACE --limit 0",
    "hotspots TRACE --json",
    "hotspots TRACE --csv",
    "hotspots TRACE --by role --plot OUT.svg",
    "blocks TRACE",
    "blocks TRACE --csv",
    "idle TRACE",
    "idle TRACE --json",
    "roofline TRACE --gpu H100_SXM5 --model qwen3-8b",
    "roofline TRACE --csv",
    "tune plan TRACE",
    "tune plan TRACE --json",
    "diff TRACE TRACE",
    "diff TRACE TRACE --json",
    "ranks FOLDER",
    "ranks FOLDER --json",
    "estimate --trace TRACE --model qwen3-8b --gpu H200_SXM --change attention=100:50",
    "report TRACE --output OUT.html",
    "report FOLDER --output OUT.html",
    "export csv TRACE --output OUT",
    "export parquet TRACE --output OUT",
    "export xlsx TRACE --output OUT.xlsx",
    "export perfetto TRACE --output OUT.json",
    "doctor TRACE --repair OUT.json",
    "doctor TRACE --json",
)


def spoil(document: dict[str, Any], rank: int) -> str:
    """Return the text of a trace with hostile text in names, arguments, metadata and keys."""
    for number, event in enumerate(document["traceEvents"]):
        text = HOSTILE[number % len(HOSTILE)]
        if event.get("cat") in {"kernel", "cpu_op", "user_annotation"} and number % 3 == 0:
            event["name"] += text
        if isinstance(event.get("args"), dict):
            event["args"] |= {"Collective name": text, "Process Group Name": text, "dtype": text, "In msg nelems": text}
            event["args"] |= {"Input Dims": [[text]], "Input type": [text], "grid": text, "Concrete Inputs": [text]}
        if event.get("ph") == "M":
            event["args"] = {"name": text, "labels": text}
    document |= {"trace_name": HOSTILE[0], HOSTILE[1]: HOSTILE[2], "schemaVersion": 1, "displayTimeUnit": HOSTILE[1]}
    document["deviceProperties"] = [{"id": 0, "name": HOSTILE[0], "totalGlobalMem": HOSTILE[1], HOSTILE[2]: 1}]
    document["distributedInfo"] = {"rank": rank, "world_size": 2, "backend": HOSTILE[0], "pg_config": [HOSTILE[1], {}]}
    return json.dumps(document)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the hostile traces of two ranks; its name and theirs are hostile, too."""
    top = tmp_path_factory.mktemp("hostile")
    odd = top / os.fsdecode(b"\xff\x1b[31m\n")
    try:
        odd.mkdir()
    except OSError:
        odd = top / "\u202eleft\n"
        odd.mkdir()
    document = json.loads(write(generate(llama_decode(layers=2, steps=3)), top / "plain.json").read_text())
    for rank in range(2):
        text = spoil(json.loads(json.dumps(document)), rank)
        (odd / f"{odd.name}rank{rank}.json").write_text(text, encoding="utf-8", errors="surrogatepass")
    return odd


@pytest.mark.parametrize("command", COMMANDS)
def test_no_text_ends_a_command(command: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEANALYZER_DEBUG", "1")
    trace = next(folder.glob("*rank0.json"))
    words = {"TRACE": str(trace), "FOLDER": str(folder)}
    out = os.fsdecode(b"out\xff")
    words |= {"H100_SXM5": "H100 SXM5", "H200_SXM": "H200 SXM"}
    arguments = [
        str(tmp_path / word.replace("OUT", out)) if word.startswith("OUT") else words.get(word, word)
        for word in command.split()
    ]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, (result.exception, result.output[-2000:])
    if "--csv" not in arguments:
        assert not {"\x1b", "\u202e", "\x00"} & set(result.output)
    for written in tmp_path.iterdir():
        if written.suffix in {".json", ".html", ".svg"}:
            written.read_bytes().decode()
        if written.suffix == ".json":
            json.loads(written.read_bytes())


def test_a_store_goes_only_where_its_files_can_be_read(folder: Path, tmp_path: Path) -> None:
    """Polars takes no path that is not UTF-8: one line says so, and a cache there counts as none."""
    trace, odd = str(next(folder.glob("*rank0.json"))), tmp_path / os.fsdecode(b"\xff")
    result = CliRunner().invoke(cli, ["ingest", trace, "--output", str(odd)])
    assert (result.exit_code, result.stderr.count("not valid utf-8")) == (1, 1)
    assert not odd.exists()
    result = CliRunner(env={"XDG_CACHE_HOME": str(odd)}).invoke(cli, ["ingest", trace])
    assert result.exit_code == 0
    assert "[no_cache]" in result.stderr
