"""The tree that the newest meta page of a catalog's file leads to, followed without the engine.

Invariants
1. `CatalogTree.breach` is None only if every page that the newest meta page leads to is where and
   what it should be: the engine may then follow it.
2. Which meta page is the newest is told twice: by its number, and by the newest entry of its free
   list, which every commit but the first makes under its own number. So the two of them still put
   the commits in order when one number of the four is damaged.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from simindex.errors import CorruptFile, raised_by_a_handler
from simindex.repair.catalog_file import (
    BIG,
    BRANCH,
    LEAF,
    OVERFLOW,
    PAGE_HEADER,
    SUB,
    Breach,
    CatalogFile,
    child_of,
    nodes_of,
)
from simindex.storage.catalog.environment import DATABASES
from simindex.storage.catalog.pages import MAP_BYTES, META, Meta, preflight

NO_PAGE = (1 << 64) - 1
UNKNOWN = -1
DATABASE = struct.Struct("<IHHQQQQQ")
_PLACES = dict(META.fields or {})
META_FREE, META_MAIN = (_PLACES[name][1] for name in ("page_bytes", "main"))

MAX_SPARE_PAGES = 1 << 16
"""Pages more than it needs that a long value is believed to have."""

MAX_DEPTH = 32


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
        self.ordered = False
        """Whether there are two meta pages, and it is certain which of them is the newest."""
        self.numbered = False
        """Whether nothing contradicts the numbers of the two."""
        self.foreign = not file.metas and any(file.read(0, 2 * file.page_bytes))
        """Whether no version of this package made it: other databases, or no pages of LMDB at all.
        """
        try:
            preflight(file.path)
        except CorruptFile as error:
            self.breach = error.what
        self._newest = self._order()
        pages = file.size // file.page_bytes
        if self._newest is not None and self._newest.last_page >= pages:
            self.break_("it is cut short")
        else:
            pages = 0 if self._newest is None else self._newest.last_page + 1
        self._seen = bytearray(min(pages, MAP_BYTES // file.page_bytes))
        """Which pages were reached, up to the last that may be."""

    def break_(self, what: str) -> None:
        """Notes what is wrong, if nothing was before."""
        self.breach = self.breach or what

    # -- the meta pages ----------------------------------------------------------------------------

    def _order(self) -> Meta | None:
        """The newest meta page, if there is one."""
        by_page = self._file.metas
        metas = sorted(by_page, key=lambda meta: (-meta.commit, meta.page))
        said = [meta.commit for meta in by_page]
        freed = [self._freed(meta) for meta in by_page]
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

    # -- the tree ----------------------------------------------------------------------------------

    def records(self) -> Iterator[tuple[str, Node]]:
        """(database, record) of all that the tree leads to, once.

        What is damaged is passed over and breaks the tree, so that what else there is is seen.
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
        """The records of a database, in order; what is damaged is passed over."""
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
