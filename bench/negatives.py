"""What confidence is worth where some traces hold no transformer: ``python -m bench.negatives``.

Negatives are traces of networks without transformer blocks (`synthetic.negatives`), of families that chose thresholds
and of families that never did; seeds count from 1,000,000, the tests' are below 1,000. Positives are the traces of
`bench.segmentation`. A claim is the highest confidence among a trace's complete steps that show blocks (of positives:
the lowest); it is right when all blocks are. Of a negative no claim is right.

``--rows FILE`` keeps the outcome of every trace, one JSON line each, and goes on where an earlier run stopped; outcomes
of other code are not used.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Sequence
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.segmentation import FIRST, code
from bench.segmentation_summary import calibration, share

FOUND = 0.3
"""Confidence above which blocks count as found."""
FITTED, UNSEEN, POSITIVE = "fitted", "unseen", "positive"

Row = dict[str, Any]
Task = tuple[str, int]


def main() -> None:
    """Run what is missing; write the results when nothing is."""
    # Traces are small: the processes share the cores, not the threads of each.
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    options = _options()
    tasks = [
        (kind, seed)
        for kind, count in ((FITTED, options.negatives), (UNSEEN, options.negatives), (POSITIVE, options.positives))
        for seed in range(options.first, options.first + count)
    ]
    digest = code()
    rows = {(row["kind"], row["seed"]): row for row in _read(options.rows, digest)}
    missing = [task for task in tasks if task not in rows]
    for row in _outcomes(missing, digest, options):
        rows[row["kind"], row["seed"]] = row
    outcome = summary([rows[task] for task in tasks])
    if options.json:
        from bench.results import save

        settings = {name: getattr(options, name) for name in ("first", "negatives", "positives")}
        save(options.json.stem, outcome, settings=settings, folder=options.json.parent)
    else:
        print(json.dumps(outcome, indent=1))  # noqa: T201


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--negatives", type=int, default=2000, help="how many traces of each kind of families")
    parser.add_argument("--positives", type=int, default=2000, help="how many traces of transformers")
    parser.add_argument("--first", type=int, default=FIRST, help="the first seed")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rows", type=Path, help="keep every trace's outcome in this file, and go on from it")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    return parser.parse_args()


def _read(rows: Path | None, digest: str) -> list[Row]:
    if rows is None or not rows.exists():
        return []
    # The last line of a run that was stopped may be half a line.
    kept = (json.loads(line) for line in rows.read_text().splitlines() if line.endswith("}"))
    return [row for row in kept if row["code"] == digest]


def _outcomes(tasks: list[Task], digest: str, options: argparse.Namespace) -> Iterable[Row]:
    # Forked processes would inherit locks of polars' threads.
    with get_context("spawn").Pool(options.processes) as pool:
        for outcome in pool.imap_unordered(run, tasks, chunksize=8):
            row = {"code": digest, **outcome}
            if options.rows is not None:
                with options.rows.open("a") as file:
                    file.write(json.dumps(row) + "\n")
            yield row


def run(task: Task) -> Row:
    """Return the outcome of one trace: its family, and its claim (null where no complete step shows blocks)."""
    kind, seed = task
    if kind == POSITIVE:
        from bench.segmentation_models import trial
        from bench.segmentation_trials import whole_trace

        chosen = trial(seed)
        outcome = whole_trace(chosen)
        row = {"family": chosen.family, "claim": outcome["claim"], "right": not outcome["error"]}
    else:
        row = _negative(kind, seed)
    return {"kind": kind, "seed": seed, **row}


def _negative(kind: str, seed: int) -> Row:
    from synthetic import generate, negatives, write
    from traceanalyzer.segment import segment
    from traceanalyzer.trace import open_traces

    chosen = negatives.random_negative(seed, negatives.FITTED if kind == FITTED else negatives.UNSEEN)
    with TemporaryDirectory() as folder:
        path = write(generate(chosen.spec, seed), Path(folder) / "trace.json")
        steps = segment(open_traces(path, cache=False).traces[0]).steps.filter("complete")
    highest = steps["confidence"].max()
    claim = [highest, False] if highest is not None else None
    return {"family": chosen.family, "claim": claim, "right": claim is None}


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Return rates by family and the reliability tables: of positives, of negatives, of both together."""
    of_kind = {kind: [row for row in rows if row["kind"] == kind] for kind in (FITTED, UNSEEN, POSITIVE)}
    measured = of_kind[UNSEEN] + of_kind[POSITIVE]
    return {
        "negatives": {kind: _claimed(of_kind[kind]) for kind in (FITTED, UNSEEN)},
        "families": {
            kind: {family: _claimed([row for row in of_kind[kind] if row["family"] == family]) for family in families}
            for kind in (FITTED, UNSEEN)
            for families in [sorted({row["family"] for row in of_kind[kind]})]
        },
        "positives": share([row["right"] for row in of_kind[POSITIVE]]),
        "calibration": {
            "transformers": calibration(_claims(of_kind[POSITIVE])),
            "others": calibration(_claims(of_kind[UNSEEN])),
            "together": calibration(_claims(measured)),
        },
    }


def _claimed(rows: Sequence[Row]) -> dict[str, Any]:
    """How many traces show blocks, and how many claim them above `FOUND`."""
    claims = [row["claim"][0] for row in rows if row["claim"] is not None]
    above = share([claim > FOUND for claim in claims] + [False] * (len(rows) - len(claims)))
    return {"traces": len(rows), "shown": len(claims), "found": above, "highest": max(claims, default=None)}


def _claims(rows: Sequence[Row]) -> list[tuple[float, bool]]:
    return [(float(row["claim"][0]), bool(row["claim"][1])) for row in rows if row["claim"] is not None]


if __name__ == "__main__":
    main()
