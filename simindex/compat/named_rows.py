"""Rows under names, in an index on disk whose changes wait in memory for one commit.

    add      -> up to RECENT rows and their names, compared one by one
    delete   -> leaves these rows at once; of a stored name, the rows that stay
    near     -> stored rows without those of a deletion, and the recent ones

1. A call that fails leaves all rows as they were: what is given is looked at, and what waits is
   stored, before anything changes here.
2. After `finish` has returned nothing waits, and all calls are refused.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from simindex.arrays import U64
from simindex.errors import ClosedIndex, SimindexError, StorageFailed
from simindex.index.index import Index
from simindex.records.arguments import as_keys
from simindex.records.batch import Batch

RECENT = 4096
"""Rows, or names with deletions, that wait in memory before they go to the index on disk."""


class NamedRows:
    """What a SimhashIndex holds, which outlives it until it is stored."""

    def __init__(
        self, index: Index, words: int, folder: tempfile.TemporaryDirectory[str] | None
    ) -> None:
        self.words = words
        """W of the rows."""
        self._index, self._folder = index, folder
        self._rows: U64 = np.empty((RECENT, words), np.uint64)
        self._names: list[str] = []
        self._left: dict[str, U64] = {}
        """Of each name with deletions that are not committed: its stored rows that stay."""
        self._closed = False

    def near(self, row: U64, k: int) -> Iterator[tuple[str, int]]:
        """Names and distances within k bits of a row."""
        for match in self._index.query(row, h=k):
            name = str(match.key)
            if name not in self._left:
                yield name, match.distance
            elif len(left := self._left[name]):
                distance = _distances(left, row).min()
                if distance <= k:
                    yield name, int(distance)
        distances = _distances(self._rows[: len(self._names)], row)
        for place in np.flatnonzero(distances <= k).tolist():
            yield self._names[place], int(distances[place])

    def add(self, name: str, row: U64) -> None:
        """Adds a row under a name, to others that it has."""
        self._check(name)
        if len(self._names) >= RECENT:
            self._store()
        self._rows[len(self._names)] = row
        self._names.append(name)

    def delete(self, name: str, row: U64) -> None:
        """Deletes the rows of a name that are equal to this one; its other rows stay."""
        self._check(name)
        if name not in self._left and len(self._left) >= RECENT:
            self._store()
        held = self._left.get(name)
        if held is None:
            stored = self._index.get(name)
            held = self._rows[:0] if stored is None else stored.rows
        left = held[(held != row).any(axis=1)]
        recent = self._rows[: len(self._names)]
        equal = np.flatnonzero((recent == row).all(axis=1)).tolist()
        gone = {place for place in equal if self._names[place] == name}
        if gone:
            kept = [place for place in range(len(self._names)) if place not in gone]
            rows = np.empty_like(self._rows)
            rows[: len(kept)] = recent[kept]
            self._rows, self._names = rows, [self._names[place] for place in kept]
        if len(left) < len(held):
            self._left[name] = left

    def forget(self) -> None:
        """Drops what waits."""
        self._names, self._left = [], {}

    def finish(self) -> None:
        """Commits what waits, or removes a temporary folder, and closes the index.

        Where the system refuses the commit, all stays as it is, for another call.
        """
        if self._closed:
            return
        try:
            if self._folder is None:
                self._store()
        except (StorageFailed, MemoryError):
            raise
        except BaseException:
            self._close()
            raise
        self._close()

    def _close(self) -> None:
        self._closed = True
        try:
            self._index.close()
        finally:
            if self._folder is not None:
                self._folder.cleanup()

    def _check(self, name: str) -> None:
        """Refuses a name that the index could not store, and any once it is closed."""
        if self._closed:
            raise ClosedIndex(
                "this SimhashIndex is closed", remedy="make another one; it opens the same path"
            )
        as_keys([name], None)

    def _store(self) -> None:
        """Commits what waits; after an error that waits still."""
        if not self._names and not self._left:
            return
        names = [name for name, left in self._left.items() for _ in left] + self._names
        rows = np.concatenate([*self._left.values(), self._rows[: len(self._names)]])
        try:
            if self._left:
                self._index.delete(keys=list(self._left))
            if names:
                self._index.append(Batch(rows, keys=names))
            self._index.commit()
        except BaseException:
            with suppress(SimindexError):
                self._index.discard()
            raise
        self.forget()


def _distances(rows: U64, row: U64) -> Any:
    """In how many bits each of the rows differs from one: int64 (n,)."""
    return np.bitwise_count(rows ^ row).sum(axis=1, dtype=np.int64)
