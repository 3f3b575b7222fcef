"""Against a real vLLM: its own lookup, its own triton_kernels, and a server that starts with the plugin.

TRACEANALYZER_VLLM_VENV names a virtual environment with vLLM (a CPU build is enough), TRACEANALYZER_VLLM_WHEEL a vLLM
wheel that brings triton_kernels, which a CPU build lacks (pip download --no-deps vllm==0.13.0; only Python files of it
are used). TRACEANALYZER_VLLM_MODEL names a small model folder, by default one of the shared ones.
"""

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
import zipfile
from pathlib import Path

import pytest

from tests.support.places import ROOT
from traceanalyzer.commands.tune.export.patch import find_opt_flags, make_patch
from traceanalyzer.commands.tune.export.plugin import plugin_files, write_plugin
from traceanalyzer.commands.tune.export.vllm_moe import file_name, moe_document, write_moe_file
from traceanalyzer.commands.tune.formats import read_sweep
from traceanalyzer.commands.tune.policy.compute import Policy, make_policy

pytestmark = pytest.mark.slow

SEED = ROOT / "docs" / "data" / "strix_halo_sweep.log"
START_TIMEOUT_S = 400


@pytest.fixture(scope="module")
def authors() -> Policy:
    return make_policy(read_sweep(SEED, top_k=4), 0.15)


@pytest.fixture(scope="module")
def venv() -> Path:
    """Return an environment with vLLM."""
    named = os.environ.get("TRACEANALYZER_VLLM_VENV")
    if not named:
        pytest.skip("TRACEANALYZER_VLLM_VENV names no virtual environment with vLLM")
    if not (Path(named) / "bin" / "vllm").exists():
        pytest.skip(f"there is no vLLM in {named}")
    return Path(named)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder with the triton_kernels of a vLLM wheel, as a package of its own."""
    named = os.environ.get("TRACEANALYZER_VLLM_WHEEL")
    if not named:
        pytest.skip("TRACEANALYZER_VLLM_WHEEL names no vLLM wheel")
    home = "vllm/third_party/"
    with zipfile.ZipFile(named) as wheel:
        names = [n for n in wheel.namelist() if n.startswith(f"{home}triton_kernels/") and n.endswith(".py")]
        if not names:
            pytest.skip(f"{named} brings no triton_kernels")
        for name in names:
            path = tmp_path / "site" / name.removeprefix(home)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(wheel.read(name))
    return tmp_path / "site"


# Asks the real heuristics, with a GPU's description in the place of a GPU.
ASK = """
import importlib, json, logging, sys, types
logging.basicConfig(level=logging.INFO)
import torch, triton
from importlib.metadata import entry_points
from triton.backends.compiler import GPUTarget

vendor, rows = sys.argv[1], json.loads(sys.argv[2])
target = GPUTarget("hip", "gfx1151", 32) if vendor == "amd" else GPUTarget("cuda", 90, 32)
triton.runtime.driver.set_active(types.SimpleNamespace(get_current_target=lambda: target))
facts = types.SimpleNamespace(multi_processor_count=40, shared_memory_per_block_optin=232448)
torch.cuda.get_device_properties = lambda device: facts
torch.cuda.get_device_capability = lambda device=0: (9, 0)
for entry in entry_points(group="vllm.general_plugins"):
    entry.load()()
