"""Stores where the user wants them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from traceanalyzer.problems import TraceError
from traceanalyzer.read.derived import SUFFIX
from traceanalyzer.read.failures import named_in_errors
from traceanalyzer.read.scratch import Scratch, check_readable
from traceanalyzer.read.store import METADATA_FILE, Store


def write_output(stores: Sequence[Store], output: Path) -> tuple[Store, ...]:
    """Copy stores to where the user wants them, replacing an earlier output; return them as they lie there.

    Raises:
        TraceError: something else lies there, or it cannot be written.
    """
    if output.exists() and not _is_earlier_output(output):
        why = "exists and holds what traceanalyzer did not write: choose another --output"
        raise TraceError(str(output), why)
    with named_in_errors(str(output)):
        check_readable(output)
        output.parent.mkdir(parents=True, exist_ok=True)
        scratch = Scratch(output.parent)
        try:
            names = [""] if len(stores) == 1 else [str(number) for number in range(len(stores))]
            for store, name in zip(stores, names, strict=True):
                shutil.copytree(store.directory, scratch.path / name, dirs_exist_ok=True)
            if output.exists():
                old = Scratch(output.parent)
                output.rename(old.path / "old")
                scratch.publish(output, private=False)
                old.discard()
            else:
                scratch.publish(output, private=False)
        except BaseException:
            scratch.discard()
            raise
    return tuple(replace(store, directory=output / name) for store, name in zip(stores, names, strict=True))


def _is_earlier_output(output: Path) -> bool:
    """Whether there is nothing at a path but what ``write_output`` left: it is about to be removed."""
    if not output.is_dir():
        return False
    if (output / METADATA_FILE).exists():
        return _is_store(output)
    return all(_is_store(each) for each in output.iterdir())


def _is_store(directory: Path) -> bool:
    """Whether a directory holds a store and nothing else."""
    if not (directory / METADATA_FILE).exists():
        return False
    return all(path.name == METADATA_FILE or path.suffix in {".parquet", SUFFIX} for path in directory.iterdir())
