"""Traces at URLs: read as a stream, nothing is stored but the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import BinaryIO, cast

from traceanalyzer.problems import TraceError
from traceanalyzer.read.container import Plain

TIMEOUT_S = 60


def files(path: str) -> Iterator[tuple[str, int | None, Callable[[], Plain]]]:
    """Yield (URL, size where known, opener) of the files at a URL.

    Raises:
        TraceError: it cannot be reached, or its protocol needs a package that is not there.
    """
    scheme = path.partition("://")[0]
    if scheme in {"http", "https"}:
        yield path, None, partial(_open_http, path)
        return
    import fsspec

    try:
        system, name = fsspec.core.url_to_fs(path)
        for each in system.find(name) if system.isdir(name) else [name]:
            url = system.unstrip_protocol(each)
            yield url, system.size(each), partial(_open, system, each, url)
    except (ImportError, ValueError) as error:
        raise TraceError(path, f"cannot be opened: {error}") from error
    except Exception as error:
        raise TraceError(path, _reason(error)) from error


def _open(system: object, name: str, url: str) -> Plain:
    try:
        return Plain(url, cast(BinaryIO, system.open(name, "rb")))  # type: ignore[attr-defined]
    except Exception as error:
        raise TraceError(url, _reason(error)) from error


def _open_http(url: str) -> Plain:
    """Open a web address with the standard library: fsspec's own would need aiohttp."""
    import urllib.error
    import urllib.request

    try:
        request = urllib.request.Request(url, headers={"User-Agent": "traceanalyzer"})
        return Plain(url, cast(BinaryIO, urllib.request.urlopen(request, timeout=TIMEOUT_S)))
    except urllib.error.HTTPError as error:
        reason = f"the server answered {error.code} {error.reason}"
        error.close()
        raise TraceError(url, reason) from None
    except (OSError, ValueError) as error:
        raise TraceError(url, _reason(error)) from error


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file or directory"
    text = str(getattr(error, "reason", None) or getattr(error, "strerror", None) or error)
    return f"cannot be read: {text.splitlines()[0] if text else type(error).__name__}"
