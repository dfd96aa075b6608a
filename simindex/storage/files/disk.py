"""Every call that changes what is on the disk, as methods of one object.

    create  write  write_back  allocate  resize  lengthen  sync       the bytes of a file
    rename  exchange  link  unlink  make_directory                    names in a directory
    remove_directory  sync_directory
    lmdb                                                              what LMDB does by itself

All of the storage layer writes through `system`. Its methods add nothing to the calls they are
named after: they are here so that a test can replace `system` by another object, one
that records what happens and in which order, or leaves something out.

What lasts: bytes after `sync` of their file, names after `sync_directory` of their directory, and
nothing else; `write_back` promises nothing. The order that follows from it is in `durable`,
`creation` and `writer`.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from simindex._kernels import _native
from simindex.storage.files.descriptor import Descriptor

Result = TypeVar("Result")

FULL_FLUSH: int | None = getattr(fcntl, "F_FULLFSYNC", None)
"""Of macOS, whose `fsync` leaves bytes in the memory of the disk."""

_NO_FULL_FLUSH = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL}
_NO_ALLOCATION = {errno.EOPNOTSUPP, errno.EINVAL}
"""Where the C library writes no zeros in place of the file system, as musl."""

_ZEROS = bytes(1 << 20)


class System:
    """The operating system; errors are its own, OSError."""

    def create(self, path: Path, flags: int) -> Descriptor:
        """Opens a file, made if it is not there and `flags` allow it."""
        return Descriptor(path, flags | os.O_CREAT)

    def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """Writes at an offset; returns how many bytes it took, which may be fewer than given."""
        return os.pwrite(fd, data, offset)

    def write_back(self, fd: int, offset: int, size: int, wait: bool) -> int:
        """Has bytes go to the disk soon, or `wait`s for it, without a flush; an errno, or 0."""
        return _native.write_back(fd, offset, size, wait)

    def allocate(self, fd: int, size: int) -> None:
        """Takes disk space for the first `size` bytes, which makes a shorter file as long."""
        if hasattr(os, "posix_fallocate"):  # not on macOS
            try:
                return os.posix_fallocate(fd, 0, size)
            except OSError as error:
                if error.errno not in _NO_ALLOCATION:
                    raise
        end = os.fstat(fd).st_size
        while end < size:
            end += self.write(fd, memoryview(_ZEROS)[: size - end], end)
        return None

    def resize(self, fd: int, size: int) -> None:
        """Cuts a file, or lengthens it by zeros that take no space."""
        os.ftruncate(fd, size)

    def lengthen(self, path: Path, size: int) -> None:
        """`resize` of a file that must not be opened and closed, for its locks would go."""
        os.truncate(path, size)

    def sync(self, fd: int) -> None:
        """Returns when a file's bytes and size will survive."""
        _flush(fd)

    def rename(self, path: Path, to: Path) -> None:
        """Gives a file another name."""
        path.rename(to)

    def exchange(self, path: Path, other: Path) -> None:
        """Gives two names each other's file or directory, at once; not every file system can."""
        code = _native.exchange(os.fsencode(path), os.fsencode(other))
        if code:
            raise OSError(code, os.strerror(code), str(path), None, str(other))

    def link(self, path: Path, to: Path) -> None:
        """Gives a file a second name; follows no link."""
        os.link(path, to, follow_symlinks=False)

    def unlink(self, path: Path) -> None:
        """Takes a file's name away."""
        path.unlink()

    def make_directory(self, path: Path) -> None:
        """Makes an empty directory."""
        path.mkdir()

    def remove_directory(self, path: Path) -> None:
        """Removes an empty directory."""
        path.rmdir()

    def sync_directory(self, path: Path) -> None:
        """Returns when the names in a directory, there or gone, will survive."""
        with Descriptor(path, os.O_RDONLY | os.O_DIRECTORY) as directory:
            _flush(directory.fileno())

    def lmdb(self, data: Path, work: Callable[[], Result]) -> Result:
        """Lets LMDB do something that may write `data`, its file, as opening and committing do.

        A commit writes pages that no valid meta page leads to, syncs them, and writes one meta page
        through a descriptor that is open for synchronous writing.
        """
        return work()


def _flush(fd: int) -> None:
    if FULL_FLUSH is not None:
        try:
            fcntl.fcntl(fd, FULL_FLUSH)
            return
        except OSError as error:
            if error.errno not in _NO_FULL_FLUSH:
                raise
    os.fsync(fd)


system: System = System()
"""What all writing goes through; only tests replace it."""
