"""`python -m synthetic NAME FILE`: write one of the shipped samples."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from synthetic.generate import generate, write
from synthetic.samples import SAMPLES


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and write the file."""
    parser = argparse.ArgumentParser(
        prog="python -m synthetic",
        description="Write a synthetic profiler trace: generated, not recorded on any device.",
    )
    parser.add_argument("name", choices=sorted(SAMPLES), help="which sample")
    parser.add_argument("file", type=Path, help="where to; compressed if it ends in .gz")
    chosen = parser.parse_args(arguments)
    sample = SAMPLES[chosen.name]
    write(generate(sample.spec(), sample.seed), chosen.file)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
