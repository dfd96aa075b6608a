"""Rows by their names: ids or, in an index with keys, whole keys.

    Names      what a caller names
    RowsById   which rows have one of some ids: looked through at first, put in order once that is
               dearer
    IdSet      ids of deletions that wait
    named      which rows have one of some names
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from simindex._kernels import _native
from simindex.arrays import I64, U32, U64, Bools
from simindex.storage.files.checksums import verified
from simindex.storage.tables.keys import KeyHeap
from simindex.values import dataclass

FEW = 4
"""So many ids are looked for one by one: by comparing all, 0.6 ms each for a million rows."""

LOOKED_THROUGH = 16
"""So many ids have been looked for in this way before the rows are put in order: 30 ms for a
million rows, and 4 bytes a row from then on."""

READ_ROWS = 1 << 16
"""Rows whose ids are compared together."""


@dataclass(frozen=True, slots=True)
class Names:
    """Some ids or, in an index with keys, some keys; a name may come twice."""

    id: U64
    second: U64
    """The other half of a key's hash, 0 in an index without keys."""
    keys: KeyHeap | None

    @classmethod
    def of_ids(cls, ids: U64) -> Names:
        """Some ids, in an index without keys."""
        return cls(ids, np.zeros(len(ids), np.uint64), None)

    @classmethod
    def of_keys(cls, keys: KeyHeap, secret: bytes) -> Names:
        """Some keys, in an index with that secret."""
        hashes = keys.hashes(secret)
        return cls(
            np.ascontiguousarray(hashes[:, 0]), np.ascontiguousarray(hashes[:, 1]), keys
        )

    def __len__(self) -> int:
        return len(self.id)


class RowsById:
    """Of the ids (n,) of some rows, which stay as they are."""

    __slots__ = ("_ids", "_looked", "_order")

    def __init__(self, ids: U64) -> None:
        self._ids = ids
        self._order: U32 | None = None
        self._looked = 0

    def __call__(self, wanted: U64) -> tuple[I64, I64]:
        """Places in `wanted`, which are different ids in order, and the rows that have them."""
        if self._order is None:
            if len(wanted) <= FEW and self._looked < LOOKED_THROUGH:
                self._looked += len(wanted)
                return self._look_through(wanted)
            order = _native.sort_rows(np.ascontiguousarray(verified(self._ids)))
            self._order = order.astype(np.uint32)
        bounds = self._bounds_of_few if len(wanted) <= FEW else self._bounds
        first, last = bounds(wanted, self._order)
        counts = last - first
        places = np.repeat(np.arange(len(wanted)), counts)
        within = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        return places, self._order[first[places] + within].astype(np.int64)

    def _look_through(self, wanted: U64) -> tuple[I64, I64]:
        places, rows = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for start in range(0, len(self._ids), READ_ROWS):
            ids = verified(self._ids[start : start + READ_ROWS])
            for place, one in enumerate(wanted):
                found = np.flatnonzero(ids == one)
                if len(found):
                    rows.append(found + start)
                    places.append(np.full(len(found), place, np.int64))
        return np.concatenate(places), np.concatenate(rows)

    def _bounds_of_few(self, wanted: U64, order: U32) -> tuple[I64, I64]:
        """Of each id, the places in the order at which its rows begin and end."""
        def id_at(place: int) -> int:
            return int(self._ids[order[place]])

        places = range(len(order))
        first = [bisect_left(places, one, key=id_at) for one in wanted.tolist()]
        last = [
            bisect_right(places, one, low, key=id_at)
            for one, low in zip(wanted.tolist(), first, strict=True)
        ]
        return np.array(first, np.int64), np.array(last, np.int64)

    def _bounds(self, wanted: U64, order: U32) -> tuple[I64, I64]:
        """The same, of many at once."""
        sought = np.concatenate([wanted, wanted])
        after = np.arange(len(sought)) >= len(wanted)
        low, high = np.zeros(len(sought), np.int64), np.full(len(sought), len(order), np.int64)
        while (searching := np.flatnonzero(low < high)).size:
            middle = (low[searching] + high[searching]) >> 1
            ids, these = self._ids[order[middle]], sought[searching]
            before = np.where(after[searching], ids <= these, ids < these)
            low[searching[before]] = middle[before] + 1
            high[searching[~before]] = middle[~before]
        return low[: len(wanted)], low[len(wanted) :]


class IdSet:
    """Ids that come a few at a time: O(log n) for each of them."""

    def __init__(self) -> None:
        self._runs: list[U64] = []
        """Sorted, each more than twice as long as the next."""

    def add(self, ids: U64) -> None:
        """Takes ids, which may be there already."""
        run = np.sort(ids)
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]))
        self._runs.append(run)

    def among(self, ids: U64) -> Bools:
        """Which of some ids are there."""
        found = np.zeros(len(ids), np.bool_)
        for run in self._runs:
            if len(run):
                found |= run[np.minimum(np.searchsorted(run, ids), len(run) - 1)] == ids
        return found


def named(by_id: RowsById, keys: KeyHeap | None, names: Names) -> tuple[I64, I64]:
    """Places of names, and the rows that have them, deleted or not.

    Parameters
    ----------
    keys : KeyHeap
        Those of the rows; None in an index without keys.

    Notes
    -----
    A row comes once for each time its name is given. Keys are compared as a whole.
    """
    order = np.argsort(names.id, kind="stable")
    wanted, starts, counts = np.unique(names.id[order], return_index=True, return_counts=True)
    groups, rows = by_id(wanted)
    repeats = counts[groups]
    within = np.arange(int(repeats.sum())) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    places = order[np.repeat(starts[groups], repeats) + within]
    rows = np.repeat(rows, repeats)
    if keys is not None and names.keys is not None and len(rows):
        equal = keys.equal(rows, names.keys, places)
        places, rows = places[equal], rows[equal]
    return places, rows
