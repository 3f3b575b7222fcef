"""Which tuned configurations a vLLM server missed, from its log, and whether a folder has near ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from traceanalyzer.commands.tune.configs.result import MissingConfig, NearConfig, TuneConfigsDocument
from traceanalyzer.commands.tune.formats.sweep_source import open_source
from traceanalyzer.commands.tune.formats.vllm_moe_files import FileName, parse_file_name
from traceanalyzer.problems import TraceError

MOST_APART = 2
"""Differences with which a file is still called close to the one wanted; chosen, not fitted."""

_NOT_FOUND = "Config file not found at"
_PATH = re.compile(r"[^'\"\s,]*(?:E=\d+,)?N=\d+,(?:K=\d+,)?device_name=.*?\.json")


def missing_configs(log: str | Path, folder: str | Path | None = None) -> TuneConfigsDocument:
    """Read a vLLM server's log, plain or gzip, and compare what it missed with the files of a folder, if one is given.

    Raises:
        TraceError: the log or the folder cannot be read.
    """
    seen: dict[FileName, list[int]] = {}
    used: dict[str, None] = {}
    log_lines = 0
    for number, line in enumerate(open_source(str(log)).text.split("\n"), start=1):
        if "Using configuration from" in line:
            used.update(dict.fromkeys(str(name) for name in _names(line)))
        if _NOT_FOUND not in line:
            continue
        names = _names(line.partition(_NOT_FOUND)[2])
        log_lines += bool(names)
        for name in dict.fromkeys(names):
            seen.setdefault(name, []).append(number)
    files = _files(folder)
    return TuneConfigsDocument(
        missing=[_missing(name, lines, files) for name, lines in seen.items()], used=list(used), log_lines=log_lines
    )


def _names(text: str) -> list[FileName]:
    """Return the files that a text names; one is looked for in several folders under the same name."""
    names = (match.group().replace("\\", "/").rpartition("/")[2] for match in _PATH.finditer(text))
    return [name for name in map(parse_file_name, names) if name is not None]


def _files(folder: str | Path | None) -> list[FileName]:
    if folder is None:
        return []
    try:
        names = sorted(path.name for path in Path(folder).iterdir())
    except OSError as error:
        raise TraceError(str(folder), error.strerror or "cannot be read") from None
    return [name for name in map(parse_file_name, names) if name is not None]


def _missing(name: FileName, lines: Sequence[int], files: Iterable[FileName]) -> MissingConfig:
    """Return a missing file with those that are for the same kind of product."""
    same_kind = [file for file in files if (file.experts is None) == (name.experts is None) and file != name]
    near = sorted((len(why), str(file), why) for file in same_kind if len(why := differences(name, file)) <= MOST_APART)
    return MissingConfig(
        shape=name.label,
        file=str(name),
        experts=name.experts,
        n=name.n,
        k=name.k,
        device=name.device,
        dtype=name.dtype,
        block_shape=list(name.block_shape) if name.block_shape else None,
        lines=len(lines),
        first_line=lines[0],
        in_folder=name in files,
        near=[NearConfig(file=file, why=why) for _, file, why in near],
    )


def differences(wanted: FileName, there: FileName) -> list[str]:
    """Return in words how a file differs from the one that was wanted."""
    told = []
    if there.experts != wanted.experts:
        told.append(f"E={there.experts} does not match E={wanted.experts} (expert parallel size or model changed)")
    if there.n != wanted.n or there.k != wanted.k:
        told.append(_sizes(wanted, there))
    for what in ("device", "dtype"):
        if getattr(there, what) != getattr(wanted, what):
            told.append(f"{what} {getattr(there, what)} does not match {getattr(wanted, what)}")
    if there.block_shape != wanted.block_shape:
        told.append(f"block shape {there.block_shape} does not match {wanted.block_shape}")
    return told


def _sizes(wanted: FileName, there: FileName) -> str:
    pairs = [("N", there.n, wanted.n), ("K", there.k, wanted.k)]
    text = " and ".join(f"{key}={have} does not match {key}={want}" for key, have, want in pairs if have != want)
    large, small = max(there.n, wanted.n), min(there.n, wanted.n)
    if there.k != wanted.k or large % small:
        return text
    factor = large // small
    way = f"{factor} times as many" if wanted.n < there.n else f"1/{factor} of the"
    return f"{text} (tensor parallel size changed: N is per rank, the server runs on {way} ranks)"
