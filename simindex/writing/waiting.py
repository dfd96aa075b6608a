"""What waits for the next commit of a writer: rows, deletions, values, and files written ahead.

    append, append, delete, append      rows       chunks, each with the number of deletions before
                                        deletions  one entry a call
    spilled   rows as segment files that are not part of the index yet: every batch_rows rows are
    values    whole values of the catalog, such as an audit
    recipe    of the first batch that had one, in an index without a recipe
    options   with the keys and the width of sketches of the first rows, in an index that left
              them open
    samples   drawn of weighted rows as they come
    expired   the time before which rows expire: of the commit before, or later

A call adds all that it is given, or nothing: `_all_or_nothing`. A deletion concerns all rows
that came before it, committed or not, and none that came after it:

1. A row that is still in memory and is deleted leaves when the rows are taken. It is counted as
   withdrawn.
2. Rows that are spilled are deleted by the tombstone, as committed rows are. So that the tombstone
   is later than those rows and earlier than rows spilled after it, a commit has one generation more
   for each time that deletions followed a spill. `sequence` is the newest of them: the horizon of
   what is spilled next, and in the end the generation of the commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any

import numpy as np

from simindex.arrays import I64, U8, U32, U64, Bools
from simindex.errors import InvalidBatch
from simindex.options import IndexOptions
from simindex.records.batch import Batch
from simindex.records.sketches import record_bytes
from simindex.simhash.recipe import Recipe
from simindex.storage.catalog.records import Head, SealedHead
from simindex.storage.segment_files import SegmentFiles, Written
from simindex.storage.tables.deletions import Deletions
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.reservoir import Reservoir
from simindex.storage.tables.row_names import IdSet, Names, RowsById, named
from simindex.storage.tables.segment import Segment, open_segment
from simindex.storage.tables.table import Table, sort_table
from simindex.storage.tables.times import now
from simindex.storage.tables.tombstones import Tombstones, from_deletions
from simindex.values import dataclass

MAX_HELD_KEY_BYTES = 1 << 28
"""Of the keys of rows in memory: with more, they are written as a segment, however few they are."""

MAX_DELETIONS = 1 << 26
"""In one commit: each takes up to 90 bytes while they are sorted, and 24 in every reader."""

MAX_DELETED_KEY_BYTES = 1 << 30
"""Of the keys that one commit deletes; every reader holds them until they are settled."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Some rows, in no order."""

    fingerprints: U64
    ids: U64
    keys: KeyHeap | None
    deletions: int = 0
    """Calls of `delete` that came before them since the last commit."""
    times: U32 | None = None
    """When they came; see `times`."""
    sketches: U8 | None = None
    """Their further bits; see `sketches`."""

    def take(self, rows: I64) -> Rows:
        """Some of them, as rows that came before all deletions."""
        return Rows(
            self.fingerprints[rows], self.ids[rows],
            None if self.keys is None else self.keys.take(rows),
            times=None if self.times is None else self.times[rows],
            sketches=None if self.sketches is None else self.sketches[rows],
        )

    def __len__(self) -> int:
        return len(self.ids)



