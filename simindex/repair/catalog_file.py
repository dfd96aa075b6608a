"""A catalog's file, read page by page without the engine, and its newest tree.

    page 0, 1    meta: where the tree of databases begins, as of the last two transactions
    branch       (key, page) pairs
    leaf         (key, value) pairs; a long value is in pages of its own
    free         what earlier transactions wrote, until it is written over

LMDB trusts its pages: a damaged one may end the process. Here every number is bounded before it is
followed.

Invariants
1. The file is read with `pread` only: a file that is cut short meanwhile raises nothing and maps
   nothing.
2. `CatalogTree.breach` is None only if every page that the newest meta page leads to is where and
   what it should be: the engine may then follow it.
3. Two places say which meta page is the newest: by its number, and by the newest entry of its free
   list, which every commit but the first makes under its own number. So the two of them still put
   the commits in order when one number of the four is damaged.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simindex.errors import CorruptFile, raised_by_a_handler
from simindex.repair.damaged_files import opened
from simindex.storage.catalog.environment import DATABASES
from simindex.storage.catalog.pages import (
    MAP_BYTES,
    META,
    PAGE_SIZES,
    Meta,
    preflight,
    unwritten,
)
from simindex.storage.files.descriptor import Descriptor
from simindex.values import dataclass

BRANCH, LEAF, OVERFLOW = 1, 2, 4
BIG, SUB = 1, 2
PAGE_HEADER = 16
NO_PAGE = (1 << 64) - 1
UNKNOWN = -1
DATABASE = struct.Struct("<IHHQQQQQ")
_PLACES = dict(META.fields or {})
META_FREE, META_MAIN = (_PLACES[name][1] for name in ("page_bytes", "main"))

MAX_SPARE_PAGES = 1 << 16
"""Pages more than it needs that a long value is believed to have."""

MAX_DEPTH = 32

MAX_COMMIT_BYTES, MAX_CATALOG_BYTES = 1 << 26, 1 << 30
"""A commit that failed is looked for in files of at most so many bytes, at most so far behind the
pages in use."""


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
    """Which parts of the file are not holes, as (start, end)."""

    @classmethod
    def at(cls, path: Path) -> CatalogFile | None:
        """The file at a path, None if there is none. Close it after use.

        Raises CorruptFile if it is not a regular file, and StorageFailed if it may not be read.
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

    def unwritten(self, used: Meta, other: Meta) -> bool:
        """Whether a meta page has the roots of a commit that failed; see `pages.unwritten`."""
        size = min(self.size, (used.last_page + 1) * self.page_bytes + MAX_COMMIT_BYTES)
        if size > MAX_CATALOG_BYTES:
            return False
        found = self.found(0, size)
        return len(found) == size and unwritten(np.frombuffer(found, np.uint8), used, other)

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
    """Which parts of a file are not holes, as (start, end)."""
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


class Node(NamedTuple):
    """A record of a leaf page."""

    number: int
    """Of the page."""
    page: bytes
    at: int
    flags: int
    key: bytes


