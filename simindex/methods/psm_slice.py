"""The queries of a batch that one thread looks up in sweeps of a table by PSM.

    in memory      `all`, `first`                a sweep for each round
    in a pass      `partition`, `sweep` ..       both rounds of a chunk while it is there, `found`

The rounds of `first` are the queries' own headers, and then the flipped ones of queries that these
found nothing for; see `psm`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simindex._kernels import _native
from simindex.arrays import F32, I64, U8, U32, U64
from simindex.methods.base import Found, firsts, joined, take
from simindex.methods.nearest_rows import NearestRows
from simindex.storage.tables.table import Table

LookUp = Callable[[I64], Found]
"""A match of each of some queries by their numbers, one after the other."""


class Slice:
    """Some queries of a batch, that one thread looks up."""

    def __init__(
        self, table: Table, queries: U64, weights: F32, order: _native.CheckedVosh, h: int,
        room: _native.Room | None, look_up: LookUp | None = None,
    ) -> None:
        self._table, self._queries, self._weights = table, queries, weights
        self._order, self._h, self._room, self._look_up = order, h, room, look_up
        self._rounds: list[_native.CheckedProbes] = []
        self._parts: list[Found] = []
        self._nearest: list[NearestRows] = []  # of each round
        self._matched = np.zeros(len(queries), np.uint8)  # in the first round, or looked up
        self._settled = np.zeros(len(queries), np.uint8)  # looked up
        self._header_bits = 0

    # A sweep a round, of a table in memory.

    def all(self) -> Found:
        """Matches of A."""
        return self._swept(self._flipped(None, own=True))

    def first(self, header_bits: int) -> Found:
        """Matches of F."""
        found = self._swept(self._own(header_bits))
        self._matched[found.query] = 1
        numbers = np.flatnonzero(self._matched == 0).astype(np.uint32)
        return joined([found, self._swept(self._flipped(numbers, own=False))])

    # A pass over a table in chunks.

    def partition(self, header_bits: int, *, first: bool) -> None:
        """Makes the probes of all rounds; their memory is not kept for other calls."""
        self._header_bits = header_bits
        if first:
            self._rounds = [
                self._own(header_bits, keep=False), self._flipped(None, own=False, keep=False)
            ]
            self._nearest = [NearestRows(len(self._queries)) for _ in self._rounds]
        else:
            self._rounds = [self._flipped(None, own=True, keep=False)]

    @property
    def partitions(self) -> int:
        """Of the table."""
        return self._rounds[0].partitions

    def sweep(self, begin: int, end: int) -> None:
        """Looks at some partitions."""
        if not self._nearest:
            self._parts.append(self._look(self._rounds[0], begin, end, None))
            return
        for number, skip in ((0, self._settled), (1, self._matched)):
            found = self._look_for_first(number, begin, end, skip)
            self._nearest[number].add(found)
            if number == 0:
                self._matched[found.query] = 1

    @property
    def all_matched(self) -> bool:
        """Whether nothing can be found any more."""
        return bool(self._matched.all())

    def found(self) -> Found:
        """All that was found in a pass; with `first` one match of a query, of the first round that
        found any."""
        if not self._nearest:
            return joined(self._parts)
        own, later = (nearest.found() for nearest in self._nearest)
        return joined([own, take(later, np.flatnonzero(self._matched[later.query] == 0))])

    def _look(
        self, probes: _native.CheckedProbes, begin: int, end: int, skip: U8 | None
    ) -> Found:
        return Found(
            *_native.sweep(
                self._table.checked, probes, self._h, begin, end, skip, room=self._room
            )
        )

    def _look_for_first(self, number: int, begin: int, end: int, skip: U8) -> Found:
        """What a round finds in some partitions, or one match of each query of these.

        It looks at halves of them while there is no room for all. In one partition, it looks up
        those queries by themselves that may have matches there. What stays is one match a query
        and round, which is given no room.
        """
        try:
            found = self._look(self._rounds[number], begin, end, skip)
        except _native.NoRoom:
            if end - begin == 1:
                return self._settle(number, begin)
        else:
            if self._room is not None:
                self._room.give(len(found.query))
            return found
        middle = (begin + end) // 2
        halves = []
        for half in ((begin, middle), (middle, end)):
            found = self._look_for_first(number, *half, skip)
            halves.append(take(found, firsts(found.query, found.row, found.id, found.distance)))
        return joined(halves)

    def _settle(self, number: int, partition: int) -> Found:
        """Looks up queries whose headers of a round are in a partition; nothing else is found for
        them."""
        assert self._look_up is not None
        asked = self._matched == 0
        if number == 0:
            asked &= self._own_partition() == partition
        numbers = np.flatnonzero(asked)
        found = self._look_up(numbers)
        self._settled[numbers] = self._matched[numbers] = 1
        if number == 0:
            return found
        self._nearest[0].add(found)
        return joined([])

    def _own_partition(self) -> U64:
        """The partition of each query's own header."""
        width = len(self._table.directory).bit_length() - 1
        header = self._queries[:, 0] >> np.uint64(64 - self._header_bits)
        place = header << np.uint64(width - self._header_bits)
        return place >> np.uint64(width - (self.partitions.bit_length() - 1))

    # Probes.

    def _own(self, header_bits: int, *, keep: bool = True) -> _native.CheckedProbes:
        return _native.partition_headers(
            self._table.checked, header_bits, self._queries, None, keep
        )

    def _flipped(
        self, numbers: U32 | None, *, own: bool, keep: bool = True
    ) -> _native.CheckedProbes:
        return _native.partition_psm(
            self._table.checked, self._order, self._queries, self._weights, numbers, own, keep
        )

    def _swept(self, probes: _native.CheckedProbes) -> Found:
        return self._look(probes, 0, probes.partitions, None)
