"""Makes the sample traces of this folder.

    python traces/make_samples.py                              the synthetic ones, byte for byte
    python traces/make_samples.py recorded PROFILE.json.gz     a profile of vLLM on a CPU, made presentable

README.md tells how PROFILE.json.gz is recorded.
"""

from __future__ import annotations

import gzip
import io
import re
import sys
from pathlib import Path

from synthetic import generate, write
from synthetic.samples import SAMPLES

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "gptoss24_vllm_cpu.json.gz"
# What names the machine that recorded: its host name, and the temporary file that the profiler wrote to.
REWRITES = (
    (re.compile(rb'"host_name": "[^"]*"'), b'"host_name": "host"'),
    (re.compile(rb'"traceName": "[^"]*"'), b'"traceName": "trace.json"'),
)


def make_synthetic(folder: Path) -> None:
    for name, sample in SAMPLES.items():
        write(generate(sample.spec(), sample.seed), folder / f"{name}.json.gz")


def make_recorded(profile: Path, target: Path) -> None:
    """Rewrite the strings that name the machine; change nothing else."""
    data = gzip.decompress(profile.read_bytes())
    for pattern, replacement in REWRITES:
        data = pattern.sub(replacement, data)
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as file:
        file.write(data)
    target.write_bytes(buffer.getvalue())


if __name__ == "__main__":
    if sys.argv[1:2] == ["recorded"]:
        make_recorded(Path(sys.argv[2]), RECORDED)
    else:
        make_synthetic(HERE)
