"""How files and names become durable.

Invariants
1. A file gets its final name only when its bytes are on the disk and were read back and verified:
   write to `.tmp-…`, verify, fsync, rename, fsync the directory.
2. Nothing is ever written into a file that has its final name. One that never became part of the
   index, and has no second name, may be cut to no bytes; see `removal.empty`. So a backup may share
   files by hard links.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from simindex.arrays import U8
from simindex.storage.files import disk
from simindex.storage.files.file_names import TEMPORARY_PREFIX
from simindex.storage.files.refusals import NO_SPACE, no_space_told
from simindex.storage.files.removal import remove

_UNSUPPORTED = {errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}
"""The last two are one number on Linux and two on macOS."""

_NO_LINKS = _UNSUPPORTED | {errno.EPERM, errno.EMLINK, errno.EXDEV}
_NO_EXCHANGE = _UNSUPPORTED | {errno.EINVAL, errno.EPERM}

_LOST = {errno.EIO, *NO_SPACE}
"""What writing back may find out, and tells once."""

WRITE_BACK_BYTES = 1 << 21
WRITE_BACK_DEPTH = 2
"""Whole pieces of a file go to the disk as they are written; at most this many are on their way.

Else all of a large file is dirty until its fsync, and the fsync of a small one next to it waits as
long: 0.24 s at 400 MB, and 2 ms while a file is written back like this.
"""


class NewFile:
    """A file under a temporary name, which `publish` gives its final one.

    Used as a context manager: leaving it without `publish` removes the file.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._path = directory / f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}"
        with no_space_told(self._path):
            self._file = disk.system.create(self._path, os.O_RDWR | os.O_EXCL | os.O_NOFOLLOW)
        self._published = False
        self._sent: deque[int] = deque()
        """Offsets of pieces on their way to the disk."""

    def __enter__(self) -> NewFile:
        return self

    def __exit__(self, *raised: object) -> None:
        try:
            self._file.close()
        except OSError:
            if not self._published:  # else all of it is on the disk: nothing was lost
                raise
        finally:
            if not self._published:
                remove(self._path)

    def reserve(self, size: int) -> None:
        """Takes the disk space of `size` bytes now, so that a full disk fails here."""
        if size:
            with no_space_told(self._path):
                disk.system.allocate(self._file.fileno(), size)

    def write(self, data: U8 | bytes, offset: int) -> None:
        """Writes all of `data` at `offset`."""
        fd = self._file.fileno()
        view = memoryview(data)  # type: ignore[arg-type]  # an array is a buffer, unknown to its stub
        with no_space_told(self._path):
            while view:
                piece = view[: WRITE_BACK_BYTES - offset % WRITE_BACK_BYTES]
                written = disk.system.write(fd, piece, offset)
                if written == WRITE_BACK_BYTES:
                    self._write_back(offset)
                view, offset = view[written:], offset + written

    def _write_back(self, offset: int) -> None:
        self._send(offset, wait=False)
        self._sent.append(offset)
        if len(self._sent) > WRITE_BACK_DEPTH:
            self._send(self._sent.popleft(), wait=True)

    def _send(self, offset: int, *, wait: bool) -> None:
        code = disk.system.write_back(self._file.fileno(), offset, WRITE_BACK_BYTES, wait)
        if code in _LOST:  # what else fails here leaves it to fsync
            raise OSError(code, os.strerror(code), str(self._path))

    def publish(
        self, name: str, verify: Callable[[int], None], *, replacing: bool = False
    ) -> Path:
        """Verifies, syncs and renames; returns the final path.

        `verify` reads the file back through the descriptor it is given and raises if the bytes are
        not those that were written. With `replacing` the file takes the place of one of this name.
        If the name cannot be made durable then, either file may have it after a power cut.
        """
        final = self.directory / name
        with no_space_told(final):
            verify(self._file.fileno())
            disk.system.sync(self._file.fileno())
            disk.system.rename(self._path, final)
            self._published = True
            try:
                sync_directory(self.directory)
            except BaseException:
                if not replacing:
                    remove(final)  # nothing names it yet
                raise
        return final


def sync_directory(path: Path) -> None:
    """Makes the names in a directory durable."""
    disk.system.sync_directory(path)


def make_directory(path: Path) -> None:
    """A new directory whose name is durable in its parent."""
    with no_space_told(path):
        disk.system.make_directory(path)
        try:
            sync_directory(path.parent)
        except BaseException:
            with suppress(OSError):  # another process may have put something in it
                disk.system.remove_directory(path)
            raise


def link(source: Path, target: Path) -> bool:
    """Gives a file a second name; False where the file system has no such thing."""
    with no_space_told(target):
        try:
            disk.system.link(source, target)
        except OSError as error:
            if error.errno in _NO_LINKS:
                return False
            raise
    return True


def move(source: Path, target: Path) -> None:
    """Gives a file or directory another name on its file system, for good."""
    with no_space_told(target):
        disk.system.rename(source, target)
        sync_directory(target.parent)
        if source.parent != target.parent:
            sync_directory(source.parent)


def exchange(path: Path, other: Path) -> bool:
    """Gives two directories each other's name, at once and for good.

    False where the file system does not exchange names. An error leaves both as they were, as far
    as it can.
    """
    with no_space_told(path):
        try:
            disk.system.exchange(path, other)
        except OSError as error:
            if error.errno in _NO_EXCHANGE:
                return False
            raise
        try:
            for parent in {path.parent: None, other.parent: None}:
                sync_directory(parent)
        except BaseException:
            disk.system.exchange(path, other)
            raise
    return True
