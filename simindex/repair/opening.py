"""Files opened for a repair, whatever state they are in."""

from __future__ import annotations

import mmap
import os
import stat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simindex.errors import CorruptFile, StorageFailed, raised_by_a_handler
from simindex.storage.files.descriptor import NOT_REGULAR, PLAIN, Descriptor
from simindex.storage.files.envelope import PAGE_BYTES


def mapped(path: Path, fd: int, size: int) -> NDArray[np.uint8]:
    """The bytes of a file; StorageFailed if the system does not map them."""
    try:
        return np.frombuffer(mmap.mmap(fd, size, access=mmap.ACCESS_READ), np.uint8)
    except (OSError, ValueError) as error:  # too many maps, no address space, or cut short now
        if raised_by_a_handler(error):
            raise
        raise StorageFailed(
            f"{path} cannot be mapped ({error})",
            remedy="free memory, or raise the number of maps that a process may have, in "
            "/proc/sys/vm/max_map_count", path=str(path),
        ) from error


def opened(path: Path) -> Descriptor:
    """A descriptor of a regular file, whatever state it is in.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If there is none.
    CorruptFile
        If something else has its name.
    StorageFailed
        If the system refuses it: then it may well be whole.
    """
    try:
        file = Descriptor(path, PLAIN)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        if raised_by_a_handler(error):
            raise
        if error.errno in NOT_REGULAR:
            raise CorruptFile(f"{path} is no regular file", path=str(path)) from error
        raise StorageFailed(
            f"{path} cannot be read ({error.strerror})",
            remedy="make it readable, or move it away if it is lost, then run `simindex repair` "
            "again",
            path=str(path), errno=error.errno,
        ) from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise CorruptFile(f"{path} is no regular file", path=str(path))
    return file


def opened_rows(path: Path) -> Descriptor:
    """A descriptor of a file that has a header page, whatever is on it; else CorruptFile."""
    try:
        file = opened(path)
    except FileNotFoundError as error:
        raise CorruptFile(f"{path} is missing", path=str(path)) from error
    if os.fstat(file.fileno()).st_size < PAGE_BYTES:
        file.close()
        raise CorruptFile(f"{path} is cut short", path=str(path))
    return file
