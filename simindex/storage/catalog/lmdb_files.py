"""LMDB's files, `data.mdb` and `lock.mdb`, before it opens them; what it raises, as our errors."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

import lmdb

from simindex.errors import CorruptFile, IndexLocked, StorageFull, UnsupportedStorage
from simindex.storage.catalog.pages import MAP_BYTES
from simindex.storage.files import disk
from simindex.storage.files.refusals import NO_SPACE, no_space, storage_failed

MAX_READERS = 1024

_LOCK_FILE_BYTES = 128 + 64 * MAX_READERS

_ALREADY_OPEN = "already open in this process"
"""Of an error that has no type of its own. A second environment of the same file would drop the
locks of the first when it is closed, so LMDB refuses it."""


def require_plain(path: Path, *, alone: bool) -> None:
    """Refuses anything but a regular file, which LMDB would follow or wait for.

    With `alone` also one that has a second name, by which it belongs to somebody else.
    """
    with suppress(FileNotFoundError):
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise CorruptFile(f"{path} is not a regular file", path=str(path))
        if alone and status.st_nlink > 1:
            raise CorruptFile(
                f"{path} has a second name (a hard link), and writing to it would change the "
                "other file, too",
                remedy="replace it by a copy", path=str(path),
            )


def reserve_lock_file(path: Path) -> None:
    """Takes the lock file's space before LMDB maps it: on a full disk LMDB would end in SIGBUS.

    Only when it does not exist: opening and closing an existing one would drop LMDB's locks.
    """
    try:
        file = disk.system.create(path, os.O_RDWR | os.O_EXCL)
    except FileExistsError:
        return
    with file:
        try:
            disk.system.allocate(file.fileno(), _LOCK_FILE_BYTES)
        except OSError as error:
            disk.system.unlink(path)
            raise no_space(path) from error


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
        return StorageFull(
            f"cannot open the catalog {data}: {error}", remedy="free some space and repeat the "
            "call",
            path=str(data),
        )
    if isinstance(error, lmdb.MemoryError):  # the address space is limited, as by `ulimit -v`
        return UnsupportedStorage(
            f"cannot map {MAP_BYTES >> 30} GiB of address space for {data}",
            remedy="raise the limit on virtual memory", path=str(data),
        )
    if _ALREADY_OPEN in str(error):
        return IndexLocked(
            f"{data.parent.parent} cannot be opened: other code of this process has its catalog "
            "open with LMDB",
            remedy="close that environment, or open the index in another process",
            path=str(data.parent.parent), holder="this process",
        )
    return system_error(error, data) or CorruptFile(
        f"cannot open the catalog {data}: {error}", path=str(data)
    )


def writing_error(error: lmdb.Error, path: Path) -> Exception:
    """The error of ours for one that a transaction has met before its commit.

    What the system refused LMDB is an OSError or MemoryError again, for the handle to translate.
    """
    if isinstance(error, lmdb.MapFullError):
        return StorageFull("the catalog has reached its largest size", path=str(path))
    if isinstance(error, (lmdb.CorruptedError, lmdb.PageNotFoundError)):
        return CorruptFile(f"the catalog cannot be changed: {error}", path=str(path))
    refused = system_error(error, path)
    if isinstance(error, lmdb.DiskError) or getattr(refused, "errno", 0) in NO_SPACE:
        return no_space(path)
    return refused or storage_failed(path, str(error))


def reading_error(error: lmdb.Error, directory: Path) -> Exception:
    """The error of ours for one that a reader of the catalog in `directory` has met."""
    if isinstance(error, lmdb.ReadersFullError):
        return UnsupportedStorage(
            f"more than {MAX_READERS} processes and threads read {directory} at once",
            remedy="close some, and repeat the call",
        )
    return system_error(error, directory) or CorruptFile(
        f"the catalog {directory} cannot be read: {error}", path=str(directory)
    )