flags = importlib.import_module("triton_kernels.matmul_ogs_details.opt_flags")
fp4 = importlib.import_module("triton_kernels.tensor").FP4
names = ("weight_scale", "max_num_imprecise_acc", "act_scale", "out_scale")
precision = types.SimpleNamespace(enforce_bitwise_invariance=False, **dict.fromkeys(names))
routing = types.SimpleNamespace(n_expts_tot=32, expected_tokens_per_expt=None, n_blocks=lambda m, b: max(1, m // b))
found = []
for m in rows:
    args = (torch.bfloat16, torch.bfloat16, fp4, precision, m, 5760, 2880, routing, False, False, 2)
    chosen = flags.make_opt_flags(*args)
    found.append([chosen.block_m, chosen.block_n, chosen.block_k, chosen.split_k])
print(json.dumps(found))
"""

ROWS = [1, 4, 16, 17, 64, 4096]
CHOSEN = [[32, 32, 128, 1]] * 3 + [[16, 128, 128, 1]] * 3


def ask(vendor: str, *folders: Path) -> tuple[list[list[int]], str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    command = [sys.executable, "-c", ASK, vendor, json.dumps(ROWS)]
    done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    found: list[list[int]] = json.loads(done.stdout.splitlines()[-1])
    return found, done.stderr


def test_the_plugged_heuristics_of_vllms_triton_kernels_return_the_chosen_blocks(
    site: Path, tmp_path: Path, authors: Policy
) -> None:
    write_plugin(tmp_path / "plugin", plugin_files(authors))
    before, _ = ask("amd", site)
    after, log = ask("amd", tmp_path / "plugin", site)
    assert before != CHOSEN
    assert after == CHOSEN
    assert "tile rules active for amd" in log


def test_the_patched_heuristics_of_vllms_triton_kernels_return_the_chosen_blocks(site: Path, authors: Policy) -> None:
    path = find_opt_flags(site)
    text = make_patch(authors, path.read_text(encoding="utf-8"), "amd", path.resolve().as_posix())
    subprocess.run(["patch", "-p1", "-d", "/"], input=text, text=True, check=True, capture_output=True)
    assert ask("amd", site)[0] == CHOSEN


def test_nvidias_heuristics_keep_their_own_choice(site: Path, tmp_path: Path, authors: Policy) -> None:
    write_plugin(tmp_path / "plugin", plugin_files(authors))
    before, _ = ask("nvidia", site)
    after, log = ask("nvidia", tmp_path / "plugin", site)
    assert after == before
    assert "cannot set block_n" in log


LOOK_UP = """
import json, sys
from vllm.model_executor.layers.fused_moe import fused_moe
fused_moe.get_device_name_as_file_name = lambda *a: sys.argv[1]
shapes = [(32, 5760, 2880), (32, 2880, 2880)]
tokens = json.loads(sys.argv[2])
found = [fused_moe.try_get_optimal_moe_config(*shapes, 4, None, m) for m in tokens]
print("FOUND " + json.dumps(found))
"""


def test_vllm_itself_takes_the_rules_configuration_at_every_m(venv: Path, tmp_path: Path, authors: Policy) -> None:
    given = {"group_m": 1, "num_warps": 4, "num_stages": 2}
    name = file_name(authors, experts=32, n=2880, device="AMD Radeon 8060S")
    document = moe_document(authors, triton_version="3.5.0", given=given)
    write_moe_file(tmp_path, name, document)
    tokens = [*range(1, 40), 512, 100_000]
    environment = {**os.environ, "VLLM_TUNED_CONFIG_FOLDER": str(tmp_path), "VLLM_NO_USAGE_STATS": "1"}
    command = [str(venv / "bin" / "python"), "-c", LOOK_UP, "AMD_Radeon_8060S", json.dumps(tokens)]
    done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("FOUND "))
    for m, config in zip(tokens, json.loads(line.removeprefix("FOUND ")), strict=True):
        wanted = authors.config(m * 4)
        assert (config["BLOCK_SIZE_M"], config["BLOCK_SIZE_N"]) == (wanted["block_m"], wanted["block_n"]), m


def serve(venv: Path, model: Path, log: Path, *folders: Path) -> str:
    """Start a server, wait until it is healthy, stop it; return its log."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(venv / "bin" / "vllm"), "serve", str(model), "--load-format", "dummy", "--dtype", "bfloat16"]
    command += ["--max-model-len", "256", "--max-num-seqs", "2", "--enforce-eager"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    settings = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    environment = {**os.environ, **settings, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    with log.open("w") as out:
        server = subprocess.Popen(command, env=environment, stdout=out, stderr=out, start_new_session=True)
    try:
        end = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < end:
            assert server.poll() is None, log.read_text()[-3000:]
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
                    assert answer.status == 200
                    return log.read_text()
            except (urllib.error.URLError, OSError):
                time.sleep(2)
        raise AssertionError(f"not healthy after {START_TIMEOUT_S} s: {log.read_text()[-3000:]}")
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait(60)


@pytest.fixture
def model(shared: Path) -> Path:
    return Path(os.environ.get("TRACEANALYZER_VLLM_MODEL") or shared / "models" / "qwen3_24")


def test_a_server_without_triton_kernels_starts_and_says_why_the_rules_are_not_active(
    venv: Path, tmp_path: Path, authors: Policy, model: Path
) -> None:
    write_plugin(tmp_path / "plugin", plugin_files(authors))
    log = serve(venv, model, tmp_path / "server.log", tmp_path / "plugin")
    assert "tile rules not active: this vLLM has no triton_kernels" in log


def test_a_server_with_triton_kernels_starts_and_says_that_the_rules_are_there(
    venv: Path, tmp_path: Path, authors: Policy, model: Path, site: Path
) -> None:
    write_plugin(tmp_path / "plugin", plugin_files(authors))
    log = serve(venv, model, tmp_path / "server.log", tmp_path / "plugin", site)
    assert "tile rules ready: 2 rules" in log or "tile rules active for amd" in log
