"""The sealed records of a catalog's file, those that no tree leads to any more included.

A record counts only if its seal holds, which covers its database and key, too. So what lies around
in pages that were written over in part is as good as what a tree leads to: all that is open is
whether it is still part of the index, which the head shows by checksums. Which head is the
newest, the tree shows (decision 0021).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path

import numpy as np

from simindex._kernels import _native
from simindex.errors import CorruptFile, FormatTooNew
from simindex.repair.catalog_file import BIG, Breach, CatalogFile, CatalogTree, nodes_of
from simindex.storage.catalog.records import Head, Run
from simindex.storage.catalog.sealed_values import PARTED, checksum, unpack
from simindex.storage.tables.record import NAME
from simindex.values import dataclass

Key = tuple[str, bytes]
"""Database and key of a record."""

MAX_RECORDS = 1 << 18
"""Sealed records that are kept in mind; a catalog has some thousands at most."""

MAX_COPIES = 3
"""Places of the same record that are kept: pages that were written over leave many."""

MAX_VALUE_BYTES = 1 << 20
"""Longest record that is looked at; parts have 128 KiB, heads and records of segments less."""

MAX_SUMMED_BYTES = 1 << 26
"""So much more than four times the file is summed at most, however often pages are pointed at."""

LOOK_BYTES = 512
"""Cost of looking at a value, in addition to its bytes. Every value takes at least that many."""

MAX_TRIALS = 64
"""Ways in which parts of one value are put together before it counts as lost."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a sealed value is in the file."""

    offset: int
    size: int
    crc: int
    """Which ends the value."""
    page: int
    """The leaf page that leads to it."""


class CatalogRecords:
    """All sealed records of a file; see the module."""

    def __init__(self, file: CatalogFile) -> None:
        self._file = file
        self.path: Path = file.path
        self.found: dict[Key, list[Place]] = {}
        """Sealed records, those the newest tree leads to first; pages of `headers` are left out."""
        self.rooted: dict[Key, Place] = {}
        """Those that the newest tree leads to."""
        self._budget = MAX_SUMMED_BYTES + 4 * sum(end - start for start, end in file.stretches)
        tree = CatalogTree(file)
        self._follow(tree)
        self.breach: str | None = tree.breach
        """What is wrong with the newest tree; see `catalog_file`."""
        self.foreign: bool = tree.foreign
        self.ordered: bool = tree.ordered
        self.numbered: bool = tree.numbered
        self._scan()

    @classmethod
    def read(cls, path: Path) -> CatalogRecords | None:
        """All of a file that is there; None if there is none. Close it after use.

        Raises CorruptFile if it is not a regular file, and StorageFailed if it may not be read.

        One pass over the file, and one over the pages of the tree: 20 us a page.
        """
        file = CatalogFile.at(path)
        if file is None:
            return None
        try:
            return cls(file)
        except BaseException:
            file.close()
            raise

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _follow(self, tree: CatalogTree) -> None:
        """Takes the records of the newest tree whose seals hold; the others break it."""
        for name, node in tree.records():
            place = self._place(name, *node)
            if place is None:
                tree.break_(f"the record {name}/{node.key!r} is damaged")
            elif name != "headers" and len(self.rooted) < MAX_RECORDS:
                self.rooted[name, node.key] = place
        if not any(name == "head" for name, _ in self.rooted):
            tree.break_("it holds no head")

    def _scan(self) -> None:
        """Finds the sealed records of all leaf pages, whatever leads to them."""
        inside: set[int] = set()
        """Pages of long values."""
        records = {(name, key, place.crc): [place] for (name, key), place in self.rooted.items()}
        for number in self._file.numbers():
            if len(records) > MAX_RECORDS:
                break
            head = self._file.read(number * self._file.page_bytes, 12)
            if struct.unpack_from("<Q", head)[0] != number or head[10:12] != b"\x02\0":
                continue
            page = self._file.page(number)
            for name, key, flags, place in self._sealed(number, page):
                places = records.setdefault((name, key, place.crc), [])
                if place not in places and len(places) < MAX_COPIES:
                    places.append(place)
                if flags & BIG:
                    first = place.offset // self._file.page_bytes
                    end = (place.offset + place.size - 1) // self._file.page_bytes
                    inside.update(range(first, end + 1))
        for (name, key, _), places in records.items():
            # The bytes of a value may be anything: whoever wrote a document chose its key.
            kept = [place for place in places if place.page not in inside]
            if kept:
                self.found.setdefault((name, key), []).append(kept[0])

    def _sealed(self, number: int, page: bytes) -> Iterator[tuple[str, bytes, int, Place]]:
        """(database, key, flags, place) of a page's records whose seals hold."""
        nodes = nodes_of(page)
        looked: set[int] = set()
        while True:
            try:
                at, flags, key = next(nodes)
            except (Breach, StopIteration):
                return
            if at in looked:
                continue
            looked.add(at)
            for name in _databases_of(key):
                with suppress(Breach):
                    place = self._place(name, number, page, at, flags, key)
                    if place is not None:
                        yield name, key, flags, place

    def _place(
        self, name: str, number: int, page: bytes, at: int, flags: int, key: bytes
    ) -> Place | None:
        """The place of a node's value, if its seal holds."""
        if flags & ~BIG:
            return None
        offset, size = self._file.value(number, page, at, flags, key)
        self._budget -= size + LOOK_BYTES
        if not 4 <= size <= MAX_VALUE_BYTES or self._budget < 0:
            return None
        value = self._file.found(offset, size)
        crc = int.from_bytes(value[-4:], "little")
        if len(value) < size or checksum(name, key, value[:-4]) != crc:
            return None
        return Place(offset, size, crc, number)

    def payload(self, place: Place) -> bytes:
        """What was sealed."""
        return self._file.found(place.offset, place.size)[:-4]

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
            if sum(place.size for place in parts) > self._file.size:
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


def _is_newer(payload: bytes) -> bool:
    """Whether this is the head of another version than the one known here."""
    try:
        value = unpack("head", payload)
    except CorruptFile:
        return False
    return isinstance(value, list) and bool(value) and value[0] != 1


def _databases_of(key: bytes) -> tuple[str, ...]:
    """Databases that a key may belong to, but `headers`, which follows from the rows."""
    if key == b"head":
        return ("head",)
    if len(key) in (8, 12) and key[0] == 0:
        return ("pending", "tombstones")
    if len(key) == 30 and NAME.fullmatch(key.decode("ascii", "replace")):
        return ("segments",)
    return ("meta",) if len(key) <= 32 else ()
