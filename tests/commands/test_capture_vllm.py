"""A real vLLM on the CPU, captured end to end. Needs a virtual environment with vLLM; see docs/capture.md."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from traceanalyzer.cli.main import cli

VARIABLE = "TRACEANALYZER_VLLM_VENV"
MODEL = "qwen3_24"
START_SECONDS = 300

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Server:
    url: str
    profiles: Path
    vllm: Path
    model: Path


@pytest.fixture(scope="module")
def server(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve a tiny model with random weights on loopback, its profiler on."""
    venv = os.environ.get(VARIABLE)
    if not venv:
        pytest.skip(f"{VARIABLE} does not name a virtual environment with vLLM")
    folder = tmp_path_factory.mktemp("vllm")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = Server(
        f"http://127.0.0.1:{port}", folder / "profiles", Path(venv) / "bin" / "vllm", shared / "models" / MODEL
    )
    profiler = {
        "profiler": "torch",
        "torch_profiler_dir": str(found.profiles),
        "torch_profiler_with_stack": False,
        "torch_profiler_record_shapes": True,
    }
    options = {
        "--served-model-name": "tiny",
        "--load-format": "dummy",
        "--dtype": "bfloat16",
        "--max-model-len": "512",
        "--max-num-seqs": "8",
        "--host": "127.0.0.1",
        "--port": str(port),
        "--profiler-config": json.dumps(profiler),
    }
    quiet = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    command = [
        found.vllm,
        "serve",
        found.model,
        "--enforce-eager",
        *(part for pair in options.items() for part in pair),
    ]
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **quiet}, start_new_session=True
        )
        try:
            wait_until_ready(process, found.url, log)
            yield found
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def wait_until_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    pytest.fail(f"vLLM did not start; the end of its log:\n{log.read_text(errors='replace')[-3000:]}")


def captured(server: Server, concurrency: int, output_tokens: int = 12) -> dict[str, Any]:
    load = ("--concurrency", str(concurrency), "--input-tokens", "16", "--output-tokens", str(output_tokens))
    seen = ("--profile-dir", str(server.profiles), "--no-cache", "--json")
    result = CliRunner().invoke(cli, ["capture", server.url, *load, *seen])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize("concurrency", [1, 4, 8])
def test_decode_steps_of_the_asked_batch_are_recorded_with_all_blocks(server: Server, concurrency: int) -> None:
    found = captured(server, concurrency)
    assert found["engine"] == "vllm"
    assert found["requests"]["tokens"] == concurrency * 12
    assert found["decode_steps_of_batch"] >= 6
    assert [Path(file).name.split(".")[0] for file in found["files"]] == [f"tiny_bs{concurrency}_in16_out12_rank0"]
    (timeline,) = found["summary"]["timelines"]
    asked = [s for s in timeline["steps"] if s["complete"] and s["phase"] == "decode" and s["requests"] == concurrency]
    assert {step["blocks"] for step in asked} == {24}


def test_an_interrupted_capture_leaves_the_profiler_off(server: Server) -> None:
    command = [sys.executable, "-m", "traceanalyzer", "capture", server.url, "--concurrency", "2"]
    process = subprocess.Popen(
        [*command, "--input-tokens", "16", "--output-tokens", "400", "--profile-dir", str(server.profiles)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "profiler started" in line:
            process.send_signal(signal.SIGTERM)
            break
    process.communicate(timeout=300)
    assert process.returncode != 0
    # An active session would be refused with status 409.
    assert captured(server, 2)["decode_steps_of_batch"] >= 6


def test_a_real_benchmark_prints_what_it_saves(server: Server, tmp_path: Path) -> None:
    lengths = ("--random-input-len", "16", "--random-output-len", "8", "--ignore-eos", "--num-prompts", "8")
    where = ("--base-url", server.url, "--model", "tiny", "--tokenizer", str(server.model), "--dataset-name", "random")
    saved = ("--max-concurrency", "4", "--save-result", "--result-dir", str(tmp_path), "--result-filename", "run.json")
    printed = subprocess.run(
        [server.vllm, "bench", "serve", *where, *lengths, *saved],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    ).stdout
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "run.txt").write_text(printed)
    sides = [str(tmp_path / "log" / "run.txt"), str(tmp_path / "run.json")]
    result = CliRunner().invoke(cli, ["serving", "compare", *sides, "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert {row["verdict"] for row in found["metrics"] if row["before"] is not None} == {"same"}
    assert len([row for row in found["metrics"] if row["before"] is not None]) > 10
    assert "inconsistent_result" not in {warning["code"] for warning in found["warnings"]}
