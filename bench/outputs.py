"""What the product says today, kept, and compared with what it says later.

    python -m bench.outputs record FOLDER [--shared ../shared] [--jobs 2] [--only COMMAND ... | --few]
    python -m bench.outputs compare BEFORE AFTER [--only COMMAND ...] [--sentences]

``record`` runs every command that prints JSON or CSV over the samples, the cases and, where they are, the shared
traces and data, and keeps what each printed with its exit status. ``compare`` says which runs differ: keys and numbers
must be the same to the last digit; keys may be added, and sentences may be worded differently (counted, and listed
with ``--sentences``). Exit status 1 when anything else differs.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "traces").glob("*.json.gz"))
CASES = "tests/data/cases"
SHOWN_DIFFERENCES = 8
"""Differences listed for a run."""
WORDED = frozenset({"message", "reason", "effect", "basis", "notes", "assumptions", "warnings", "text", "meaning"})
"""Keys whose values are sentences, whatever they look like."""

Run = tuple[str, ...]


def trace_runs(path: str, *, brief: bool = False) -> Iterator[Run]:
    """Yield the runs of every command that takes one trace."""
    for words in ("ingest", "blocks", "idle", "hotspots", "roofline", "tune plan"):
        yield (*words.split(), path, "--json")
    yield ("doctor", path, "--json")
    for words in ("blocks", "idle", "hotspots", "roofline"):
        yield (words, path, "--csv")
    if brief:
        return
    for by in ("role", "family"):
        yield ("hotspots", path, "--by", by, "--json")
    for phase in ("decode", "prefill"):
        yield ("hotspots", path, "--phase", phase, "--json")
        yield ("blocks", path, "--phase", phase, "--csv")
    yield ("hotspots", path, "--gpu", "H100 SXM5", "--json")
    yield ("roofline", path, "--model", "gpt-oss-20b", "--gpu", "MI300X", "--json")
    yield ("roofline", path, "--model", "qwen3-8b", "--gpu", "H100 SXM5", "--requests", "4", "--json")
    yield ("export", "csv", path, "--output", "OUT")


def rank_runs(path: str) -> Iterator[Run]:
    """Yield the runs over a folder of ranks."""
    yield ("ingest", path, "--json")
    yield ("ranks", path, "--json")
    yield ("ranks", path, "--csv")
    yield ("blocks", path, "--csv")
    yield ("hotspots", path, "--rank", "0", "--json")


def data_runs(shared: str | None) -> Iterator[Run]:
    """Yield the runs over serving results, sweeps, models and GPUs."""
    before, after = f"{CASES}/500_bench_before.json", f"{CASES}/500_bench_after.json"
    yield ("serving", "compare", before, after, "--json")
    yield ("serving", "compare", before, after, "--csv")
    yield ("serving", "compare", "--layouts", f"a={before}", f"b={after}", "--json")
    yield ("serving", "compare", "--layouts", f"a={before}", f"b={after}", "--csv")
    shown = [before, after, f"{CASES}/501_bench_failed_requests.json", f"{CASES}/503_bench_old_schema.json"]
    if shared:
        results = Path(shared, "data/serving_results")
        shown += sorted(str(path) for path in results.iterdir() if path.suffix in {".json", ".csv"})
    for path in shown:
        yield ("serving", "show", path, "--json")
        yield ("serving", "show", path, "--csv")
    ab = (f"{CASES}/600_ab_before.json.gz", f"{CASES}/600_ab_after.json.gz")
    for printed in ("--json", "--csv"):
        yield ("diff", *ab, printed)
        yield ("diff", SAMPLES[0], ab[1], printed)
        yield ("diff", SAMPLES[0], SAMPLES[0], printed)
    yield ("gpus", "--json")
    for model, gpu in (("llama-3.1-8b", "H100 SXM5"), ("gpt-oss-120b", "MI300X"), ("deepseek-v3", "B200")):
        estimate = ("estimate", "--model", model, "--gpu", gpu, "--isl", "512", "--osl", "64")
        yield (*estimate, "--batch", "1,16", "--json")
        yield (*estimate, "--tp", "4", "--batch", "8", "--slo", "tpot=60ms,ttft=2s", "--json")
        yield (*estimate, "--compare-gpu", "A100 SXM4 80GB", "--json")
        yield (*estimate, "--compare-parallel", "tp=2,pp=2", "--link-gbps", "25:450", "--json")
        yield (*estimate, "--roofline", "--batch", "2", "--no-graphs", "--json")
    mine = ("estimate", "--model", "gpt-oss-20b", "--gpu", "Radeon 8060S", "--batch", "1")
    yield (*mine, "--trace", SAMPLES[0], "--to-share", "moe_down=0.6", "--json")
    yield (*mine, "--calibrate", SAMPLES[0], "--json")
    yield ("name", *names(), "--json")
    log = "docs/data/strix_halo_sweep.log"
    yield ("tune", "import", log, "--top-k", "4", "--json")
    yield ("tune", "policy", log, "--top-k", "4", "--max-regret", "0.15", "--json")
    yield ("tune", "replay", log, "--budget-share", "0.5", "--seeds", "2", "--json")
    moe = f"{CASES}/510_moe_cfg"
    yield ("tune", "configs", f"{moe}/server.log", "--folder", moe, "--json")
    for kind in ("plugin", "patch"):
        more = ("--vendor", "amd") if kind == "plugin" else ()
        given = (log, "--top-k", "4", "--max-regret", "0.15", *more, "--output", "OUT")
        yield ("tune", "export", kind, *given, "--json")
    sweep = "tests/data/sweeps/fused_moe.jsonl"
    yield ("tune", "import", sweep, "--json")
    yield ("tune", "policy", sweep, "--json")
    yield ("tune", "verify", "--before", ab[0], "--after", ab[1], "--json")
    yield ("tune", "verify", "--before-results", before, "--after-results", after, "--json")
    dense = ("--kernel", "dense", "--shape", "n=64,k=64", "--m", "8", "--jobs", "1")
    yield ("tune", "screen", *dense, "--target", "gfx942", "--config", "16x32x64,num_warps=1", "--json")
    yield ("tune", "screen", *dense, "--target", "sm_90", "--config", "16x32x64,num_warps=4", "--json")
    if shared:
        for name in ("inductor_autotune.csv", "clblast_gemm_rtx3090.json.gz", "pnpoly_RTX_3090.json.gz"):
            yield ("tune", "import", f"{shared}/data/tuner/{name}", "--json")
        clblast = f"{shared}/data/tuner/clblast_gemm_rtx3090.json.gz"
        yield ("tune", "replay", clblast, "--budget-share", "0.01", "--seeds", "1", "--json")


def names() -> list[str]:
    """Return the kernel names of the tests, each once."""
    cases = json.loads((ROOT / "tests/data/names_cases.json").read_text(encoding="utf-8"))
    found: dict[str, None] = {}

    def visit(value: Any) -> None:
        for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            visit(one)
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            found[value["name"]] = None

    visit(cases)
    return [name for name in found if name and not name.startswith("-")]


def runs(shared: str | None) -> list[Run]:
    """Return every run, each once, in a fixed order."""
    made: list[Run] = []
    for path in SAMPLES:
        made += trace_runs(path)
    for case in sorted((ROOT / CASES).iterdir()):
        path = str(case.relative_to(ROOT))
        if case.name == "expected.json" or case.name.startswith("5"):
            continue
        made += rank_runs(path) if case.is_dir() or "ranks" in case.name else trace_runs(path)
    if shared:
        base = Path(shared, "traces")
        found = sorted(path for place in ("cpu", "gpu", "others") for path in (base / place).glob("*.json.gz"))
        for trace in found:
            made += trace_runs(str(trace), brief=trace.parent.name == "others")
        capture = base / "gpu/gptoss20b_vllm_decode_mi300x.capture.json.gz"
        decode = base / "gpu/gptoss20b_vllm_decode_mi300x.json.gz"
        made.append(("roofline", str(decode), "--capture", str(capture), "--json"))
        made += rank_runs(str(base / "cpu/llama_24_vllm_compiled_tp2_gloo"))
        for trace in sorted(Path(shared, "reports/traces").glob("*.json.gz")):
            made += trace_runs(str(trace), brief=True)
    made += data_runs(shared)
    return list(dict.fromkeys(made))


def few_runs() -> list[Run]:
    """Return a small set of runs over what the repository holds, one or two of each command: a test keeps them."""
    sample = "traces/gptoss20b_decode_synthetic.json.gz"
    sides = (f"{CASES}/600_ab_before.json.gz", f"{CASES}/600_ab_after.json.gz")
    results = (f"{CASES}/500_bench_before.json", f"{CASES}/500_bench_after.json")
    estimate = ("--model", "gpt-oss-120b", "--gpu", "MI300X", "--isl", "512", "--osl", "64", "--batch", "1,16")
    return [
        ("blocks", f"{CASES}/210_dense_first3_moe.json.gz", "--csv"),
        ("blocks", sample, "--json"),
        ("hotspots", sample, "--json"),
        ("hotspots", sample, "--by", "role", "--json"),
        ("hotspots", f"{CASES}/203_vllm_detailed.json.gz", "--csv"),
        ("idle", f"{CASES}/201_vllm_native.json.gz", "--json"),
        ("idle", f"{CASES}/205_no_annotation_eager.json.gz", "--csv"),
        ("roofline", sample, "--json"),
        ("roofline", sample, "--csv"),
        ("tune", "plan", sample, "--json"),
        ("ingest", f"{CASES}/113_two_gpus.json.gz", "--json"),
        ("ingest", f"{CASES}/109_cpu_only.json", "--json"),
        ("doctor", f"{CASES}/001_truncated_midevent.json", "--json"),
        ("ranks", f"{CASES}/303_allreduce_wait", "--json"),
        ("ranks", f"{CASES}/305_pp2", "--csv"),
        ("diff", *sides, "--json"),
        ("diff", *sides, "--csv"),
        ("serving", "compare", *results, "--json"),
        ("serving", "show", results[0], "--csv"),
        ("gpus", "--json"),
        ("estimate", *estimate, "--json"),
        ("tune", "policy", "docs/data/strix_halo_sweep.log", "--top-k", "4", "--max-regret", "0.15", "--json"),
        ("tune", "verify", "--before", sides[0], "--after", sides[1], "--json"),
    ]


def file_of(run: Run, folder: Path) -> Path:
    """Return where the record of a run is kept."""
    return folder / f"{sha256(json.dumps(run).encode()).hexdigest()[:20]}.json.gz"


def record_one(run: Run, folder: Path) -> None:
    """Run a command and keep its exit status, output, and the CSV files that it wrote."""
    from click.testing import CliRunner

    cli: Any = command_line()
    with tempfile.TemporaryDirectory() as out:
        given = [out if word == "OUT" else word for word in run]
        result = CliRunner().invoke(cli, given)
        files = {
            path.name: path.read_text(encoding="utf-8")
            for path in sorted(Path(out).rglob("*.csv"))
            if run[0] == "export"
        }
        output = result.stdout.replace(out, "OUT")
    kept = {"run": run, "status": result.exit_code, "output": output, "files": files}
    text = json.dumps(kept, ensure_ascii=False)
    # Without a time and a name in it, the same record is the same file.
    file_of(run, folder).write_bytes(gzip.compress(text.encode(errors="surrogatepass"), 6, mtime=0))


def command_line() -> object:
    """Return the product's root command."""
    from traceanalyzer.cli.main import cli

    return cli


