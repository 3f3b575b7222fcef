"""A directory in which the commands of the documentation find the files they name, and what cannot be run in it."""

from __future__ import annotations

import shutil
from pathlib import Path

from click.testing import CliRunner

from synthetic.ranks import JobSpec, generate_job, write_job
from tests.support.doc_commands import WIDTH, Command
from tests.support.places import CASES, ROOT, SWEEPS
from traceanalyzer.cli.main import cli

SAMPLE = ROOT / "traces/gptoss20b_decode_synthetic.json.gz"

FILES = {
    "traces": ROOT / "traces",
    "docs/data": ROOT / "docs/data",
    "trace.json.gz": SAMPLE,
    "capture.json.gz": SAMPLE,
    "decode.json.gz": SAMPLE,
    "prefill.json.gz": CASES / "205_no_annotation_eager.json.gz",
    "before.json.gz": CASES / "600_ab_before.json.gz",
    "after.json.gz": CASES / "600_ab_after.json.gz",
    "truncated.json": CASES / "001_truncated_midevent.json",
    "before.json": CASES / "500_bench_before.json",
    "after.json": CASES / "500_bench_after.json",
    "results/before.json": CASES / "500_bench_before.json",
    "before/run1.json": CASES / "500_bench_before.json",
    "after/run1.json": CASES / "500_bench_after.json",
    "runs/pp/serve.json": CASES / "500_bench_before.json",
    "runs/tp/serve.json": CASES / "500_bench_after.json",
    "runs/ep/serve.json": CASES / "500_bench_before.json",
    "sweep.log": ROOT / "docs/data/strix_halo_sweep.log",
    "fused_moe.jsonl": SWEEPS / "fused_moe.jsonl",
    "server.log": CASES / "510_moe_cfg/server.log",
}
"""Name in the sandbox -> what it is."""

OPT_FLAGS = """\
def make_default_opt_flags_amd(out_dtype, precision_config, m, n, k, constraints):
    constraints_supported = ["block_m", "block_n", "block_k", "split_k", "fused_scatter", "is_persistent"]
    assert not any(key not in constraints_supported for key in constraints)


def make_default_opt_flags_nvidia(out_dtype, precision_config, m, n, k, constraints):
    constraints_supported = ["block_m", "block_k", "split_k", "fused_scatter", "is_persistent", "num_stages"]
    assert not any(key not in constraints_supported for key in constraints)
"""
"""Stands for the heuristics of an installed triton_kernels, which `tune export patch` reads and changes."""

NOT_HERE = {
    "measures on a GPU": lambda argv: argv[:2] == ("tune", "run") and "interpret" not in argv,
    "measures a kernel on a GPU": lambda argv: argv[:2] == ("tune", "verify") and "--kernel" in argv,
    "needs a running server": lambda argv: argv[0] == "capture",
    "compiles for minutes; run by -m slow": lambda argv: argv[:2] == ("tune", "screen"),
}
"""Why a command is only parsed -> whether that holds for these arguments."""


def why_not_here(command: Command) -> str | None:
    """Return the reason why a command is not run; null where it is."""
    return next((reason for reason, holds in NOT_HERE.items() if holds(command.argv)), None)


def prepare(directory: Path) -> Path:
    """Fill an empty directory with the files that the pages name; returns it."""
    for name, source in FILES.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).symlink_to(source)
    write_job(generate_job(JobSpec(tp=2, layers=4)), directory / "ranks")
    installed = directory / "site-packages/triton_kernels/matmul_ogs_details/opt_flags.py"
    installed.parent.mkdir(parents=True)
    installed.write_text(OPT_FLAGS, encoding="utf-8")
    return directory


def run(command: Command, directory: Path) -> tuple[int, str, str]:
    """Run a command in a directory, its output to a file if it says so: exit status, stdout, stderr."""
    for written in ("tile-rules", "configs"):
        if written in command.argv and command.argv[:2] == ("tune", "export"):
            shutil.rmtree(directory / written, ignore_errors=True)
    fed = (directory / command.source).read_bytes() if command.source else None
    result = CliRunner().invoke(cli, list(command.argv), input=fed, env={"COLUMNS": str(WIDTH)})
    if command.redirect is not None:
        (directory / command.redirect).write_text(result.stdout, encoding="utf-8")
    return result.exit_code, result.stdout, result.stderr
