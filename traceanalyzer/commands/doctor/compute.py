"""What is wrong with a trace file, what that does to the results, and a copy of it that is valid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from traceanalyzer.commands.doctor.result import DoctorDocument, DoctorProblem
from traceanalyzer.declare import part_of
from traceanalyzer.files import written_whole
from traceanalyzer.problems import TraceError, TraceWarning, whole_text
from traceanalyzer.read import ingest, inputs
from traceanalyzer.read.container import Plain, describe_unknown
from traceanalyzer.read.decode import decode_events
from traceanalyzer.read.input_path import input_path
from traceanalyzer.read.pipes import READ_ONCE
from traceanalyzer.read.salvage import salvage
from traceanalyzer.read.trace_text import NotATrace, TraceText, Window

WINDOW_BYTES = 4 << 20

EFFECTS = {
    "truncated": "what follows the cut is missing: the last step is incomplete, totals are too small",
    "truncated_tail": "metadata after the events are missing; the events are complete",
    "damaged_compression": "events after the damage are missing",
    "damaged_archive": "members after the damage are missing",
    "damaged_header": "some metadata (GPU, rank, versions) may be missing; the events are complete",
    "damaged_tail": "some metadata may be missing; the events are complete",
    "unreadable_events": "these events are missing from every result",
    "unreadable_value": "this piece of metadata is missing",
    "repaired_events": "none on times; names may differ from the original in the bytes that were replaced",
    "invalid_gpu_times": "these GPU events are missing from every result: totals are too small",
    "invalid_host_times": "these host events are missing; links from kernels to them are lost",
    "clipped_durations": "the clipped durations are upper bounds",
    "begin_end_pairs": "none: durations are those between begin and end",
    "unmatched_begin_end": "these events are missing from every result",
    "zero_duration": "these kernels are missing from every result; their time is unknown, and small",
    "repaired_names": "none: names and times fit again",
    "doubtful_names": "totals are right; figures by kernel, role and family are not certain",
    "kernels_not_recorded": "no GPU times: there is nothing to analyse",
    "accelerator_events": "these events are missing from every result",
    "cpu_only": "no GPU times: only host operations can be shown",
    "trailing_data": "none: it is not counted",
    "leading_data": "none: it is not counted",
    "duplicate_key": "events of both lists are counted",
    "no_list": "none",
    "rank_conflict": "the trace may be of another rank than its name says",
    "duplicate_rank": "results by rank may mix two recordings",
    "missing_ranks": "what depends on all ranks (waiting, imbalance) is unknown",
    "skipped_file": "nothing of this file is counted",
    "skipped_member": "nothing of this member is counted",
    "changed_while_read": "what was written later is missing",
}
"""What each kind of problem does to results, by the code of its warning."""


def examine(path: str, repair: Path | None = None) -> DoctorDocument:
    """Read a trace and say what is wrong with it.

    Args:
        repair: where to write a valid copy (gzip where the name ends in .gz); None for none.

    Raises:
        TraceError: no copy of this input can be made, or it cannot be written.
    """
    if repair is not None:
        _check_copy(path, repair)
    try:
        result = ingest([path], cache=False)
    except TraceError as error:
        why = TraceWarning("unusable", error.reason, source=error.path)
        return DoctorDocument(usable=False, problems=[_problem(why, "the input cannot be analysed")], repaired=None)
    warnings = [*result.warnings, *(w for store in result.stores for w in store.metadata.warnings)]
    problems = [_problem(one, EFFECTS.get(one.code, "unknown")) for one in warnings if one.code != "no_cache"]
    if repair is not None:
        write_repaired(path, repair)
    return DoctorDocument(usable=True, problems=problems, repaired=None if repair is None else whole_text(str(repair)))


def _problem(warning: TraceWarning, effect: str) -> DoctorProblem:
    return part_of(DoctorProblem, warning, effect=effect)


def write_repaired(path: str, target: Path, more: Iterable[bytes] = ()) -> None:
    """Write every readable event of a trace, and its metadata, as valid JSON.

    Events are copied byte for byte; only those that had to be repaired change.

    Args:
        target: the copy; gzip where its name ends in .gz.
        more: events to write after those of the trace, one JSON object each.

    Raises:
        TraceError: the input holds no trace or several, or the copy cannot be written.
    """
    _check_copy(path, target)
    with written_whole(target, make_folder=True) as raw, closing(_compressed(raw, target)) as out:
        for text in _valid_text(path, more):
            out.write(text)


def _check_copy(path: str, target: Path) -> None:
    """Refuse, before anything is read, an input that cannot be read twice, and a copy in the place of its original."""
    kind = input_path(path).kind
    if kind == "url":
        raise TraceError(path, "only local files can be copied: download it first")
    if kind == "pipe":
        raise TraceError(path, f"no copy can be made of it: {READ_ONCE}, so save it to a file first")
    if target.exists() and Path(path).exists() and target.samefile(path):
        raise TraceError(str(target), "the repaired copy cannot replace the file it is made from")


def _compressed(raw: BinaryIO, target: Path) -> BinaryIO:
    if target.suffix != ".gz":
        return raw
    from isal import igzip

    open_gzip: Any = igzip.GzipFile
    return cast(BinaryIO, open_gzip(filename="", mode="wb", compresslevel=2, fileobj=raw))


def _valid_text(path: str, more: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the text of a valid trace, in pieces."""
    inputs.check_file(path)
    size = Path(path).stat().st_size
    with inputs.opened(path) as plain:
        traces = inputs.traces_in(plain, size, chosen=True)
        first = next((each.plain for each in traces if each.plain is not None), None)
        if first is None:
            raise TraceError(path, "no trace in it")
        yield from _document_text(first, more)
        if any(each.plain is not None for each in traces):
            raise TraceError(path, "holds several traces: unpack it and repair them one by one")


def _document_text(plain: Plain, more: Iterable[bytes]) -> Iterator[bytes]:
    document = TraceText(plain, WINDOW_BYTES)
    written: set[str] = set()
    separator = b"\n"
    try:
        for window in document.windows():
            if not written:
                yield b"{" + _members(document.root, written) + b'"traceEvents": ['
                written.add("traceEvents")
            for text in _event_texts(window):
                yield separator + text
                separator = b",\n"
    except NotATrace as problem:
        raise TraceError(plain.path, str(problem) or describe_unknown(plain.start)) from None
    for text in more:
        yield separator + text
        separator = b",\n"
    rest = _members(document.root, written)
    yield b"\n]" + (b", " + rest.removesuffix(b", ") if rest else b"") + b"}\n"


def _members(root: dict[str, Any], written: set[str]) -> bytes:
    """Return the members of the root that were not written yet, each with a comma after it."""
    fresh = {key: value for key, value in root.items() if key not in written}
    written |= set(fresh)
    return b"".join(
        msgspec.json.encode(key) + b": " + msgspec.json.encode(value) + b", " for key, value in fresh.items()
    )


def _event_texts(window: Window) -> Iterator[bytes]:
    data = window.data.strip(b" \t\r\n,")
    if not data:
        return
    try:
        _strictly_decoded(b"[" + data + b"]")
    except (msgspec.DecodeError, RecursionError, ValueError):
        yield from salvage(window.data, _strictly_decoded, exact=True).texts
    else:
        yield data


def _strictly_decoded(text: bytes) -> list[Any]:
    """Decode events, and check what the decoder of events skips."""
    msgspec.json.decode(text)
    return decode_events(text, exact=True)