def record(folder: Path, wanted: Sequence[Run], jobs: int) -> None:
    """Record runs."""
    os.chdir(ROOT)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as cache:
        os.environ |= {"XDG_CACHE_HOME": cache, "COLUMNS": "100"}
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            for _ in pool.map(record_one, wanted, [folder] * len(wanted), chunksize=8):
                pass
    say(f"{len(wanted)} runs in {folder}")


def is_wanted(run: Sequence[str], only: Sequence[str]) -> bool:
    """Whether a run is of one of some commands, such as ``idle`` or ``tune-plan``; of any without."""
    return not only or run[0] in only or "-".join(run[:2]) in only


def compare(before: Path, after: Path, sentences: bool, only: Sequence[str]) -> int:
    """Print what differs; return the exit status."""
    worded: Counter[str] = Counter()
    failed = 0
    known = sorted(path.name for path in before.glob("*.json.gz"))
    for name in known:
        a = read(before / name)
        if not is_wanted(a["run"], only):
            continue
        if not (after / name).exists():
            say(f"missing: {' '.join(a['run'])[:120]}")
            failed += 1
            continue
        b = read(after / name)
        told = list(differences(a, b, worded))
        if told:
            failed += 1
            say(f"{' '.join(a['run'])[:160]}: {len(told)} differences")
            for line in told[:SHOWN_DIFFERENCES]:
                say(f"    {line[:300]}")
    say(f"{len(known)} runs, {failed} differ; {sum(worded.values())} sentences reworded ({len(worded)} distinct)")
    if sentences:
        for text, count in worded.most_common():
            say(f"  {count} x {text[:400]}")
    return 1 if failed else 0


