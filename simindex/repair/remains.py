"""What is left of a catalog's file, read from its pages without the engine.

    page 0, 1    meta: where the tree of databases begins, as of the last two transactions
    branch       (key, page) pairs
    leaf         (key, value) pairs; a long value stands in pages of its own
    free         what earlier transactions wrote, until it is written over

LMDB trusts its pages: a damaged one may end the process. Here every number is bounded before it is
followed, and a record counts only if its seal holds, which covers its database and key, too. So
what lies around in pages that no tree leads to any more is as good as what a tree leads to: all
that is open is whether it is still part of the index, and that the head tells by checksums.

Invariants
1. The file is read with `pread` only: a file that is cut short meanwhile raises nothing and maps
   nothing.
2. `Remains.breach` is None only if every page that the newest meta page leads to is where and what
   it should be: the engine may then follow it.
3. Which meta page is the newest is told twice: by its number, and by the newest entry of its free
   list, which every commit but the first makes under its own number. So the two of them still put
   the commits in order when one number of the four is damaged.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np

from simindex._kernels import _native
from simindex.errors import CorruptFile, FormatTooNew, raised_by_a_handler
from simindex.repair.remnant import opened
from simindex.storage.catalog.catalog import PARTED, Head, Run, checksum, unpack
from simindex.storage.catalog.environment import DATABASES
from simindex.storage.catalog.pages import MAP_BYTES, META, PAGE_SIZES, Meta, preflight
from simindex.storage.files.descriptor import Descriptor
from simindex.storage.tables.record import NAME

Key = tuple[str, bytes]
"""Database and key of a record."""

BRANCH, LEAF, OVERFLOW = 1, 2, 4
BIG, SUB = 1, 2
PAGE_HEADER = 16
NO_PAGE = (1 << 64) - 1
UNKNOWN = -1
DATABASE = struct.Struct("<IHHQQQQQ")
_PLACES = dict(META.fields or {})
META_FREE, META_MAIN, META_LAST = (_PLACES[name][1] for name in ("page_bytes", "main", "last"))

MAX_RECORDS = 1 << 18
"""Sealed records that are kept in mind; a catalog has some thousands at most."""

MAX_COPIES = 3
"""Places of the same record that are kept: pages that were written over leave many."""

MAX_VALUE_BYTES = 1 << 20
"""Longest record that is looked at; parts have 128 KiB, heads and records of segments less."""

MAX_SUMMED_BYTES = 1 << 26
"""So much more than four times the file is summed at most, however often pages are pointed at."""

LOOK_BYTES = 512
"""What looking at a value counts for beside its bytes; none that is made takes less of its file."""

MAX_TRIALS = 64
"""Ways in which parts of one value are put together before it counts as lost."""

MAX_SPARE_PAGES = 1 << 16
"""Pages more than it needs that a long value is believed to have."""

MAX_DEPTH = 32


class _Breach(Exception):
    """The tree is not one that the engine may follow."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a sealed value stands in the file."""

    offset: int
    size: int
    crc: int
    """Which ends the value."""
    page: int
    """The leaf page that leads to it."""


