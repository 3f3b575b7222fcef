"""Real documents of every command: what to run, by the name of the schema that the output keeps."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import click
from click.testing import CliRunner

from tests.support.places import CASES, ROOT
from traceanalyzer.cli.main import cli

SCHEMAS = ROOT / "docs" / "schemas"
SAMPLE = ROOT / "traces" / "gptoss20b_decode_synthetic.json.gz"
LOG = (str(ROOT / "docs" / "data" / "strix_halo_sweep.log"), "--top-k", "4")
BEFORE, AFTER = (str(CASES / f"600_ab_{side}.json.gz") for side in ("before", "after"))
BENCH_BEFORE, BENCH_AFTER = (str(CASES / f"500_bench_{side}.json") for side in ("before", "after"))
ESTIMATE = ("estimate", "--model", "llama-3.1-8b", "--gpu", "H100 SXM5", "--isl", "64", "--osl", "16")
DENSE = ("--kernel", "dense", "--shape", "n=64,k=64", "--rounds", "2", "--samples", "2", "--m", "8")
TILES = ("16x16x64", "16x32x64")

RUNS: dict[str, list[tuple[str, ...]]] = {
    "blocks": [("blocks", str(SAMPLE)), ("blocks", str(CASES / "213_no_repeats.json"))],
    "diff": [("diff", BEFORE, AFTER)],
    "doctor": [("doctor", str(CASES / "001_truncated_midevent.json"))],
    "estimate": [
        (*ESTIMATE, "--batch", "1,4", "--compare-gpu", "A100 SXM4 80GB"),
        (*ESTIMATE, "--compare-parallel", "tp=2,pp=2", "--slo", "tpot=100ms"),
        (*ESTIMATE, "--roofline", "--batch", "2", "--osl", "1"),
    ],
    "gpus": [("gpus",), ("gpus", "mi300x")],
    "hotspots": [("hotspots", str(SAMPLE)), ("hotspots", str(CASES / "109_cpu_only.json"), "--by", "role")],
    "idle": [("idle", str(SAMPLE)), ("idle", str(CASES / "109_cpu_only.json"))],
    "names": [("name", "_matmul_ogs_NNT_bf16xbf16xmxfp4_32x256x128x1_swiglu", "no such kernel")],
    "ranks": [("ranks", str(CASES / case)) for case in ("300_rank_gap", "303_allreduce_wait", "305_pp2")],
    "roofline": [
        ("roofline", str(SAMPLE), "--assume", "moe_down=0.6"),
        ("roofline", str(CASES / "205_no_annotation_eager.json.gz")),
    ],
    "serving": [("serving", "compare", BENCH_BEFORE, BENCH_AFTER)],
    "serving-layouts": [("serving", "compare", "--layouts", f"a={BENCH_BEFORE}", f"b={BENCH_AFTER}")],
    "serving-results": [("serving", "show", BENCH_BEFORE)],
    "source": [("source", str(SAMPLE)), ("source", str(CASES / "205_no_annotation_eager.json.gz"))],
    "summary": [("ingest", str(SAMPLE)), *(("ingest", str(CASES / c)) for c in ("109_cpu_only.json", "305_pp2"))],
    "tune-configs": [
        ("tune", "configs", str(CASES / "510_moe_cfg" / "server.log"), "--folder", str(CASES / "510_moe_cfg"))
    ],
    "tune-export": [("tune", "export", "plugin", *LOG, "--max-regret", "0.15", "--vendor", "amd", "--output", "TMP")],
    "tune-outcome": [
        ("tune", "verify", "--before", BEFORE, "--after", AFTER),
        ("tune", "verify", "--before-results", BENCH_BEFORE, "--after-results", BENCH_AFTER),
    ],
    "tune-plan": [("tune", "plan", str(SAMPLE))],
    "tune-points": [("tune", "import", *LOG)],
    "tune-policy": [("tune", "policy", *LOG, "--max-regret", "0.15")],
    "tune-replay": [("tune", "replay", LOG[0], "--budget-share", "0.5", "--seeds", "2")],
    "tune-run": [("tune", "run", *DENSE, "--config", TILES[0], "--config", TILES[1])],
    "tune-screen": [
        (
            "tune",
            "screen",
            *DENSE[:4],
            "--m",
            "8",
            "--target",
            "gfx942",
            "--jobs",
            "1",
            "--config",
            "16x32x64,num_warps=1",
        ),
    ],
    "tune-verify": [("tune", "verify", *DENSE, "--before", TILES[0], "--after", TILES[1])],
}
"""Name of a schema -> commands whose documents keep it; ``capture`` needs a server and has a test of its own."""


def schema(name: str) -> Any:
    """Read a schema."""
    return json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))


def printed(*arguments: str) -> Any:
    """Run a command and return its document."""
    takes_cache = arguments[0] in {"ingest", "blocks", "hotspots", "idle", "diff", "roofline", "ranks"}
    more = ("--no-cache",) if takes_cache or arguments[:2] in {("tune", "plan"), ("tune", "verify")} else ()
    result = CliRunner().invoke(cli, [*arguments, *more, "--json"])
    assert result.exit_code == 0, result.output
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout)


def with_json(command: click.Command = cli, words: tuple[str, ...] = ()) -> Iterator[str]:
    """Walk all commands and name those that have --json."""
    if any("--json" in parameter.opts for parameter in command.params):
        yield " ".join(words)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from with_json(found, (*words, name))


def members(value: Any, path: str, visit: Callable[[str, dict[str, Any]], None]) -> None:
    """Visit every schema within a schema that describes a value."""
    if "$ref" in value or "anyOf" in value or "type" in value or "enum" in value or "const" in value:
        visit(path, value)
    for name, member in value.get("properties", {}).items():
        members(member, f"{path}.{name}", visit)
    for key in ("items", "additionalProperties"):
        if isinstance(value.get(key), dict):
            members(value[key], f"{path}[]", visit)
    for name, member in value.get("$defs", {}).items():
        members(member, f"{path}#{name}", visit)