def read(path: Path) -> Any:
    """Read the record of a run."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def differences(a: Any, b: Any, worded: Counter[str], tolerance: float = 0.0) -> Iterator[str]:
    """Yield what differs between two records of one run; figures may differ by a share of ``tolerance``."""
    if a["status"] != b["status"]:
        yield f"exit status {a['status']} -> {b['status']}"
    if a["status"] and b["status"]:
        return
    if "--json" in a["run"] and not a["status"] and not b["status"]:
        yield from unlike(json.loads(a["output"]), json.loads(b["output"]), "$", worded, tolerance)
    elif "--csv" in a["run"]:
        yield from unlike_lines(a["output"], b["output"], tolerance)
    for name in a["files"]:
        yield from unlike_lines(a["files"][name], b["files"].get(name, ""), tolerance)


def unlike(a: Any, b: Any, where: str, worded: Counter[str], tolerance: float) -> Iterator[str]:
    """Yield the places where two JSON values differ: b may have more keys, and other sentences."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in a.keys() - b.keys():
            yield f"{where}.{key}: gone"
        for key in a.keys() & b.keys():
            yield from unlike(a[key], b[key], f"{where}.{key}", worded, tolerance)
    elif isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            yield f"{where}: {len(a)} -> {len(b)} entries"
        for i, (left, right) in enumerate(zip(a, b, strict=False)):
            yield from unlike(left, right, f"{where}[{i}]", worded, tolerance)
    elif isinstance(a, str) and isinstance(b, str) and a != b and is_sentence(a, where):
        worded[f"{a}  =>  {b}"] += 1
    elif is_number(a) and is_number(b):
        if not math.isclose(a, b, rel_tol=tolerance):
            yield f"{where}: {a!r} -> {b!r}"
    elif type(a) is not type(b) or a != b:
        yield f"{where}: {a!r} -> {b!r}"


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_sentence(text: str, where: str) -> bool:
    """Whether a text is one for people, and not a name, a path or a word of a fixed list."""
    keys = where.replace("]", "").replace("[", ".").split(".")
    if keys[-1] in {"name", "path", "first_kernel", "before", "after", "kernel", "label"}:
        return False
    return " " in text or any(key in WORDED for key in keys)