@dataclass(slots=True)
class Remains:
    """All sealed records of a file; see the module."""

    path: Path
    file: Descriptor
    page_bytes: int
    size: int
    metas: list[bytes] = field(default_factory=list)
    """The meta pages that are whole, the newest first."""
    ordered: bool = False
    """Whether there are two meta pages, and it is certain which of them is the newest."""
    numbered: bool = False
    """Whether nothing contradicts the numbers of the two."""
    found: dict[Key, list[Place]] = field(default_factory=dict)
    """Sealed records, those the newest tree leads to first; pages of `headers` are left out."""
    rooted: dict[Key, Place] = field(default_factory=dict)
    breach: str | None = None
    """What is wrong with the tree."""
    foreign: bool = False
    """Whether no version of this package made it: other databases, or no pages of LMDB at all."""
    _budget: int = 0
    _stretches: list[tuple[int, int]] = field(default_factory=list)
    """What of the file is no hole, as (start, end)."""

    @classmethod
    def read(cls, path: Path) -> Remains | None:
        """All of a file that is there; None if there is none. Close it after use.

        Raises CorruptFile if it is no regular file, and StorageFailed if it may not be read.

        One pass over the file, and one over the pages of the tree: 20 us a page.
        """
        try:
            file = opened(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            return cls._of(path, file)
        except BaseException:
            file.close()
            raise

    @classmethod
    def _of(cls, path: Path, file: Descriptor) -> Remains:
        fd = file.fileno()
        size = os.fstat(fd).st_size
        page, whole = _metas(fd)
        self = cls(path, file, page, size)
        self._stretches = [*_stretches(fd, size)]
        self._budget = MAX_SUMMED_BYTES + 4 * sum(end - start for start, end in self._stretches)
        try:
            preflight(path)
        except CorruptFile as error:
            self.breach = error.what
        self.foreign = not whole and any(self._read(0, 2 * page))
        self._order(whole)
        self._walk()
        self._scan()
        return self

    def close(self) -> None:
        """Closes the file."""
        self.file.close()

    # -- pages -------------------------------------------------------------------------------------

    def _page(self, number: int) -> bytes:
        return self._read(number * self.page_bytes, self.page_bytes)

    def _read(self, offset: int, size: int) -> bytes:
        """Bytes of the file; zeros for those that it has lost meanwhile."""
        return os.pread(self.file.fileno(), size, offset).ljust(size, b"\0")

    def _nodes(self, page: bytes) -> Iterator[tuple[int, int, bytes]]:
        """(offset, flags, key) of the nodes of a page, none of which leaves it; else _Breach."""
        lower, upper = struct.unpack_from("<HH", page, 12)
        if not PAGE_HEADER <= lower <= upper <= len(page) or lower % 2:
            raise _Breach("bounds")
        for at in struct.unpack_from(f"<{(lower - PAGE_HEADER) // 2}H", page, PAGE_HEADER):
            if not upper <= at <= len(page) - 8:
                raise _Breach("a node outside its page")
            flags, key_bytes = struct.unpack_from("<HH", page, at + 4)
            if at + 8 + key_bytes > len(page):
                raise _Breach("a key outside its page")
            yield at, flags, page[at + 8 : at + 8 + key_bytes]

    def _value(self, number: int, page: bytes, at: int, flags: int, key: bytes) -> tuple[int, int]:
        """(offset in the file, bytes) of a leaf node's value; _Breach if it is outside."""
        low, high = struct.unpack_from("<HH", page, at)
        size, start = low | high << 16, at + 8 + len(key)
        if not flags & BIG:
            if start + size > len(page):
                raise _Breach("a value outside its page")
            return number * self.page_bytes + start, size
        if start + 8 > len(page):
            raise _Breach("a value outside its page")
        first: int = struct.unpack_from("<Q", page, start)[0]
        offset = first * self.page_bytes + PAGE_HEADER
        if first < 2 or offset + size > self.size:
            raise _Breach("a value outside the file")
        return offset, size

    # -- the meta pages ----------------------------------------------------------------------------

    def _order(self, metas: list[Meta]) -> None:
        """Puts the newest meta page first."""
        metas = sorted(metas, key=lambda meta: (-meta.commit, meta.page))
        by_page = sorted(metas, key=lambda meta: meta.page)
        said = [meta.commit for meta in by_page]
        freed = [self._freed(meta) for meta in by_page]
        if any(number == other for number, other in zip(said, freed, strict=True)):
            self.numbered = _follow(said) and all(
                other in (UNKNOWN, number) for number, other in zip(said, freed, strict=True)
            )
            self.ordered = _follow(said) or _follow(freed)
            if _follow(freed) and metas[0] is not by_page[freed.index(max(freed))]:
                metas.reverse()
                self._break(
                    f"its meta pages name commits {said[0]} and {said[1]}, and their free pages "
                    f"are of commits {freed[0]} and {freed[1]}"
                )
        self.metas = [meta.raw.tobytes() for meta in metas]

    def _freed(self, meta: Meta) -> int:
        """The commit of the newest entry of a free list; UNKNOWN if it cannot be read."""
        _, _, depth, *_, number = DATABASE.unpack_from(meta.raw.tobytes(), META_FREE)
        if number == NO_PAGE:
            return meta.commit if meta.commit <= 1 else UNKNOWN
        key = b""
        for level in range(min(depth, MAX_DEPTH), 0, -1):
            if not 2 <= number < self.size // self.page_bytes:
                return UNKNOWN
            page = self._page(number)
            found, flags = struct.unpack_from("<Q", page)[0], struct.unpack_from("<H", page, 10)[0]
            if found != number or flags != (LEAF if level == 1 else BRANCH):
                return UNKNOWN
            try:
                *_, (at, _, key) = self._nodes(page)
            except (_Breach, ValueError) as error:
                if raised_by_a_handler(error):
                    raise
                return UNKNOWN
            number = _child(page, at)
        return int.from_bytes(key, "little") if len(key) == 8 else UNKNOWN

    # -- the tree ----------------------------------------------------------------------------------

    def _walk(self) -> None:
        """Follows the newest tree; what of it is sound is in `rooted`, what is not in `breach`."""
        if not self.metas:
            return
        meta = self.metas[0]
        last = struct.unpack_from("<Q", meta, META_LAST)[0]
        if (last + 1) * self.page_bytes > self.size:
            self._break("it is cut short")
            last = self.size // self.page_bytes - 1
        last = min(last, MAP_BYTES // self.page_bytes - 1)
        seen = bytearray(last + 1)
        for start in (META_FREE, META_MAIN):
            database, free = DATABASE.unpack_from(meta, start), start == META_FREE
            try:
                for number, page, at, flags, key in self._leaves(database, last, seen, free):
                    if free:
                        continue
                    self._database(number, page, at, flags, key, last, seen)
            except _Breach as error:
                self._break(str(error))
        if not {name for name, _ in self.rooted} & {"head"}:
            self._break("it holds no head")

    def _break(self, what: str) -> None:
        self.breach = self.breach or what

    def _database(
        self, number: int, page: bytes, at: int, flags: int, key: bytes, last: int, seen: bytearray
    ) -> None:
        """Takes the records of the named database that a node of the main one tells of."""
        name = key.decode("ascii", "replace")
        offset, size = self._value(number, page, at, flags, key)
        self.foreign |= name not in DATABASES
        if name not in DATABASES or flags != SUB or size != DATABASE.size:
            raise _Breach("a database no version makes")
        database = DATABASE.unpack(self._read(offset, size))
        try:
            if database[1]:
                raise _Breach("it is of another kind")
            previous = b""
            for number, page, at, flags, key in self._leaves(database, last, seen, False):
                if not previous < key:
                    raise _Breach("keys that are not in order")
                previous = key
                place = self._place(name, number, page, at, flags, key)
                if place is None:
                    self._break(f"the record {name}/{key!r} is damaged")
                elif name != "headers" and len(self.rooted) < MAX_RECORDS:
                    self.rooted[name, key] = place
        except _Breach as error:
            self._break(f"{name}: {error}")

    def _leaves(
        self, database: tuple[int, ...], last: int, seen: bytearray, free: bool
    ) -> Iterator[tuple[int, bytes, int, int, bytes]]:
        """(page number, page, offset, flags, key) of the records of a database, in order.

        A page that is damaged is passed over and breaks the tree, so that what others hold is seen.
        """
        _, _, depth, *_, root = database
        if root == NO_PAGE:
            return
        if not 0 < depth <= MAX_DEPTH:
            raise _Breach("a depth no tree has")
        stack = [(root, 1)]
        while stack:
            number, level = stack.pop()
            if not 2 <= number <= last or seen[number]:
                self._break("a page that is out of bounds, or reached twice")
                continue
            seen[number] = 1
            page = self._page(number)
            try:
                if struct.unpack_from("<Q", page)[0] != number:
                    raise _Breach("a page in another's place")
                flags = struct.unpack_from("<H", page, 10)[0]
                if flags != (LEAF if level == depth else BRANCH):
                    raise _Breach("a page of another kind")
                nodes = list(self._nodes(page))
                if level < depth:
                    if len(nodes) < 2:
                        raise _Breach("a branch with no choice")
                    children = [_child(page, at) for at, _, _ in nodes]
                    stack += [(child, level + 1) for child in reversed(children)]
                    continue
                for at, node_flags, key in nodes:
                    offset, size = self._value(number, page, at, node_flags, key)
                    if node_flags & BIG:
                        self._pass_over(offset, size, last, seen)
                    elif free and size < 8:
                        raise _Breach("a list of free pages that is none")
            except _Breach as error:
                self._break(str(error))
                continue
            for at, node_flags, key in nodes:
                yield number, page, at, node_flags, key

    def _pass_over(self, offset: int, size: int, last: int, seen: bytearray) -> None:
        """Counts the pages of a long value."""
        first = offset // self.page_bytes
        number, _, flags, count = struct.unpack("<QHHI", self._read(offset - 16, 16))
        wanted = -(-(PAGE_HEADER + size) // self.page_bytes)
        if number != first or flags != OVERFLOW or first + count - 1 > last or not (
            wanted <= count <= wanted + MAX_SPARE_PAGES
        ):
            raise _Breach("a long value that is not in its place")
        if seen.find(1, first, first + count) >= 0:
            raise _Breach("a page that is reached twice")
        seen[first : first + count] = b"\1" * count

    # -- all pages ---------------------------------------------------------------------------------

    def _numbers(self) -> Iterator[int]:
        """Numbers of all pages that are not in a hole of the file: holes may be terabytes."""
        following = 2
        for start, end in self._stretches:
            numbers = range(
                max(following, start // self.page_bytes),
                min(-(-end // self.page_bytes), self.size // self.page_bytes),
            )
            yield from numbers
            following = max(following, numbers.stop)

    def _scan(self) -> None:
        """Finds the sealed records of all leaf pages, whatever leads to them."""
        inside: set[int] = set()
        """Pages of long values."""
        records = {(name, key, place.crc): [place] for (name, key), place in self.rooted.items()}
        for number in self._numbers():
            if len(records) > MAX_RECORDS:
                break
            head = self._read(number * self.page_bytes, 12)
            if struct.unpack_from("<Q", head)[0] != number or head[10:12] != b"\x02\0":
                continue
            page = self._page(number)
            for name, key, flags, place in self._sealed(number, page):
                places = records.setdefault((name, key, place.crc), [])
                if place not in places and len(places) < MAX_COPIES:
                    places.append(place)
                if flags & BIG:
                    first = place.offset // self.page_bytes
                    end = (place.offset + place.size - 1) // self.page_bytes
                    inside.update(range(first, end + 1))
        for (name, key, _), places in records.items():
            # What stands within a value may be anything that a document's key was made to be.
            kept = [place for place in places if place.page not in inside]
            if kept:
                self.found.setdefault((name, key), []).append(kept[0])

    def _sealed(self, number: int, page: bytes) -> Iterator[tuple[str, bytes, int, Place]]:
        """(database, key, flags, place) of a page's records whose seals hold."""
        nodes = self._nodes(page)
        looked: set[int] = set()
        while True:
            try:
                at, flags, key = next(nodes)
            except (_Breach, StopIteration):
                return
            if at in looked:
                continue
            looked.add(at)
            for name in _databases_of(key):
                with suppress(_Breach):
                    place = self._place(name, number, page, at, flags, key)
                    if place is not None:
                        yield name, key, flags, place

    def _place(
        self, name: str, number: int, page: bytes, at: int, flags: int, key: bytes
    ) -> Place | None:
        """The place of a node's value, if its seal holds."""
        if flags & ~BIG:
            return None
        offset, size = self._value(number, page, at, flags, key)
        self._budget -= size + LOOK_BYTES
        if not 4 <= size <= MAX_VALUE_BYTES or self._budget < 0:
            return None
        value = os.pread(self.file.fileno(), size, offset)
        crc = int.from_bytes(value[-4:], "little")
        if len(value) < size or checksum(name, key, value[:-4]) != crc:
            return None
        return Place(offset, size, crc, number)

    # -- records -----------------------------------------------------------------------------------

    def payload(self, place: Place) -> bytes:
        """What was sealed."""
        return os.pread(self.file.fileno(), place.size, place.offset)[:-4]

    def heads(self) -> list[tuple[Head, bool]]:
        """All heads that decode, each with whether the newest tree leads to it, which comes first;
        the others by age, the newest first. FormatTooNew if that one is of a newer version."""
        key = ("head", b"head")
        heads: list[tuple[Head, bool]] = []
        for place in self.found.get(key, []):
            payload, rooted = self.payload(place), place == self.rooted.get(key)
            try:
                heads.append((Head.decode(payload), rooted))
            except CorruptFile as error:
                if rooted and _is_newer(payload):
                    raise FormatTooNew(
                        f"{self.path} was written by a newer simindex", remedy="install it",
                        path=str(self.path),
                    ) from error
        return sorted(heads, key=lambda found: (-found[1], -found[0].generation))

    def record(self, database: str, key: bytes, crc: int | None = None) -> bytes | None:
        """The payload of a record, of that checksum if one is given."""
        for place in self.found.get((database, key), []):
            if crc is None or place.crc == crc:
                return self.payload(place)
        return None

    def whole(self, database: str, key: bytes, crc: int | None = None) -> bytes | None:
        """A payload in parts put together again, or None if a part of it is lost."""
        assert database in PARTED
        for place in self.found.get((database, key), []):
            if crc is None or place.crc == crc:
                joined = self._joined(database, key, self.payload(place))
                if joined is not None:
                    return joined
        return None

    def _joined(self, database: str, key: bytes, first: bytes) -> bytes | None:
        count, expected = int.from_bytes(first[:4], "little"), int.from_bytes(first[4:8], "little")
        if len(first) < 8 or not 0 < count <= MAX_RECORDS:
            return None
        choices: list[list[Place]] = []
        for part in range(1, count):
            places = self.found.get((database, key + part.to_bytes(4, "big")))
            if not places:
                return None
            choices.append(places)
        for _, parts in zip(range(MAX_TRIALS), product(*choices), strict=False):
            if sum(place.size for place in parts) > self.size:
                return None  # parts that overlap, which no version writes
            joined = b"".join([first[8:], *(self.payload(place) for place in parts)])
            if _native.crc32c(np.frombuffer(joined, np.uint8)) == expected:
                return joined
        return None

    def run(self, database: str, run: Run) -> bytes | None:
        """A pending or tombstone run's payload."""
        return self.whole(database, run.key, run.checksum)

    def run_numbers(self, database: str) -> list[int]:
        """Numbers of all runs that a record is left of."""
        return sorted({
            int.from_bytes(key[:8], "big") for name, key in self.found if name == database
        })


def _metas(fd: int) -> tuple[int, list[Meta]]:
    """The size of a page, as most of the meta pages have it, and those that are whole."""
    first = Meta.read(os.pread(fd, META.itemsize, 0), 0)
    usual = os.sysconf("SC_PAGE_SIZE")
    for page in (first.page_bytes if first is not None else usual, usual, *PAGE_SIZES):
        second = Meta.read(os.pread(fd, META.itemsize, page), 1)
        if second is not None and second.page_bytes == page:
            both = [first] if first is not None and first.page_bytes == page else []
            return page, [*both, second]
    return (usual, []) if first is None else (first.page_bytes, [first])


def _is_newer(payload: bytes) -> bool:
    """Whether this is the head of another version than the one known here."""
    try:
        value = unpack("head", payload)
    except CorruptFile:
        return False
    return isinstance(value, list) and bool(value) and value[0] != 1


def _follow(commits: list[int]) -> bool:
    """Whether these are numbers that meta pages 0 and 1 may have."""
    return (
        len(commits) == 2 and min(commits) >= 0 and commits[0] % 2 == 0
        and abs(commits[0] - commits[1]) == 1
    )


def _child(page: bytes, at: int) -> int:
    """The page that a node of a branch leads to."""
    high: int = struct.unpack_from("<H", page, at + 4)[0]
    low: int = struct.unpack_from("<I", page, at)[0]
    return high << 32 | low


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


def _databases_of(key: bytes) -> tuple[str, ...]:
    """Databases that a key may belong to, but `headers`, which follows from the rows."""
    if key == b"head":
        return ("head",)
    if len(key) in (8, 12) and key[0] == 0:
        return ("pending", "tombstones")
    if len(key) == 30 and NAME.fullmatch(key.decode("ascii", "replace")):
        return ("segments",)
    return ("meta",) if len(key) <= 32 else ()
