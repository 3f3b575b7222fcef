"""The shipped samples are what their README says."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from synthetic import encode, generate
from synthetic.__main__ import main
from synthetic.samples import SAMPLES

RECORDED = "gptoss24_vllm_cpu"


def content(samples: Path, name: str) -> bytes:
    return gzip.decompress((samples / f"{name}.json.gz").read_bytes())


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_shipped_synthetic_samples_are_the_generators_output(samples: Path, name: str) -> None:
    sample = SAMPLES[name]
    assert content(samples, name) == encode(generate(sample.spec(), sample.seed).document)


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_synthetic_samples_say_what_they_are(samples: Path, name: str) -> None:
    document = json.loads(content(samples, name))
    assert "synthetic" in name
    assert (document["synthetic"], document["generator"]) == (True, "traceanalyzer.synthetic")
    assert "not recorded" in document["note"]


def test_the_command_writes_the_shipped_sample(samples: Path, tmp_path: Path) -> None:
    name = "gptoss20b_decode_synthetic"
    assert main([name, str(tmp_path / "out.json.gz")]) == 0
    assert gzip.decompress((tmp_path / "out.json.gz").read_bytes()) == content(samples, name)


def test_the_gptoss_sample_has_eight_whole_steps_between_two_cut_ones() -> None:
    sample = SAMPLES["gptoss20b_decode_synthetic"]
    truth = generate(sample.spec(), sample.seed).truth
    assert [step.complete for step in truth.steps] == [True] * 8 + [False]
    assert {(step.kernels, len(step.blocks)) for step in truth.complete_steps} == {(378, 24)}
    assert sum(event.step is None for event in truth.events) == 130
    top = max(truth.kernel_ns, key=truth.kernel_ns.__getitem__)
    assert top == "_matmul_ogs_NNT_bf16xbf16xmxfp4_32x256x128x1_swiglu"


def test_samples_name_no_machine(samples: Path) -> None:
    private = re.compile(rb'"/[A-Za-z]|"host_name": "(?!host")')
    for path in samples.glob("*.json.gz"):
        assert private.search(gzip.decompress(path.read_bytes())) is None, path.name


def test_samples_are_small(samples: Path) -> None:
    assert all(path.stat().st_size < 1_000_000 for path in samples.glob("*.gz"))


def test_the_recorded_sample_has_the_steps_of_its_readme(samples: Path) -> None:
    document: dict[str, Any] = json.loads(content(samples, RECORDED))
    labels = [e["name"] for e in document["traceEvents"] if e.get("cat") == "user_annotation"]
    assert labels == [
        "execute_context_1(25)_generation_0(0)",
        "execute_context_1(24)_generation_1(1)",
        *["execute_context_0(0)_generation_2(2)"] * 3,
        "execute_context_0(0)_generation_1(1)",
        "execute_context_0(0)_generation_0(0)",
    ]
    experts = [e for e in document["traceEvents"] if e["name"] == "_C::cpu_fused_moe"]
    assert len(experts) == 24 * 6
    assert "synthetic" not in document


def test_the_recorded_sample_is_made_presentable_by_rewriting_two_strings(samples: Path, tmp_path: Path) -> None:
    sys.path.insert(0, str(samples))
    try:
        from make_samples import make_recorded  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(samples))
    raw = b'{"host_name": "box7", "traceEvents": [], "traceName": "/tmp/tmpabc.json"}'
    (tmp_path / "raw.json.gz").write_bytes(gzip.compress(raw))
    make_recorded(tmp_path / "raw.json.gz", tmp_path / "made.json.gz")
    made = gzip.decompress((tmp_path / "made.json.gz").read_bytes())
    assert made == b'{"host_name": "host", "traceEvents": [], "traceName": "trace.json"}'


def test_the_generator_needs_nothing_heavy() -> None:
    code = "import sys, synthetic.samples; print(*{'torch', 'polars', 'numpy'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
