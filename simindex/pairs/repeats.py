"""Rows that equal an earlier one in all bits, those of their sketches included.

    fingerprint   x  x  x  y  y  x            links   first  0  0
    sketch        1  2  1  1  2  1                    row    2  5
    id            0  1  2  3  4  5

Rows of one fingerprint are candidates, so only their sketches are read. They are put together by a
digest, and a link is given once the sketches themselves are found to be equal. Rows of two sketches
with one digest stay: they are then paired as any others are.

Invariants
1. Whoever leaves out the rows that were linked has one row of each fingerprint and sketch, the one
   with the smallest id and number; after a clash of digests more than one.
2. Memory is that of a tile, whatever the rows are: of one fingerprint that alone is more than a
   tile, as many digests are looked at together as fit.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simindex.arrays import I64, U8, U64
from simindex.pairs.live_rows import KeyRange, Rows, StoredRows, TileRanges
from simindex.pairs.sketch_filter import PairSketches
from simindex.pairs.tiles import Found, Room, Tile

DIGEST_BITS = 64


class Repeats:
    """The links of some rows, and, once all are taken, the rows without those linked."""

    def __init__(self, stored: StoredRows, sketches: PairSketches, room: Room) -> None:
        self._stored, self._sketches, self._room = stored, sketches, room
        self._marks: list[U8] = [
            np.zeros(-(-len(table) // 8), np.uint8) for table in stored.tables
        ]

    def __iter__(self) -> Iterator[Found]:
        """Each row that equals an earlier one, with the first that does."""
        bits = 64 * self._stored.words
        planned = TileRanges(self._stored, self._room.rows, collapse=True)
        for ranges in planned.of_block(0, bits):
            for among in ranges:
                if among.equal and among.rows > self._room.rows:
                    yield from self._of_one_fingerprint(among, 0, 0)
                else:
                    yield from self._of_tile(Tile.of(self._stored.load(among), among.shift))

    def others(self) -> StoredRows:
        """The rows that were not linked."""
        return self._stored.without(self._marks)

    def _of_tile(self, tile: Tile) -> Iterator[Found]:
        counts = np.diff(tile.starts)
        places = np.flatnonzero(np.repeat(counts > 1, counts))
        numbers = _numbers(tile.columns)[places]
        fingerprint = np.searchsorted(tile.starts, places, side="right")
        digest = self._sketches.digests(numbers)
        order = np.lexsort((digest, fingerprint))  # stable: ids and numbers ascend
        fingerprint, digest = fingerprint[order], digest[order]
        new = np.ones(len(order), np.bool_)
        new[1:] = (fingerprint[1:] != fingerprint[:-1]) | (digest[1:] != digest[:-1])
        first = np.flatnonzero(new)[np.cumsum(new) - 1] if len(order) else np.empty(0, np.int64)
        later = np.flatnonzero(~new)
        one, other = places[order[first[later]]], places[order[later]]
        yield from self._links(tile.columns, one, tile.columns, other)

    def _of_one_fingerprint(self, among: KeyRange, bits: int, value: int) -> Iterator[Found]:
        """Links of the rows whose digests begin with `bits` bits of this value."""
        firsts: Rows | None = None
        known = np.empty(0, np.uint64)
        for rows, digest in self._parts(among, bits, value):
            joined = rows if firsts is None else _joined(firsts, rows)
            digests = np.concatenate([known, digest])
            order = np.lexsort((_numbers(joined), _order_ids(joined), digests))
            new = np.ones(len(order), np.bool_)
            new[1:] = digests[order[1:]] != digests[order[:-1]]
            firsts, known = joined.take(order[new]), digests[order[new]]
            if len(known) > self._room.rows and bits < DIGEST_BITS:
                for half in (2 * value, 2 * value + 1):
                    yield from self._of_one_fingerprint(among, bits + 1, half)
                return
        if firsts is None:
            return
        for rows, digest in self._parts(among, bits, value):
            first = np.searchsorted(known, digest)
            later = np.flatnonzero(_numbers(firsts)[first] != _numbers(rows))
            yield from self._links(firsts, first[later], rows, later)

    def _parts(self, among: KeyRange, bits: int, value: int) -> Iterator[tuple[Rows, U64]]:
        for rows in self._stored.parts(among, self._room.rows // 2):
            digest = self._sketches.digests(_numbers(rows))
            if bits:
                chosen = np.flatnonzero(digest >> np.uint64(DIGEST_BITS - bits) == value)
                rows, digest = rows.take(chosen), digest[chosen]
            if len(rows):
                yield rows, digest

    def _links(self, rows: Rows, one: I64, others: Rows, other: I64) -> Iterator[Found]:
        for start in range(0, len(one), self._room.chunk):
            stop = start + self._room.chunk
            a, b = one[start:stop], other[start:stop]
            same = self._sketches.equal(_numbers(rows)[a], _numbers(others)[b])
            a, b = a[same], b[same]
            self._mark(_numbers(others)[b])
            ids = rows.ids, others.ids
            found = Found(
                None if ids[0] is None else ids[0][a], None if ids[1] is None else ids[1][b],
                _numbers(rows)[a], _numbers(others)[b], np.zeros(len(a), np.uint16),
                np.ones(len(a), np.bool_),
            )
            if found.a_ids is not None and found.b_ids is not None:
                found = found.take(np.flatnonzero(found.a_ids != found.b_ids))
            if len(found):
                yield found

    def _mark(self, numbers: U64) -> None:
        places, rows = self._stored.place(numbers)
        for place, marks in enumerate(self._marks):
            row = rows[places == place]
            np.bitwise_or.at(marks, row >> 3, (128 >> (row & 7)).astype(np.uint8))


def _numbers(rows: Rows) -> U64:
    assert rows.numbers is not None  # what was asked for
    return rows.numbers


def _order_ids(rows: Rows) -> U64:
    return _numbers(rows) if rows.ids is None else rows.ids


def _joined(some: Rows, others: Rows) -> Rows:
    ids = None
    if some.ids is not None and others.ids is not None:
        ids = np.concatenate([some.ids, others.ids])
    return Rows(
        np.concatenate([some.fingerprints, others.fingerprints]), ids,
        np.concatenate([_numbers(some), _numbers(others)]),
    )
