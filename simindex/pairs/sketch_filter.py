"""The sketches of stored rows, read for the pairs that a search has found: kept or rejected.

    found      pairs of rows within h of each other
    read       the sketches of both, once for each row of a portion, in the order of the files
    kept       the pairs whose sketches differ in at most `most` bits; that is then their distance

At most `COMPARED_BYTES` of sketches are in memory at a time, for each of both rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from simindex.arrays import U8, U16, U64, Bools
from simindex.bits.splitmix import mixed
from simindex.pairs.live_rows import StoredRows
from simindex.pairs.tiles import Found
from simindex.planning.similarity import Similar
from simindex.query.sketch_filter import COMPARED_BYTES, distances
from simindex.records.sketches import record_bytes, words_of
from simindex.storage.tables.sketches import sketches_at

READ_BYTES = 6 * COMPARED_BYTES
"""Memory while a portion is compared: both sides, and the rows as they were read."""


class PairSketches:
    """The sketches of some tables' rows.

    Parameters
    ----------
    stored : StoredRows
        Rows of tables with sketches.
    similar : Similar
        How similar the rows of a pair must be, by sketches.
    """

    def __init__(self, stored: StoredRows, similar: Similar) -> None:
        self._stored, self._similar = stored, similar
        self._bytes = record_bytes(similar.sketch_bits // 64)
        self._step = max(1, COMPARED_BYTES // self._bytes)

    def of(self, numbers: U64) -> U8:
        """uint8 (n, 8 S + 1): the records of sketches of rows by their numbers, which may repeat.

        Raises CorruptFile if one of them is damaged.
        """
        once, of = np.unique(numbers, return_inverse=True)
        places, rows = self._stored.place(once)
        found = np.empty((len(once), self._bytes), np.uint8)
        bounds = np.searchsorted(places, np.arange(len(self._stored.tables) + 1))
        for table, start, stop in zip(
            self._stored.tables, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True
        ):
            if stop > start:
                found[start:stop] = sketches_at(table, rows[start:stop])
        return np.take(found, of.reshape(-1), axis=0)

    def distance(self, some: U64, others: U64) -> U16:
        """uint16 (p,): how far the sketches of the rows at the same places are apart."""
        found = np.empty(len(some), np.uint16)
        order = np.argsort(some, kind="stable")  # as they lie in the files
        for start in range(0, len(order), self._step):
            at = order[start : start + self._step]
            sketches = self.of(np.concatenate([some[at], others[at]]))
            row = np.arange(len(at), dtype=np.int64)
            found[at] = distances(sketches, row, sketches, row + len(at), self._similar)
        return found

    def kept(self, found: Found) -> Found:
        """The pairs whose sketches are near enough, with the distance of these."""
        assert found.a_numbers is not None and found.b_numbers is not None  # what was asked for
        distance = self.distance(found.a_numbers, found.b_numbers)
        equal = np.zeros(len(found), np.bool_)
        return replace(found, distance=distance, equal=equal).take(
            np.flatnonzero(distance <= self._similar.most)
        )

    def equal(self, some: U64, others: U64) -> Bools:
        """Which pairs of rows have equal sketches."""
        same: Bools = self.distance(some, others) == 0
        return same

    def digests(self, numbers: U64) -> U64:
        """uint64 (n,): equal for equal sketches, and hardly ever for others."""
        parts = [np.empty(0, np.uint64)]
        for start in range(0, len(numbers), self._step):
            sketches = words_of(self.of(numbers[start : start + self._step]))
            digest = np.zeros(len(sketches), np.uint64)
            for word in range(sketches.shape[1]):
                digest = mixed(digest ^ sketches[:, word])
            parts.append(digest)
        return np.concatenate(parts)


def kept_parts(parts: Iterator[Found], sketches: PairSketches, most: int) -> Iterator[Found]:
    """What is kept of the pairs of some parts, about `most` pairs at a time."""
    held: list[Found] = []
    size = 0
    for part in parts:
        kept = sketches.kept(part)
        if size and size + len(kept) > most:
            yield Found.joined(held)
            held, size = [], 0
        if len(kept):
            held.append(kept)
            size += len(kept)
    if held:
        yield Found.joined(held)
