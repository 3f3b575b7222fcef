"""Exports hold exactly the rules, in the form that the server reads, or are refused with the reason."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.places import CASES, ROOT
from tests.support.stand_in_triton_kernels import install, opt_flags_source
from traceanalyzer.commands.tune.export.patch import (
    KNOWN_KEYS,
    find_opt_flags,
    keys_in_source,
    make_patch,
    rule_lines,
    vendor_of,
)
from traceanalyzer.commands.tune.export.vllm_moe import (
    device_in_name,
    file_name,
    moe_document,
    write_moe_file,
)
from traceanalyzer.commands.tune.formats import read_sweep
from traceanalyzer.commands.tune.formats.vllm_moe_files import batch_keys, parse_file_name
from traceanalyzer.commands.tune.policy.compute import Policy, Rule, make_policy
from traceanalyzer.commands.tune.tile_config import TileConfig
from traceanalyzer.problems import TraceError

LAUNCH = {"group_m": 1, "num_warps": 4, "num_stages": 3}
EXPECTED = json.loads((CASES / "expected.json").read_text(encoding="utf-8"))["cases"]["510_moe_cfg"]["values"]


@pytest.fixture(scope="module")
def authors() -> Policy:
    return make_policy(read_sweep(ROOT / "docs" / "data" / "strix_halo_sweep.log", top_k=4), 0.15)


def nearest(keys: list[int], m: int) -> int:
    """The batch size whose configuration vLLM takes: smallest absolute difference, the first one on a tie."""
    return min(keys, key=lambda key: abs(key - m))


def lookup(document: Mapping[str, object], tokens: int) -> object:
    """The configuration that vLLM takes for a batch of so many tokens."""
    return document[str(nearest(batch_keys(document), tokens))]


def with_config(policy: Policy, **changes: Any) -> Policy:
    return replace(policy, rules=tuple(replace(r, config=TileConfig({**r.config, **changes})) for r in policy.rules))


def test_every_token_count_gets_its_rules_configuration_by_vllms_lookup(authors: Policy) -> None:
    document = moe_document(authors, triton_version="3.5.0", given=LAUNCH)
    assert document["triton_version"] == "3.5.0"
    for tokens in range(1, 3000):
        wanted = authors.config(tokens * 4)
        found = lookup(document, tokens)
        assert isinstance(found, Mapping)
        assert (found["BLOCK_SIZE_M"], found["BLOCK_SIZE_N"]) == (wanted["block_m"], wanted["block_n"]), tokens
    assert {"1", "4", "5", "8"} <= set(document)


@pytest.mark.parametrize("boundary", [3, 4, 5, 16, 17, 1000])
def test_boundaries_between_tokens_are_kept(boundary: int) -> None:
    rules = (
        Rule(1, boundary, TileConfig({"block_m": 16, **tile()})),
        Rule(boundary + 1, None, TileConfig({"block_m": 64, **tile()})),
    )
    policy = Policy(rules, shape={"top_k": 4})
    document = moe_document(policy, triton_version="3.5.0")
    for tokens in range(1, 600):
        found = lookup(document, tokens)
        assert isinstance(found, Mapping)
        assert found["BLOCK_SIZE_M"] == (16 if tokens * 4 <= boundary else 64)


def tile() -> dict[str, int]:
    return {"block_n": 64, "block_k": 64, **LAUNCH}


def test_what_vllm_needs_and_the_sweep_lacks_is_asked_for(authors: Policy) -> None:
    with pytest.raises(TraceError, match=r"group_m, num_warps, num_stages.*--set group_m="):
        moe_document(authors, triton_version="3.5.0")
    with pytest.raises(TraceError, match="Triton version"):
        moe_document(authors, given=LAUNCH)
    with pytest.raises(TraceError, match="top-k"):
        moe_document(replace(authors, shape={}), triton_version="3.5.0", given=LAUNCH)
    with pytest.raises(TraceError, match="no parameter MWG"):
        moe_document(with_config(authors, MWG=1), triton_version="3.5.0", given=LAUNCH)


def test_requests_are_tokens_already(authors: Policy) -> None:
    policy = replace(
        authors, rows="requests", rules=(Rule(1, None, TileConfig({"block_m": 16, **tile()})),), choices=()
    )
    assert list(moe_document(policy, triton_version="3.5.0")) == ["triton_version", "1"]


def test_the_files_name_is_what_vllm_looks_for(authors: Policy) -> None:
    policy = replace(authors, shape={"experts": 128, "n": 768, "k": 2048, "dtype": "bf16"}, kernel="fused_moe")
    device = "AMD Instinct MI300X/HF"
    assert str(file_name(policy, device=device)) == "E=128,N=384,device_name=AMD_Instinct_MI300X_HF.json"
    named = file_name(policy, n=192, device="NVIDIA H100 80GB HBM3", dtype="fp8_w8a8", block_shape=(128, 128))
    text = "E=128,N=192,device_name=NVIDIA_H100_80GB_HBM3,dtype=fp8_w8a8,block_shape=[128,128].json"
    assert str(named) == text
    assert parse_file_name(text) == named
    assert device_in_name("NVIDIA H200 NVL") == "NVIDIA_H200"
    with pytest.raises(TraceError, match="pass --dtype"):
        file_name(replace(policy, shape={**policy.shape, "dtype": "fp8"}), device=device)
    with pytest.raises(TraceError, match="--device-name"):
        file_name(policy)
    with pytest.raises(TraceError, match="--n "):
        file_name(replace(policy, kernel="moe_gate_up"), device="x")


def test_an_exported_file_is_read_back_as_what_it_says(tmp_path: Path, authors: Policy) -> None:
    name = file_name(authors, 32, 2880, "AMD Radeon 8060S")
    document = moe_document(authors, triton_version="3.5.0", given=LAUNCH)
    path = write_moe_file(tmp_path / "configs", name, document)
    sweep = read_sweep(path, top_k=4)
    assert sweep.format == "vllm-moe"
    for point in sweep.points:
        assert point.m is not None
        assert point.config["block_n"] == authors.config(point.m)["block_n"]


def test_batch_sizes_and_the_nearest_one_as_vllm_takes_them() -> None:
    (path,) = (CASES / "510_moe_cfg").glob("E=*.json")
    keys = batch_keys(json.loads(path.read_text(encoding="utf-8")))
    assert keys == EXPECTED["batch_keys"]
    for m, key in EXPECTED["nearest_key_by_abs_difference"].items():
        assert nearest(keys, int(m)) == key


@pytest.mark.parametrize("name", ["README.md", "E=8.json", "N=x,device_name=a.json", "E=8,N=4,device_name=a.txt"])
def test_other_names_are_no_configurations(name: str) -> None:
    assert parse_file_name(name) is None


@pytest.mark.parametrize("version", ["3.5.0", "newer"])
def test_keys_are_read_off_the_installed_source(version: str) -> None:
    keys = keys_in_source(opt_flags_source(version))
    assert "block_n" in keys["amd"]
    assert "block_n" not in keys["nvidia"]
    assert ("num_warps" in keys["amd"]) == (version == "newer")
    for vendor in ("amd", "nvidia"):
        assert keys[vendor] <= KNOWN_KEYS[version][vendor]


@pytest.mark.parametrize("version", ["3.5.0", "newer"])
def test_a_patched_triton_kernels_returns_the_chosen_blocks(tmp_path: Path, authors: Policy, version: str) -> None:
    path = install(tmp_path, version)
    assert find_opt_flags(tmp_path) == path
    text = make_patch(authors, path.read_text(encoding="utf-8"), "amd", path.as_posix())
    assert shutil.which("patch"), "the patch program is not installed"
    subprocess.run(["patch", "-p1", "-d", "/"], input=text, text=True, check=True, capture_output=True)
    scope: dict[str, Any] = {"__name__": "patched"}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True), scope)
    for m in (1, 4, 16, 17, 32, 4096):
        flags = scope["make_opt_flags"]("amd", m)
        assert {key: getattr(flags, key) for key in authors.config(m)} == authors.config(m)
    assert scope["make_opt_flags"]("nvidia", 4).block_n == 128
    with pytest.raises(TraceError, match="already holds rules"):
        make_patch(authors, path.read_text(encoding="utf-8"), "amd", path.as_posix())


def test_every_value_of_a_patch_is_python(authors: Policy) -> None:
    policy = with_config(authors, is_persistent=True, epilogue="a 'b'", idle_sms=None)
    lines = "\n".join(rule_lines(policy))
    scope: dict[str, Any] = {"constraints": {}, "m": 1}
    exec(lines, scope)
    assert scope["constraints"] == dict(policy.rules[0].config)


@pytest.mark.parametrize("version", ["3.5.0", "newer"])
def test_block_n_is_refused_on_nvidia(authors: Policy, version: str) -> None:
    with pytest.raises(TraceError, match="on nvidia this triton_kernels has no constraint for block_n"):
        make_patch(authors, opt_flags_source(version), "nvidia", "opt_flags.py")


def test_num_warps_is_a_key_of_later_versions_only(authors: Policy) -> None:
    policy = with_config(authors, num_warps=4)
    with pytest.raises(TraceError, match="num_warps"):
        make_patch(policy, opt_flags_source("3.5.0"), "amd", "opt_flags.py")
    assert "num_warps=4" in make_patch(policy, opt_flags_source("newer"), "amd", "opt_flags.py")


@pytest.mark.parametrize("source", ["def f(): pass\n", "not python (", "def make_default_opt_flags_amd(m, n): pass\n"])
def test_a_file_that_is_no_opt_flags_is_refused(authors: Policy, source: str) -> None:
    with pytest.raises(TraceError, match=r"opt_flags|not supported"):
        make_patch(authors, source, "amd", "opt_flags.py")


def test_a_folder_without_triton_kernels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no triton_kernels"):
        find_opt_flags(tmp_path)


@pytest.mark.parametrize(
    ("device", "vendor"),
    [
        ({"name": "NVIDIA H100 80GB HBM3"}, "nvidia"),
        ({"name": "AMD Instinct MI300X"}, "amd"),
        ({"name": "Radeon 8060S Graphics"}, "amd"),
        ({"name": None, "target": "gfx1151"}, "amd"),
        ({"target": "sm_90"}, "nvidia"),
        ({"name": "unknown"}, None),
        ({}, None),
    ],
)
def test_the_vendor_is_known_from_the_device_or_not_at_all(device: dict[str, str | None], vendor: str | None) -> None:
    assert vendor_of(device) == vendor
