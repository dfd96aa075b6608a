"""What is seen to at LMDB's files, `data.mdb` and `lock.mdb`, before it opens or writes them."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from simindex.errors import CorruptFile
from simindex.storage.catalog.lmdb_errors import MAX_READERS
from simindex.storage.files import disk
from simindex.storage.files.refusals import no_space

_LOCK_FILE_BYTES = 128 + 64 * MAX_READERS

CREATION_BYTES = 128 << 10
"""More than LMDB writes to make a file with all databases, a commit for each: on a full disk it
would end with an input/output error."""


def require_space(directory: Path, needed_bytes: int) -> None:
    """Raises OSError if the disk has not so many bytes left."""
    free = os.statvfs(directory)
    blocks = free.f_bavail if os.geteuid() else free.f_bfree
    if free.f_blocks and blocks * free.f_frsize < needed_bytes:  # without blocks, nothing is known
        raise OSError(errno.ENOSPC, f"{needed_bytes} bytes must be free")


def require_plain(path: Path, *, alone: bool) -> None:
    """Refuses anything but a regular file, which LMDB would follow or wait for.

    With `alone` also one that has a second name, by which it belongs to somebody else.
    """
    with suppress(FileNotFoundError):
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise CorruptFile(f"{path} is no regular file", path=str(path))
        if alone and status.st_nlink > 1:
            raise CorruptFile(
                f"{path} has a second name (a hard link), where writing would change it, too: put "
                "a copy in its place",
                path=str(path),
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
