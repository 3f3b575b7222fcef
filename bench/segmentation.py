"""How often steps and blocks are exactly right, and what confidence is worth: ``python -m bench.segmentation``.

Every seed is a trace of a model that no test and no development used: seeds count from 1,000,000, the tests' are below
1,000. Four of ten are random mixtures of the generator, the others families of published architectures under the
same troubles (``segmentation_models``). A trace is right when every step has exactly its events, is told complete or
not, and every block has exactly its events (``segmentation_trials``).

``--rows FILE`` keeps the outcome of every seed, one JSON line each, and goes on where an earlier run stopped; outcomes
of other code are not used.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Iterable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.environment import ROOT
from bench.segmentation_summary import summary

FIRST = 1_000_000
CODE = (
    "traceanalyzer/segment/*.py",
    "traceanalyzer/names/*.py",
    "synthetic/*.py",
    "bench/segmentation_*.py",
)
"""What the outcomes depend on."""


def main() -> None:
    """Run what is missing; write the results when nothing is."""
    # Traces are small: the processes share the cores, not the threads of each.
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    options = _options()
    seeds = range(options.first, options.first + options.seeds)
    digest = code()
    rows = {row["seed"]: row for row in _read(options.rows, digest) if row["seed"] in seeds}
    missing = [seed for seed in seeds if seed not in rows][: options.at_most]
    for row in _outcomes(missing, digest, options):
        rows[row["seed"]] = row
    print(f"{len(rows)} of {len(seeds)} seeds")  # noqa: T201
    if len(rows) < len(seeds):
        return
    found = summary([rows[seed] for seed in seeds])
    if options.json:
        from bench.results import save

        settings = {"first_seed": options.first, "seeds": options.seeds, "max_layers": options.max_layers}
        save(options.json.stem, found, settings=settings, folder=options.json.parent)
    else:
        print(json.dumps(found, indent=1))  # noqa: T201


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000, help="how many traces")
    parser.add_argument("--first", type=int, default=FIRST, help="the first seed")
    parser.add_argument("--max-layers", type=int, default=128)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rows", type=Path, help="keep every seed's outcome in this file, and go on from it")
    parser.add_argument("--at-most", type=int, help="stop after so many of the missing seeds")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    return parser.parse_args()


def code() -> str:
    """Return a digest of the code that the outcomes depend on."""
    digest = hashlib.sha256()
    for pattern in CODE:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _read(rows: Path | None, digest: str) -> list[dict[str, Any]]:
    if rows is None or not rows.exists():
        return []
    # The last line of a run that was stopped may be half a line.
    kept = (json.loads(line) for line in rows.read_text().splitlines() if line.endswith("}}"))
    return [row for row in kept if row["code"] == digest]


def _outcomes(seeds: list[int], digest: str, options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    # Forked processes would inherit locks of polars' threads.
    with get_context("spawn").Pool(options.processes) as pool:
        for outcome in pool.imap_unordered(_outcome, [(seed, options.max_layers) for seed in seeds], chunksize=8):
            row = {"code": digest, **outcome}
            if options.rows is not None:
                with options.rows.open("a") as file:
                    file.write(json.dumps(row) + "\n")
            yield row


def _outcome(arguments: tuple[int, int]) -> dict[str, Any]:
    from bench.segmentation_trials import run

    return run(*arguments)


if __name__ == "__main__":
    main()