class Waiting:
    """What comes after one commit.

    `secret` is what keys are hashed with; None in an index without keys.
    """

    def __init__(self, secret: bytes | None, commit: SealedHead) -> None:
        self.value: bytes
        self.since: Head
        self.value, self.since = commit
        """The commit: its head as it is stored, and decoded."""
        self._secret = secret
        self.latest: int = self.since.latest
        """The last time that a row was given."""
        self.expired: int = self.since.expired
        """The time before which rows expire."""
        self._chunks: list[Rows] = []
        self._deletions: list[tuple[Names, int]] = []
        """Each with the generation that its tombstones get."""
        self.deletions: int = 0
        """Ids or keys deleted since the commit."""
        self._deleted_key_bytes = 0
        self._deleted = IdSet()
        """Their ids."""
        self._follows_spill = False
        self.sequence: int = self.since.generation + 1
        self.rows: int = 0
        """Rows in memory."""
        self.key_bytes: int = 0
        """Of their keys."""
        self.added: int = 0
        """Rows appended since the commit, the spilled ones included."""
        self.withdrawn: int = 0
        """Of the spilled rows, those that were deleted before they were written."""
        self.spilled: list[Written] = []
        """Segments that were written ahead of the commit."""
        self._spilled_tables: dict[str, Segment] = {}
        """Those of them that were asked for names."""
        self.samples: list[Reservoir] = []
        """Of the weighted rows."""
        self.values: dict[str, bytes] = {}
        """Of the catalog, by name."""
        self.recipe: Recipe | None = None
        """That the commit gives an index which has none."""
        self.options: IndexOptions | None = None
        """That the commit gives an index whose first rows decide if it has keys or sketches."""
        self.due_at: float = inf
        """Time of `monotonic` at which the commit is due, for rows that were added one at a time.
        """

    @property
    def appended(self) -> int:
        """Rows ever appended, those that wait included."""
        return self.since.appended + self.added

    @property
    def empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not (
            self.rows or self.deletions or self.spilled or self.values or self.recipe
            or self.options or self.expired > self.since.expired
        )

    def emptied(self, secret: bytes | None) -> Waiting:
        """What comes after the same commit, and nothing yet."""
        return Waiting(secret, SealedHead(self.value, self.since))

    def decided(self, options: IndexOptions) -> Waiting:
        """The same without its deletions, for rows as these options say; there are none yet, of
        which a deletion could have told."""
        waiting = self.emptied(options.key_secret)
        waiting.values, waiting.recipe, waiting.options = dict(self.values), self.recipe, options
        return waiting

    def append(self, batch: Batch, files: SegmentFiles, times: U32 | None = None) -> U64:
        """Adds the rows of a checked batch, all or none; returns their ids, uint64 (n,).

        They came now, or at their `times`. None is from before the time of those that expire.
        """
        ordinal = self.appended
        keys = None
        if batch.keys is not None:
            keys = KeyHeap.of(batch.keys)
            ids = np.ascontiguousarray(keys.hashes(files.options.stored_secret)[:, 0])
        elif batch.ids is not None:
            ids = batch.ids.copy()
        else:
            ids = np.arange(ordinal, ordinal + len(batch), dtype=np.uint64)
        times = self._times(len(batch), times, files)
        with self._all_or_nothing(files):
            start = 0
            while start < len(batch):
                stop = min(len(batch), start + files.options.batch_rows - self.rows)
                self._hold(batch, ids, keys, times, start, stop)
                self._sample(batch, ordinal, start, stop, files.options.reservoir_rows)
                if self._is_full(files):
                    self._spill(files)
                start = stop
        return ids

    def _is_full(self, files: SegmentFiles) -> bool:
        return self.rows >= files.options.batch_rows or self.key_bytes > MAX_HELD_KEY_BYTES

    def _times(self, count: int, given: U32 | None, files: SegmentFiles) -> U32 | None:
        """Of rows that come now, unless they are given; None in an index without times."""
        if not files.options.times:
            return None
        if given is not None:
            return np.maximum(given, np.uint32(self.expired))
        self.latest = max(self.latest, self.expired, now())
        return np.full(count, self.latest, np.uint32)

    def names(self, ids: U64 | None, keys: list[str] | list[bytes] | None) -> Names:
        """Of ids or keys that were found to be of the index's kind."""
        if keys is None:
            assert ids is not None
            return Names.of_ids(ids.copy())
        assert self._secret is not None
        return Names.of_keys(KeyHeap.of(keys), self._secret)

    def _names_replaced(self, batch: Batch) -> Names:
        without: list[Any] = [one.key for one in batch.skipped if one.key is not None]
        if batch.keys is None:
            assert batch.ids is not None
            return self.names(np.append(batch.ids, np.array(without, np.uint64)), None)
        keys: list[Any] = [*batch.keys, *without]
        return self.names(None, keys)

    def replace(self, batch: Batch, files: SegmentFiles) -> U64:
        """`delete` of the ids or keys of a checked batch, then `append` of it; all or none.

        Rows of a text that got no fingerprint are deleted, too.
        """
        with self._all_or_nothing(files):
            self.delete(self._names_replaced(batch))
            return self.append(batch, files)

    def delete(self, names: Names) -> None:
        """Deletes all rows of some names that came before; keeps the names.

        Raises InvalidBatch if one commit would delete too many.
        """
        count = len(names)
        key_bytes = 0 if names.keys is None else len(names.keys.data)
        for found, most, what in (
            (self.deletions + count, MAX_DELETIONS, "deletions in one commit"),
            (self._deleted_key_bytes + key_bytes, MAX_DELETED_KEY_BYTES,
             "bytes of keys in the deletions of one commit"),
        ):
            if found > most:
                raise InvalidBatch(
                    f"more than {most:,} {what}",
                    remedy="commit more often, or divide them among several runs", found=found,
                    expected=most,
                )
        if not count:
            return
        if self._follows_spill:
            self.sequence, self._follows_spill = self.sequence + 1, False
        self._deleted.add(names.id)
        self._deletions.append((names, self.sequence))
        self.deletions += count
        self._deleted_key_bytes += key_bytes

    def named(self, names: Names, files: SegmentFiles) -> Iterator[tuple[Rows, I64, I64]]:
        """Rows that wait and have some names: some rows, places of names, and rows of those."""
        for table in self._spilled(files):
            places, found = named(table.by_id, table.keys, names)
            if len(found):
                live = ~self._deletions_of_spilled().dead(table, table.ids[found], found)
                yield (
                    Rows(table.fingerprints, table.ids, table.keys, sketches=table.sketches),
                    places[live], found[live],
                )
        if self.rows and len(RowsById(self._ids())(np.unique(names.id))[1]):
            rows = _joined(self.living()[0])
            yield rows, *named(RowsById(rows.ids), rows.keys, names)

    def _spilled(self, files: SegmentFiles) -> Iterator[Segment]:
        for record, _ in self.spilled:
            if record.name not in self._spilled_tables:
                self._spilled_tables[record.name] = open_segment(
                    files.folder, record, lambda: None
                )
            yield self._spilled_tables[record.name]

    def _deletions_of_spilled(self) -> Deletions:
        return Deletions([self.tombstones()], self.expired)

    def live_before(self, time: int, files: SegmentFiles) -> int:
        """How many rows wait that are from before a time, and not deleted."""
        deleted = self._deletions_of_spilled()
        count = sum(deleted.live_before(table, time) for table in self._spilled(files))
        for rows in self.living()[0]:
            if rows.times is not None:
                count += int(np.count_nonzero(rows.times < time))
        return count

    def _ids(self) -> U64:
        """Of the rows in memory."""
        return np.concatenate([chunk.ids for chunk in self._chunks])

    def hides(self, names: Names) -> Bools:
        """Which of some names were deleted since the commit, so that no row of it has them."""
        return self._deleted.among(names.id)

    @contextmanager
    def _all_or_nothing(self, files: SegmentFiles) -> Iterator[None]:
        """A `with` block after which, if it fails, what waited before waits again, also what was
        spilled meanwhile."""
        chunks, samples, withdrawn = self._chunks, self.samples, self.withdrawn
        counts = len(chunks), len(samples), len(self.spilled), len(self._deletions)
        deletions, key_bytes = self.deletions, self._deleted_key_bytes
        rows, added, held = self.rows, self.added, self.key_bytes
        try:
            yield
        except BaseException:
            chunk_count, sample_count, spilled_count, deletion_count = counts
            more = self.spilled[spilled_count:]
            del samples[sample_count:], self.spilled[spilled_count:]
            if len(self._deletions) > deletion_count:
                del self._deletions[deletion_count:]
                self._deleted = IdSet()
                for names, _ in self._deletions:
                    self._deleted.add(names.id)
            del chunks[chunk_count:]
            self.samples, self._chunks, self.withdrawn = samples, chunks, withdrawn
            self.deletions, self._deleted_key_bytes = deletions, key_bytes
            self.rows, self.added, self.key_bytes = rows, added, held
            files.remove(record for record, _ in more)  # last: it may be interrupted
            raise

    def _hold(
        self, batch: Batch, ids: U64, keys: KeyHeap | None, times: U32 | None, start: int,
        stop: int,
    ) -> None:
        self._chunks.append(Rows(
            batch.rows[start:stop].copy(), ids[start:stop].copy(),
            None if keys is None else keys.slice(start, stop), len(self._deletions),
            None if times is None else times[start:stop],
            None if batch.sketches is None else batch.sketches[start:stop].copy(),
        ))
        held = self._chunks[-1].keys
        self.key_bytes += 0 if held is None else len(held.data)
        self.rows += stop - start
        self.added += stop - start

    def _sample(self, batch: Batch, ordinal: int, start: int, stop: int, size: int) -> None:
        """Draws some of the rows that have weights; `ordinal` is the number of the batch's first
        row."""
        if batch.weights is None or not size:
            return
        self.samples.append(Reservoir.drawn(
            batch.rows[start:stop], batch.weights[start:stop], first=ordinal + start, size=size,
        ))
        if sum(map(len, self.samples)) > 2 * size:
            self.samples = [Reservoir.merged(self.samples, size)]

    def _spill(self, files: SegmentFiles) -> None:
        """Writes the rows in memory, except for those deleted, as a segment."""
        living, withdrawn = self.living()
        table = sorted_rows(living, files.options, horizon=self.sequence)
        if len(table):
            self.spilled.append(files.write(table, self.since.generation + 1))
        self.withdrawn += withdrawn
        self._follows_spill |= self.rows > withdrawn
        self._chunks, self.rows, self.key_bytes = [], 0, 0

    def tombstones(self) -> Tombstones:
        """Of the deletions, for the rows that are not in memory."""
        deletions = [deletion for deletion, _ in self._deletions]
        commits = [commit for _, commit in self._deletions]
        return from_deletions(deletions, commits, keyed=self._secret is not None)

    def living(self) -> tuple[Sequence[Rows], int]:
        """The rows in memory that were not deleted after they came, nor expire, and how many did.

        Deleted rows are counted where tombstones meet them, not as those that are missing.
        """
        first = self._chunks[0].deletions if self._chunks else len(self._deletions)
        later = [deletion for deletion, _ in self._deletions[first:]]
        expire = self.expired > self.since.expired
        if not self._chunks or not (later or expire):
            return self._chunks, 0
        numbers = range(first + 1, len(self._deletions) + 1)
        deleted = from_deletions(later, numbers, keyed=self._secret is not None)
        rows = _joined(self._chunks)
        before = np.repeat(
            np.array([chunk.deletions for chunk in self._chunks], np.uint64),
            np.array([len(chunk) for chunk in self._chunks], np.int64),
        )
        dead = deleted.killed(rows.ids, rows.keys, np.arange(len(rows)), before)
        if expire and rows.times is not None:
            dead |= rows.times < self.expired
        count = int(np.count_nonzero(dead))
        if not count:
            return self._chunks, 0
        return [rows.take(np.flatnonzero(~dead))], count


def _joined(parts: Sequence[Rows]) -> Rows:
    """One after the other; there is at least one."""
    heaps = [part.keys for part in parts if part.keys is not None]
    return Rows(
        np.concatenate([part.fingerprints for part in parts]),
        np.concatenate([part.ids for part in parts]),
        KeyHeap.joined(heaps) if heaps else None,
        times=None if parts[0].times is None else _joined_times(parts),
        sketches=None if parts[0].sketches is None else _joined_sketches(
            parts, parts[0].sketches.shape[1]
        ),
    )


def _joined_times(parts: Sequence[Rows]) -> U32:
    times = [part.times for part in parts if part.times is not None]
    return np.concatenate([np.empty(0, np.uint32), *times])


def _joined_sketches(parts: Sequence[Rows], item: int) -> U8:
    sketches = [part.sketches for part in parts if part.sketches is not None]
    return np.concatenate([np.empty((0, item), np.uint8), *sketches])


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
        times=_joined_times(parts) if options.times else None,
        sketches=(
            _joined_sketches(parts, record_bytes(options.sketch_words)) if options.sketch_words
            else None
        ),
    )
