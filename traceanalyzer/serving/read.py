"""Find the results at the paths that a user gives: files, folders of a sweep, patterns."""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traceanalyzer.problems import TraceError, TraceWarning
from traceanalyzer.serving.console_text import from_console, holds_console_result
from traceanalyzer.serving.records import from_object
from traceanalyzer.serving.result_tables import from_csv, from_markdown
from traceanalyzer.serving.serving_result import ServingResult
from traceanalyzer.serving.text_files import exists, text_of

SUFFIXES = (".json", ".jsonl", ".csv", ".tsv", ".txt", ".log", ".md", ".json.gz", ".jsonl.gz")
RUN_FILE = re.compile(r"run=\d+\.json")
ENOUGH_TO_RECOGNISE = 5
"""Equal figures that make a printed result a copy of a saved one; chosen, not fitted."""


@dataclass(frozen=True)
class ReadResults:
    """What was read at some paths.

    Attributes:
        results: every run, in order of file name.
        warnings: files and lines that were skipped, and failures that a sweep wrote down.
    """

    results: tuple[ServingResult, ...]
    warnings: tuple[TraceWarning, ...]


def read(paths: str | Sequence[str]) -> ReadResults:
    """Read every result at the paths.

    Args:
        paths: files, folders, patterns (``runs/*.json``), or several of them joined by commas.

    Raises:
        TraceError: a path does not exist, cannot be read, or holds no result.
    """
    results: list[ServingResult] = []
    warnings: list[TraceWarning] = []
    for path in [paths] if isinstance(paths, str) else paths:
        for part in _expand(path):
            read_now = _read_folder(part) if part.is_dir() else _read_file(part)
            results += read_now.results
            warnings += read_now.warnings
    return _without_printed_copies(results, warnings)


def _without_printed_copies(results: list[ServingResult], warnings: list[TraceWarning]) -> ReadResults:
    """Return the results without printed copies of a saved one in the same folder, so that no run counts twice."""
    saved = [result for result in results if not result.resolution]
    kept = []
    for result in results:
        if any(_prints(result, other) for other in saved):
            message = "prints the same run as a saved result beside it and was skipped"
            warnings = [*warnings, TraceWarning("printed_copy", message, result.where)]
        else:
            kept.append(result)
    return ReadResults(tuple(kept), tuple(warnings))


def _prints(printed: ServingResult, saved: ServingResult) -> bool:
    """Whether every printed figure is the saved one, rounded."""
    if not printed.resolution or Path(printed.source).parent != Path(saved.source).parent:
        return False
    common = printed.metrics.keys() & saved.metrics.keys()
    return len(common) >= ENOUGH_TO_RECOGNISE and all(
        abs(printed.metrics[key] - saved.metrics[key]) <= printed.resolution.get(key, 0.0) * (1 + 1e-6)
        for key in common
    )


def _expand(path: str) -> list[Path]:
    """Return the existing paths of one argument: a path, a pattern, or a list with commas."""
    if exists(path):
        return [Path(path)]
    # Path.glob takes no absolute pattern.
    matched = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []  # noqa: PTH207
    if matched:
        return [Path(match) for match in matched]
    parts = [part.strip() for part in path.split(",") if part.strip()]
    if len(parts) > 1:
        return [path for part in parts for path in _expand(part)]
    raise TraceError(path, "no file matches this pattern" if glob.has_magic(path) else "does not exist")


def _read_folder(folder: Path) -> ReadResults:
    """Read the results below a folder; of a sweep only the runs, not summaries of them."""
    files = sorted(
        path for path in folder.rglob("*") if path.is_file() and path.name.endswith(SUFFIXES) and path.name[0] != "."
    )
    sweeps = {path.parent for path in files if RUN_FILE.fullmatch(path.name)}
    results: list[ServingResult] = []
    warnings: list[TraceWarning] = []
    skipped = 0
    for path in files:
        if path.name.endswith("failure.json"):
            warnings.append(_failure(path))
        elif not _made_from_runs(path, sweeps):
            try:
                of_file = _read_file(path)
            except TraceError:
                skipped += 1
                continue
            results += of_file.results
            warnings += of_file.warnings
    if not results:
        raise TraceError(str(folder), f"holds no serving result ({len(files)} files looked at)")
    if skipped:
        warnings.append(
            TraceWarning("no_result", "files without a serving result were skipped", str(folder), count=skipped)
        )
    return ReadResults(tuple(results), tuple(warnings))


def _made_from_runs(path: Path, sweeps: set[Path]) -> bool:
    """Whether a file summarises the runs of a sweep, or is its warm-up."""
    if path.name == "summary.csv":
        return any(path.parent in folder.parents for folder in sweeps)
    return path.parent in sweeps and not RUN_FILE.fullmatch(path.name)


def _failure(path: Path) -> TraceWarning:
    """Return a warning with what a sweep wrote about a failed run."""
    try:
        failure = json.loads(text_of(path))
        reason = f"{failure.get('error_type', 'error')}: {failure.get('error', '')}"
    except (ValueError, RecursionError, AttributeError, TraceError):
        reason = "no reason could be read"
    return TraceWarning("failed_run", f"a run of this sweep failed ({reason})", str(path))


def _read_file(path: Path) -> ReadResults:
    text = text_of(path)
    source = str(path)
    start = text.lstrip()[:1]
    if start in {"{", "["}:
        results, warnings = _from_json(text, source, repeat=RUN_FILE.fullmatch(path.name) is not None)
    else:
        warnings = []
        if holds_console_result(text):
            results = from_console(text, source)
        else:
            results = from_csv(text, source) or from_markdown(text, source)
    if not results:
        raise TraceError(
            source,
            "holds no serving result; expected the JSON of `vllm bench`, its printed table, or CSV with columns "
            "such as concurrency, rps, output_tokens_per_s, mean_ttft_s",
        )
    return ReadResults(tuple(results), tuple(warnings))


def _from_json(text: str, source: str, *, repeat: bool) -> tuple[list[ServingResult], list[TraceWarning]]:
    """Read a document, or one document per line; a line that is not JSON is skipped with a warning."""
    try:
        document = json.loads(text)
    except RecursionError as error:
        raise TraceError(source, "is nested too deeply to be a serving result") from error
    except ValueError as error:
        return _from_lines(text, source, error)
    if isinstance(document, dict):
        result = from_object(document, source, repeat=repeat)
        return ([result] if result else []), []
    return _from_objects(document, source, "entry"), []


def _from_lines(text: str, source: str, error: ValueError) -> tuple[list[ServingResult], list[TraceWarning]]:
    results: list[ServingResult] = []
    warnings: list[TraceWarning] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            warnings.append(TraceWarning("bad_line", "this line is not JSON and was skipped", source, line=number))
            continue
        if isinstance(document, dict) and (result := from_object(document, source, f"line {number}")):
            results.append(result)
    if not results:
        raise TraceError(source, f"is not readable as JSON ({error})")
    return results, warnings


def _from_objects(documents: Iterable[Any], source: str, noun: str) -> list[ServingResult]:
    results = [
        from_object(document, source, f"{noun} {number}")
        for number, document in enumerate(documents, 1)
        if isinstance(document, dict)
    ]
    return [result for result in results if result is not None]
