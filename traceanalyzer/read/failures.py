"""Failures of reading and writing as errors that name a file."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl

from traceanalyzer.problems import TraceError
from traceanalyzer.workers import WorkerError


@contextmanager
def named_in_errors(path: str) -> Iterator[None]:
    """Name a file in whatever goes wrong in a block.

    Raises:
        TraceError: the block failed.
    """
    try:
        yield
    except TraceError:
        raise
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        what = "the disk is full: no store could be written" if full else (error.strerror or str(error)).lower()
        raise TraceError(path, what) from error
    except pl.exceptions.PolarsError as error:
        raise TraceError(path, f"the store could not be written: {str(error).splitlines()[0]}") from error
    except WorkerError as error:
        raise TraceError(path, str(error)) from error
    except MemoryError as error:
        raise TraceError(path, "not enough memory to read it") from error
