"""The wheel in an environment of its own, used from a folder without the sources."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.places import CASES, ROOT, SWEEPS

pytestmark = pytest.mark.slow  # Builds an environment with every dependency: minutes.

Run = Callable[..., str]
SWEEP = str(SWEEPS / "fused_moe.jsonl")
COMMANDS = (
    ("--version",),
    ("ingest", "TRACE"),
    ("ingest", "TRACE", "--json"),
    ("doctor", "TRACE"),
    ("doctor", "TRACE", "--repair", "repaired.json.gz"),
    ("blocks", "TRACE", "--json"),
    ("hotspots", "TRACE", "--by", "role"),
    ("hotspots", "TRACE", "--csv"),
    ("hotspots", "TRACE", "--plot", "hotspots.png"),
    ("idle", "TRACE"),
    ("diff", "TRACE", "TRACE"),
    ("roofline", "TRACE", "--model", "gpt-oss-20b", "--plot", "roofline.svg"),
    ("ranks", "TRACE"),
    ("report", "TRACE", "-o", "report.html"),
    ("export", "perfetto", "TRACE", "-o", "tracks.json.gz"),
    ("export", "csv", "TRACE", "-o", "tables"),
    ("export", "parquet", "TRACE", "--table", "events", "-o", "events.parquet"),
    ("name", "fused_moe_kernel"),
    ("gpus",),
    ("estimate", "--model", "gpt-oss-20b", "--gpu", "MI300X", "--isl", "1000", "--osl", "100"),
    ("serving", "compare", str(CASES / "500_bench_before.json"), str(CASES / "500_bench_after.json")),
    ("tune", "plan", "TRACE", "--model", "gpt-oss-20b"),
    ("tune", "import", SWEEP),
    ("tune", "policy", SWEEP),
    ("tune", "replay", SWEEP),
    ("tune", "verify", "--before", "TRACE", "--after", "TRACE"),
    ("tune", "screen", "--kernel", "dense", "--shape", "n=256,k=256", "--m", "16", "--gpu", "H100 SXM5", "--no-cache",
     "--config", "16x64x64x1,num_warps=4"),
)  # fmt: skip
IMPORT_ALL = """
import importlib, pkgutil, traceanalyzer
for module in pkgutil.walk_packages(traceanalyzer.__path__, "traceanalyzer."):
    if not module.name.endswith("__main__") and ".sample_traces" not in module.name:
        importlib.import_module(module.name)
print(traceanalyzer.__file__)
"""


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a virtual environment that holds the wheel and what it needs, and nothing for development."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "-c", str(ROOT / "constraints.txt")]
    done = subprocess.run([*pip, str(wheel)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def run(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a function that runs a program of the environment elsewhere and returns what it printed."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    variables = inherited | {"XDG_CACHE_HOME": str(elsewhere / "cache")}

    def call(program: str, *arguments: str) -> str:
        command = [str(environment / "bin" / program), *arguments]
        done = subprocess.run(command, cwd=elsewhere, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (arguments, done.stdout[-2000:], done.stderr[-2000:])
        assert "Traceback" not in done.stderr
        return done.stdout

    return call


@pytest.fixture(scope="module")
def sample(run: Run) -> str:
    """Return the path of the sample trace inside the installed package."""
    code = "import traceanalyzer, pathlib; print(pathlib.Path(traceanalyzer.__file__).parent / 'sample_traces')"
    return f"{run('python', '-c', code).strip()}/gptoss20b_decode_synthetic.json.gz"


def test_every_module_is_there_and_needs_nothing_for_development(run: Run) -> None:
    assert str(ROOT) not in run("python", "-W", "error::SyntaxWarning", "-c", IMPORT_ALL)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
def test_commands_work_without_the_sources(run: Run, sample: str, command: tuple[str, ...]) -> None:
    arguments = [sample if argument == "TRACE" else argument for argument in command]
    assert run("traceanalyzer", *arguments) or command[0] in ("export", "report")


def test_the_module_runs_and_json_is_json(run: Run, sample: str) -> None:
    document = json.loads(run("python", "-m", "traceanalyzer", "hotspots", sample, "--json"))
    assert document["rows"]


def test_a_missing_extra_is_named(environment: Path, sample: str, tmp_path: Path) -> None:
    command = [str(environment / "bin" / "traceanalyzer"), "export", "xlsx", sample, "-o", str(tmp_path / "a.xlsx")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "traceanalyzer[xlsx]" in done.stderr


def test_the_environment_satisfies_what_the_wheel_declares(run: Run) -> None:
    assert "No broken requirements" in run("python", "-m", "pip", "check")
    assert sys.version_info[:2] == tuple(
        map(int, run("python", "-c", "import sys; print(*sys.version_info[:2])").split())
    )
