"""Directories that are being written: locked while their owner lives, removed by a later run when it died."""

from __future__ import annotations

import atexit
import errno
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from traceanalyzer.files import permissions_of_new

PREFIX = ".traceanalyzer-tmp-"
LOCK_FILE = "lock"


class Scratch:
    """A new directory below ``parent`` that vanishes unless it is published.

    Args:
        parent: an existing directory.

    Attributes:
        path: the directory.
    """

    def __init__(self, parent: Path) -> None:
        check_readable(parent)
        remove_stale(parent)
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        # The lock gets its name once it is held: a file of that name without a holder means that the owner died.
        unnamed = self.path / f"{LOCK_FILE}.new"
        self._lock: int | None = os.open(unnamed, os.O_CREAT | os.O_RDWR, 0o600)
        _lock(self._lock)
        unnamed.rename(self.path / LOCK_FILE)

    def publish(self, target: Path, *, private: bool = True) -> Path:
        """Rename the directory to ``target``; where another process was first, its directory stays.

        Args:
            target: a path beside it.
            private: whether only this user may look into it; else what is usual for new directories.
        """
        (self.path / LOCK_FILE).unlink(missing_ok=True)
        if not private:
            self.path.chmod(permissions_of_new(0o777))
        try:
            self.path.rename(target)
        except OSError:
            if not target.is_dir():
                raise
            shutil.rmtree(self.path, ignore_errors=True)
        self._unlock()
        return target

    def keep_until_exit(self) -> Path:
        """Leave the directory in place until this process ends."""
        atexit.register(self.discard)
        return self.path

    def discard(self) -> None:
        """Remove the directory, if it was not published."""
        if self._lock is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def check_readable(directory: Path) -> None:
    """Refuse directories whose files Polars cannot read: those whose names are not UTF-8.

    Raises:
        OSError: this is one.
    """
    try:
        str(directory.absolute()).encode()
    except UnicodeEncodeError:
        reason = "the name of the directory is not valid UTF-8, which Polars cannot read"
        raise OSError(errno.EILSEQ, reason, str(directory)) from None


def remove_stale(parent: Path) -> None:
    """Remove directories whose owner died; none where the system has no locks to tell by."""
    if _locks() is None:
        return
    for path in parent.glob(f"{PREFIX}*"):
        try:
            lock = os.open(path / LOCK_FILE, os.O_RDWR)
        except OSError:
            continue
        try:
            _lock(lock)
            shutil.rmtree(path, ignore_errors=True)
        except OSError:
            pass  # its owner is alive
        finally:
            os.close(lock)


def _lock(descriptor: int) -> None:
    """Take the lock.

    Raises:
        OSError: another process holds it.
    """
    locks = _locks()
    if locks is not None:
        locks.flock(descriptor, locks.LOCK_EX | locks.LOCK_NB)


def _locks() -> Any:
    """Return the module of file locks; None where the system has none (Windows)."""
    try:
        import fcntl
    except ImportError:
        return None
    return fcntl