class CatalogTree:
    """The newest tree of a file, and what is wrong with it; `records` follows it."""

    def __init__(self, file: CatalogFile) -> None:
        self._file = file
        self.breach: str | None = None
        """What is wrong with the tree."""
        self.ordered: bool = False
        """Whether there are two meta pages, and it is certain which of them is the newest."""
        self.numbered: bool = False
        """Whether nothing contradicts the numbers of the two."""
        self.foreign: bool = not file.metas and any(file.read(0, 2 * file.page_bytes))
        """Whether no version of this package made it: other databases, or no pages of LMDB at all.
        """
        try:
            preflight(file.path)
        except CorruptFile as error:
            self.breach = error.what
        self._newest = self._order()
        pages = file.size // file.page_bytes
        if self._newest is not None and self._newest.last_page >= pages:
            self.break_("it ends too early")
        else:
            pages = 0 if self._newest is None else self._newest.last_page + 1
        self._seen = bytearray(min(pages, MAP_BYTES // file.page_bytes))
        """Which pages were reached, up to the last that may be."""

    def break_(self, what: str) -> None:
        """Notes what is wrong, if nothing was before."""
        self.breach = self.breach or what

    def _order(self) -> Meta | None:
        """The newest meta page, if there is one."""
        by_page = self._file.metas
        metas = sorted(by_page, key=lambda meta: (-meta.commit, meta.page))
        said = [meta.commit for meta in by_page]
        freed = [self._freed(meta) for meta in by_page]
        for place, meta in enumerate(by_page):
            if freed[place] == metas[0].commit + 1 and self._file.unwritten(metas[0], meta):
                freed[place] = UNKNOWN
        if any(number == other for number, other in zip(said, freed, strict=True)):
            self.numbered = _follow(said) and all(
                other in (UNKNOWN, number) for number, other in zip(said, freed, strict=True)
            )
            self.ordered = _follow(said) or _follow(freed)
            if _follow(freed) and metas[0] is not by_page[freed.index(max(freed))]:
                metas.reverse()
                self.break_(
                    f"its meta pages name commits {said[0]} and {said[1]}, and their free pages "
                    f"are of commits {freed[0]} and {freed[1]}"
                )
        return metas[0] if metas else None

    def _freed(self, meta: Meta) -> int:
        """The commit of the newest entry of a free list; UNKNOWN if it cannot be read."""
        _, _, depth, *_, number = DATABASE.unpack_from(meta.raw.tobytes(), META_FREE)
        if number == NO_PAGE:
            return meta.commit if meta.commit <= 1 else UNKNOWN
        key = b""
        for level in range(min(depth, MAX_DEPTH), 0, -1):
            if not 2 <= number < self._file.size // self._file.page_bytes:
                return UNKNOWN
            page = self._file.page(number)
            try:
                _require_page(page, number, LEAF if level == 1 else BRANCH)
                *_, (at, _, key) = nodes_of(page)
            except (Breach, ValueError) as error:
                if raised_by_a_handler(error):
                    raise
                return UNKNOWN
            number = child_of(page, at)
        return int.from_bytes(key, "little") if len(key) == 8 else UNKNOWN

    def records(self) -> Iterator[tuple[str, Node]]:
        """(database, record) of all that the tree leads to, once.

        Skips what is damaged, and marks the tree as broken, so that the rest is read.
        """
        if self._newest is None:
            return
        meta = self._newest.raw.tobytes()
        for start in (META_FREE, META_MAIN):
            database, free = DATABASE.unpack_from(meta, start), start == META_FREE
            try:
                for node in self._leaves(database, free):
                    if not free:
                        yield from self._named(node)
            except Breach as error:
                self.break_(str(error))

    def _named(self, node: Node) -> Iterator[tuple[str, Node]]:
        """The records of the named database that a node of the main one tells of."""
        name = node.key.decode("ascii", "replace")
        offset, size = self._file.value(*node)
        self.foreign |= name not in DATABASES
        if name not in DATABASES or node.flags != SUB or size != DATABASE.size:
            raise Breach("a database no version makes")
        database = DATABASE.unpack(self._file.read(offset, size))
        try:
            if database[1]:
                raise Breach("it is of another kind")
            previous = b""
            for record in self._leaves(database, False):
                if not previous < record.key:
                    raise Breach("keys that are not in order")
                previous = record.key
                yield name, record
        except Breach as error:
            self.break_(f"{name}: {error}")

    def _leaves(self, database: tuple[int, ...], free: bool) -> Iterator[Node]:
        """The records of a database, in order, without damaged ones."""
        _, _, depth, *_, root = database
        if root == NO_PAGE:
            return
        if not 0 < depth <= MAX_DEPTH:
            raise Breach("a depth no tree has")
        stack = [(root, 1)]
        while stack:
            number, level = stack.pop()
            if not 2 <= number < len(self._seen) or self._seen[number]:
                self.break_("a page that is out of bounds, or reached twice")
                continue
            self._seen[number] = 1
            page = self._file.page(number)
            try:
                _require_page(page, number, LEAF if level == depth else BRANCH)
                nodes = [Node(number, page, *node) for node in nodes_of(page)]
                if level < depth:
                    if len(nodes) < 2:
                        raise Breach("a branch with no choice")
                    stack += [(child_of(page, node.at), level + 1) for node in reversed(nodes)]
                    continue
                for node in nodes:
                    offset, size = self._file.value(*node)
                    if node.flags & BIG:
                        self._pass_over(offset, size)
                    elif free and size < 8:
                        raise Breach("a list of free pages that is none")
            except Breach as error:
                self.break_(str(error))
                continue
            yield from nodes

    def _pass_over(self, offset: int, size: int) -> None:
        """Counts the pages of a long value."""
        page_bytes, seen = self._file.page_bytes, self._seen
        first = offset // page_bytes
        number, _, flags, count = struct.unpack("<QHHI", self._file.read(offset - 16, 16))
        wanted = -(-(PAGE_HEADER + size) // page_bytes)
        if number != first or flags != OVERFLOW or first + count > len(seen) or not (
            wanted <= count <= wanted + MAX_SPARE_PAGES
        ):
            raise Breach("a long value that is not in its place")
        if seen.find(1, first, first + count) >= 0:
            raise Breach("a page that is reached twice")
        seen[first : first + count] = b"\1" * count


def _require_page(page: bytes, number: int, kind: int) -> None:
    """Raises Breach unless a page is in its place, and of a kind."""
    if struct.unpack_from("<Q", page)[0] != number:
        raise Breach("a page in another's place")
    if struct.unpack_from("<H", page, 10)[0] != kind:
        raise Breach("a page of another kind")


def _follow(commits: list[int]) -> bool:
    """Whether these are numbers that meta pages 0 and 1 may have."""
    return (
        len(commits) == 2 and min(commits) >= 0 and commits[0] % 2 == 0
        and abs(commits[0] - commits[1]) == 1
    )