def unlike_lines(a: str, b: str, tolerance: float) -> Iterator[str]:
    """Yield the lines of two CSV texts that differ; figures may differ by a share of ``tolerance``."""
    left, right = list(csv.reader(a.splitlines())), list(csv.reader(b.splitlines()))
    if len(left) != len(right):
        yield f"{len(left)} -> {len(right)} lines"
    for number, (one, other) in enumerate(zip(left, right, strict=False), 1):
        if len(one) != len(other) or not all(map(partial(same_cell, tolerance), one, other)):
            yield f"line {number}: {one!r} -> {other!r}"


def same_cell(tolerance: float, a: str, b: str) -> bool:
    """Whether two cells hold the same text or, within the tolerance, the same figure."""
    if a == b:
        return True
    try:
        return bool(tolerance) and math.isclose(float(a), float(b), rel_tol=tolerance)
    except ValueError:
        return False


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    verbs = parser.add_subparsers(dest="verb", required=True)
    recording = verbs.add_parser("record")
    recording.add_argument("folder", type=Path)
    recording.add_argument("--shared", help="the folder of shared traces; left out, only what is in the repository")
    recording.add_argument("--few", action="store_true", help="only what the test keeps, in tests/data/outputs")
    recording.add_argument("--jobs", type=int, default=2)
    comparing = verbs.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--sentences", action="store_true", help="also list sentences that are worded differently")
    for each in (recording, comparing):
        each.add_argument("--only", nargs="+", default=(), help="commands, such as idle or tune-plan")
    given = parser.parse_args(arguments)
    if given.verb == "record":
        wanted = few_runs() if given.few else [run for run in runs(given.shared) if is_wanted(run, given.only)]
        record(given.folder.resolve(), wanted, given.jobs)
        return 0
    return compare(given.before, given.after, given.sentences, given.only)


if __name__ == "__main__":
    sys.exit(main())
