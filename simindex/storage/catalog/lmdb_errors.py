"""What LMDB raises, as errors that say what to do."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import lmdb

from simindex.errors import CorruptFile, StorageFull, UnsupportedStorage
from simindex.storage.catalog.pages import MAP_BYTES

MAX_READERS = 1024


def system_error(error: Exception, path: Path) -> OSError | MemoryError | None:
    """What the system refused LMDB, or None where it was not the system; LMDB's own are negative.
    """
    code = (getattr(error, "code", 0) or 0) if isinstance(error, lmdb.Error) else 0
    if code == errno.ENOMEM:
        return MemoryError(f"the system has no memory for {path}")
    return OSError(code, os.strerror(code), str(path)) if code > 0 else None


def opening_error(error: lmdb.Error, data: Path) -> Exception:
    """The error of ours for one that opening `data.mdb` has raised."""
    if isinstance(error, lmdb.DiskError):
        return StorageFull(f"cannot open the catalog {data}: {error}", path=str(data))
    if isinstance(error, lmdb.MemoryError):  # the address space is limited, as by `ulimit -v`
        return UnsupportedStorage(
            f"cannot map {MAP_BYTES >> 30} GiB of address space for {data}: "
            "raise the limit on virtual memory",
            path=str(data),
        )
    return system_error(error, data) or CorruptFile(
        f"cannot open the catalog {data}: {error}", path=str(data)
    )


def reading_error(error: lmdb.Error, directory: Path) -> Exception:
    """The error of ours for one that a reader of the catalog in `directory` has met."""
    if isinstance(error, lmdb.ReadersFullError):
        return UnsupportedStorage(
            f"more than {MAX_READERS} processes and threads read {directory} at once: "
            "close some and try again"
        )
    return system_error(error, directory) or CorruptFile(
        f"the catalog {directory} cannot be read: {error}", path=str(directory)
    )
