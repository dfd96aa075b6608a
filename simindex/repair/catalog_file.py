"""A catalog's file, read page by page without the engine.

    page 0, 1    meta: where the tree of databases begins, as of the last two transactions
    branch       (key, page) pairs
    leaf         (key, value) pairs; a long value stands in pages of its own
    free         what earlier transactions wrote, until it is written over

LMDB trusts its pages: a damaged one may end the process. Here every number is bounded before it is
followed.

Invariant: the file is read with `pread` only: a file that is cut short meanwhile raises nothing and
maps nothing.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from simindex.repair.opening import opened
from simindex.storage.catalog.pages import META, PAGE_SIZES, Meta
from simindex.storage.files.descriptor import Descriptor

BRANCH, LEAF, OVERFLOW = 1, 2, 4
BIG, SUB = 1, 2
PAGE_HEADER = 16


class Breach(Exception):
    """The tree is not one that the engine may follow."""


@dataclass(frozen=True, slots=True)
class CatalogFile:
    """An open file; see the module."""

    path: Path
    file: Descriptor
    page_bytes: int
    size: int
    metas: tuple[Meta, ...]
    """The meta pages that are whole, by page."""
    stretches: tuple[tuple[int, int], ...]
    """What of the file is no hole, as (start, end)."""

    @classmethod
    def at(cls, path: Path) -> CatalogFile | None:
        """The file at a path, None if there is none. Close it after use.

        Raises CorruptFile if it is no regular file, and StorageFailed if it may not be read.
        """
        try:
            file = opened(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            fd = file.fileno()
            size = os.fstat(fd).st_size
            page_bytes, metas = _metas(fd)
            return cls(path, file, page_bytes, size, metas, tuple(_stretches(fd, size)))
        except BaseException:
            file.close()
            raise

    def close(self) -> None:
        """Closes the file."""
        self.file.close()

    def page(self, number: int) -> bytes:
        """The bytes of a page."""
        return self.read(number * self.page_bytes, self.page_bytes)

    def read(self, offset: int, size: int) -> bytes:
        """Bytes of the file; zeros for those that it has lost meanwhile."""
        return self.found(offset, size).ljust(size, b"\0")

    def found(self, offset: int, size: int) -> bytes:
        """Bytes of the file, as many as there are."""
        return os.pread(self.file.fileno(), size, offset)

    def numbers(self) -> Iterator[int]:
        """Numbers of all pages that are not in a hole of the file: holes may be terabytes."""
        following = 2
        for start, end in self.stretches:
            numbers = range(
                max(following, start // self.page_bytes),
                min(-(-end // self.page_bytes), self.size // self.page_bytes),
            )
            yield from numbers
            following = max(following, numbers.stop)

    def value(self, number: int, page: bytes, at: int, flags: int, key: bytes) -> tuple[int, int]:
        """(offset in the file, bytes) of a leaf node's value; Breach if it is outside."""
        low, high = struct.unpack_from("<HH", page, at)
        size, start = low | high << 16, at + 8 + len(key)
        if not flags & BIG:
            if start + size > len(page):
                raise Breach("a value outside its page")
            return number * self.page_bytes + start, size
        if start + 8 > len(page):
            raise Breach("a value outside its page")
        first: int = struct.unpack_from("<Q", page, start)[0]
        offset = first * self.page_bytes + PAGE_HEADER
        if first < 2 or offset + size > self.size:
            raise Breach("a value outside the file")
        return offset, size


def nodes_of(page: bytes) -> Iterator[tuple[int, int, bytes]]:
    """(offset, flags, key) of the nodes of a page, none of which leaves it; else Breach."""
    lower, upper = struct.unpack_from("<HH", page, 12)
    if not PAGE_HEADER <= lower <= upper <= len(page) or lower % 2:
        raise Breach("bounds")
    for at in struct.unpack_from(f"<{(lower - PAGE_HEADER) // 2}H", page, PAGE_HEADER):
        if not upper <= at <= len(page) - 8:
            raise Breach("a node outside its page")
        flags, key_bytes = struct.unpack_from("<HH", page, at + 4)
        if at + 8 + key_bytes > len(page):
            raise Breach("a key outside its page")
        yield at, flags, page[at + 8 : at + 8 + key_bytes]


def child_of(page: bytes, at: int) -> int:
    """The page that a node of a branch leads to."""
    high: int = struct.unpack_from("<H", page, at + 4)[0]
    low: int = struct.unpack_from("<I", page, at)[0]
    return high << 32 | low


def _metas(fd: int) -> tuple[int, tuple[Meta, ...]]:
    """The size of a page, as most of the meta pages have it, and those that are whole."""
    first = Meta.read(os.pread(fd, META.itemsize, 0), 0)
    usual = os.sysconf("SC_PAGE_SIZE")
    for page in (first.page_bytes if first is not None else usual, usual, *PAGE_SIZES):
        second = Meta.read(os.pread(fd, META.itemsize, page), 1)
        if second is not None and second.page_bytes == page:
            both = (first,) if first is not None and first.page_bytes == page else ()
            return page, (*both, second)
    return (usual, ()) if first is None else (first.page_bytes, (first,))


def _stretches(fd: int, size: int) -> Iterator[tuple[int, int]]:
    """What of a file is no hole, as (start, end)."""
    end = 0
    while end < size:
        try:
            start = os.lseek(fd, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return  # a hole up to the end
        end = os.lseek(fd, start, os.SEEK_HOLE)
        yield start, end
