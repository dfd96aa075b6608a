"""What waits for the next commit of a writer: rows, deletions, values, and files written ahead.

    append    rows collect in a buffer; every batch_rows of them are spilled: written as a segment
              file that is not part of the index yet
    delete    in the order of the calls, see buffer.py
    values    whole values of the catalog, such as the recipe
    samples   drawn of weighted rows as they come

A call adds all that it is given, or nothing: `mark` and `restore`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simindex.arrays import F32, U64
from simindex.options import IndexOptions
from simindex.records.batch import Batch
from simindex.simhash.recipe import Recipe
from simindex.storage.catalog.records import Head
from simindex.storage.segmentfiles import SegmentFiles, Written
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.reservoir import Reservoir
from simindex.storage.tables.table import Table, sort_table
from simindex.writing.buffer import Buffer, Mark, Rows

_Before = tuple[Mark, list[Reservoir], int, int]
"""What waited before a call: the buffer, and how many samples and spilled segments."""


class Waiting:
    """What comes after one commit; `secret` is that of the keys, None where rows have none."""

    def __init__(self, secret: bytes | None, value: bytes, head: Head) -> None:
        self.value, self.since = value, head
        """The commit: its head as it is stored, and decoded."""
        self.buffer = Buffer(secret, head.generation)
        self.spilled: list[Written] = []
        """Segments that were written ahead of the commit."""
        self.samples: list[Reservoir] = []
        """Of the weighted rows."""
        self.values: dict[str, bytes] = {}
        """Of the catalog, by name."""
        self.recipe: Recipe | None = None
        """Of the first batch that had one, in an index without a recipe."""

    @property
    def appended(self) -> int:
        """Rows ever appended, those that wait included."""
        return self.since.appended + self.buffer.appended

    @property
    def anything(self) -> bool:
        """Whether there is anything to commit."""
        buffer = self.buffer
        return bool(buffer.rows or buffer.deletions or self.spilled or self.values)

    def append(self, batch: Batch, files: SegmentFiles) -> U64:
        """Adds the rows of a checked batch, all or none; returns their ids, uint64 (n,)."""
        ordinal = self.appended
        keys = None
        if batch.keys is not None:
            keys = KeyHeap.of(batch.keys)
            ids = np.ascontiguousarray(keys.hashes(files.options.stored_secret)[:, 0])
        elif batch.ids is not None:
            ids = batch.ids.copy()
        else:
            ids = np.arange(ordinal, ordinal + len(batch), dtype=np.uint64)
        before = self._mark()
        try:
            self._add(batch, ids, keys, ordinal, files)
        except BaseException:
            self._restore(before, files)
            raise
        return ids

    def replace(self, batch: Batch, files: SegmentFiles) -> U64:
        """`delete` of the ids or keys of a checked batch, then `append` of it; all or none."""
        before = self._mark()
        try:
            self.delete(None if batch.keys is not None else batch.ids, batch.keys)
            return self.append(batch, files)
        except BaseException:
            self._restore(before, files)
            raise

    def delete(self, ids: U64 | None, keys: list[str] | list[bytes] | None) -> int:
        """Deletes all rows that came before; returns how many ids or keys were given."""
        self.buffer.delete(
            None if ids is None else ids.copy(), None if keys is None else KeyHeap.of(keys)
        )
        return len(ids) if ids is not None else len(keys or [])

    def _mark(self) -> _Before:
        return self.buffer.mark(), self.samples, len(self.samples), len(self.spilled)

    def _restore(self, before: _Before, files: SegmentFiles) -> None:
        """Has back what waited then, and no file of what was spilled since."""
        mark, samples, sample_count, spilled_count = before
        more = self.spilled[spilled_count:]
        del samples[sample_count:], self.spilled[spilled_count:]
        self.samples = samples
        self.buffer.restore(mark)
        files.remove(record for record, _ in more)  # last: it may be interrupted

    def _add(
        self, batch: Batch, ids: U64, keys: KeyHeap | None, ordinal: int, files: SegmentFiles
    ) -> None:
        start, count, buffer, options = 0, len(batch), self.buffer, files.options
        while start < count:
            stop = min(count, start + options.batch_rows - buffer.rows)
            buffer.append(
                batch.rows[start:stop].copy(), ids[start:stop].copy(),
                None if keys is None else keys.slice(start, stop),
            )
            if batch.weights is not None and options.reservoir_rows:
                self._draw(
                    batch.rows[start:stop], batch.weights[start:stop], ordinal + start,
                    options.reservoir_rows,
                )
            start = stop
            if buffer.rows >= options.batch_rows:
                self._spill(files)

    def _draw(self, fingerprints: U64, weights: F32, first: int, size: int) -> None:
        self.samples.append(Reservoir.drawn(fingerprints, weights, first=first, size=size))
        if sum(len(part) for part in self.samples) > 2 * size:
            self.samples = [Reservoir.merged(self.samples, size)]

    def _spill(self, files: SegmentFiles) -> None:
        living, withdrawn = self.buffer.living()
        table = sorted_rows(living, files.options, horizon=self.buffer.sequence)
        if len(table):
            self.spilled.append(files.write(table, self.since.generation + 1))
        self.buffer.spilled(withdrawn)


def sorted_rows(parts: Sequence[Rows], options: IndexOptions, *, horizon: int) -> Table:
    """Rows as one table that has no name."""
    keys = None
    if options.keyed:
        keys = KeyHeap.joined([part.keys for part in parts if part.keys is not None])
    return sort_table(
        "",
        np.concatenate(
            [np.empty((0, options.words), np.uint64), *(part.fingerprints for part in parts)]
        ),
        np.concatenate([np.empty(0, np.uint64), *(part.ids for part in parts)]),
        keys,
        horizon=horizon,
    )
