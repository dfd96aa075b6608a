"""How files and directories go, and how the space of large files is given back."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from time import sleep

from simindex.storage.files import disk
from simindex.storage.files.descriptor import Descriptor
from simindex.storage.files.file_names import is_directory

FREE_BYTES = 1 << 19
FREE_PAUSE_S = 0.006
"""85 MB a second, and as much more for each further file that waits."""

_freeing = Lock()
_to_free: set[int] = set()
"""Descriptors of files whose space is being given back, or will be: by one thread at a time."""


def _after_fork() -> None:
    # The child has none of the threads that held the lock.
    global _freeing
    _freeing = Lock()
    _to_free.clear()


os.register_at_fork(after_in_child=_after_fork)


def remove(path: Path) -> None:
    """Unlinks a file; one that is gone already is not an error, nor a directory in its place."""
    with suppress(FileNotFoundError, IsADirectoryError):
        try:
            disk.system.unlink(path)
        except PermissionError:  # which macOS raises for a directory
            if not is_directory(path):
                raise


def remove_tree(path: Path) -> None:
    """Removes a directory and all in it, or a link or file of that name; follows no link."""
    found = [path]
    directories: list[Path] = []
    while found:
        inner = found.pop()
        if is_directory(inner):
            directories.append(inner)
            found += inner.iterdir()
        else:
            remove(inner)
    for inner in reversed(directories):  # each after those within it
        disk.system.remove_directory(inner)


def empty(path: Path) -> None:
    """Cuts a file that nobody reads any more to no bytes; it keeps its name.

    Not one that has another name, as in a backup: the bytes are that one's, too.
    """
    with Descriptor(path, os.O_WRONLY | os.O_NOFOLLOW) as file:
        if os.fstat(file.fileno()).st_nlink == 1:
            disk.system.resize(file.fileno(), 0)


def unlink_held(path: Path) -> Descriptor | None:
    """Unlinks a file and returns a descriptor that keeps its space, for `free`; None if none."""
    file = None
    with suppress(OSError):  # none to be had, or the file is gone
        file = Descriptor(path, os.O_WRONLY | os.O_NOFOLLOW)
    remove(path)
    return file


def free(file: Descriptor, hurried: Callable[[], bool] = lambda: False) -> None:
    """Closes an unlinked file, and gives its space back little by little if nobody else has it.

    Where the file system discards freed blocks at once (ext4 with `discard`), an fsync waits for
    all that was freed before it: 1 ms a megabyte, 0.3 s after a file of 200 MB is closed. Pauses
    let one through. Nobody pauses while it is `hurried`: a writer that only waits for this commits
    nothing, and the pauses of 400 MB take 4 s.
    """
    fd = file.fileno()
    _to_free.add(fd)
    try:
        with _freeing:
            if _nobody_else_has(fd):
                size = os.fstat(fd).st_size
                while size:
                    size = max(0, size - FREE_BYTES)
                    disk.system.resize(fd, size)
                    if not hurried():
                        sleep(FREE_PAUSE_S / max(1, len(_to_free)))
    finally:
        _to_free.discard(fd)
        file.close()


def _nobody_else_has(fd: int) -> bool:
    """Whether a file has no name left, and no other descriptor or map in any process.

    A lease for writing is granted only then; without a name, nobody can open the file afterwards.
    macOS has no leases.
    """
    if os.fstat(fd).st_nlink:
        return False  # somebody made a hard link, as for a backup
    if not hasattr(fcntl, "F_SETLEASE"):
        return False
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return False
    return True
