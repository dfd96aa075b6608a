"""What a writer holds for its next commit: appended rows and deletions, in the order of the calls.

    append, append, delete, append      rows       chunks, each with the number of deletions before
                                        deletions  one entry a call

A deletion concerns all rows that came before it, committed or not, and none that came after it:

1. A row that is still in memory and is deleted leaves the buffer when the rows are taken. It is
   counted as withdrawn.
2. Rows that were written as a segment ahead of the commit ("spilled") are deleted by the tombstone,
   as committed rows are. So that the tombstone is later than those rows and earlier than rows
   spilled after it, a commit has one generation more for each time that deletions followed a spill.
   `sequence` is the newest of them: the horizon of what is spilled next, and in the end the
   generation of the commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simindex.arrays import U64
from simindex.errors import InvalidBatch
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.tombstones import Deletion, Tombstones, from_deletions

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

    def __len__(self) -> int:
        return len(self.ids)


Mark = tuple[list[Rows], tuple[int, ...]]
"""What a buffer held at some moment: the first of some chunks, and counts."""


class Buffer:
    """Rows in memory and deletions since the last commit, whose generation is given.

    `secret` is what keys are hashed with; None in an index without keys.
    """

    def __init__(self, secret: bytes | None, generation: int) -> None:
        self._secret = secret
        self._chunks: list[Rows] = []
        self._deletions: list[tuple[Deletion, int]] = []
        """Each with the generation that its tombstones get."""
        self._deleted = self._deleted_key_bytes = 0
        self._follows_spill = False
        self.sequence = generation + 1
        self.rows = 0
        """Rows in memory."""
        self.appended = 0
        """Rows appended since the last commit, the spilled ones included."""
        self.withdrawn = 0
        """Of the spilled rows, those that were deleted before they were written."""

    @property
    def deletions(self) -> int:
        """Ids or keys deleted since the last commit."""
        return self._deleted

    def mark(self) -> Mark:
        """What `restore` brings back."""
        return self._chunks, (
            len(self._chunks), len(self._deletions), self._deleted, self._deleted_key_bytes,
            self.rows, self.appended, self.withdrawn,
        )

    def restore(self, mark: Mark) -> None:
        """Forgets what was added since, and has back what was spilled since."""
        self._chunks, (
            chunks, deletions, self._deleted, self._deleted_key_bytes, self.rows, self.appended,
            self.withdrawn,
        ) = mark
        del self._chunks[chunks:], self._deletions[deletions:]

    def append(self, fingerprints: U64, ids: U64, keys: KeyHeap | None) -> None:
        """Adds rows; the arrays are the buffer's from now on."""
        self._chunks.append(Rows(fingerprints, ids, keys, len(self._deletions)))
        self.rows += len(ids)
        self.appended += len(ids)

    def delete(self, ids: U64 | None, keys: KeyHeap | None) -> None:
        """Adds the deletion of all rows before it of some ids, or of some keys.

        Raises InvalidBatch if one commit would delete too many.
        """
        count = len(ids) if ids is not None else 0 if keys is None else len(keys.offsets) - 1
        key_bytes = 0 if keys is None else len(keys.data)
        for found, most, what in (
            (self._deleted + count, MAX_DELETIONS, "deletions in one commit"),
            (self._deleted_key_bytes + key_bytes, MAX_DELETED_KEY_BYTES,
             "bytes of keys in the deletions of one commit"),
        ):
            if found > most:
                raise InvalidBatch(
                    f"more than {most:,} {what}: commit those before, or give them in several runs",
                    found=found, expected=most,
                )
        if not count:
            return
        if ids is not None:
            deletion = Deletion.of_ids(ids)
        else:
            assert keys is not None and self._secret is not None
            deletion = Deletion.of_keys(keys, self._secret)
        if self._follows_spill:
            self.sequence, self._follows_spill = self.sequence + 1, False
        self._deletions.append((deletion, self.sequence))
        self._deleted += count
        self._deleted_key_bytes += key_bytes

    def tombstones(self) -> Tombstones:
        """Of the deletions, for the rows that are not in memory."""
        deletions = [deletion for deletion, _ in self._deletions]
        commits = [commit for _, commit in self._deletions]
        return from_deletions(deletions, commits, keyed=self._secret is not None)

    def living(self) -> tuple[Sequence[Rows], int]:
        """The rows in memory that were not deleted after they came, and how many were.

        Deleted rows are counted where tombstones meet them, not as those that are missing.
        """
        first = self._chunks[0].deletions if self._chunks else len(self._deletions)
        later = [deletion for deletion, _ in self._deletions[first:]]
        if not later:
            return self._chunks, 0
        numbers = range(first + 1, len(self._deletions) + 1)
        deleted = from_deletions(later, numbers, keyed=self._secret is not None)
        ids = np.concatenate([chunk.ids for chunk in self._chunks])
        heaps = [chunk.keys for chunk in self._chunks if chunk.keys is not None]
        keys = KeyHeap.joined(heaps) if heaps else None
        before = np.repeat(
            np.array([chunk.deletions for chunk in self._chunks], np.uint64),
            np.array([len(chunk) for chunk in self._chunks], np.int64),
        )
        dead = deleted.killed(ids, keys, np.arange(len(ids)), before)
        count = int(np.count_nonzero(dead))
        if not count:
            return self._chunks, 0
        left = np.flatnonzero(~dead)
        fingerprints = np.concatenate([chunk.fingerprints for chunk in self._chunks])
        rows = Rows(fingerprints[left], ids[left], None if keys is None else keys.take(left))
        return [rows], count

    def spilled(self, withdrawn: int) -> None:
        """Forgets the rows in memory, which are in a segment now but for those deleted."""
        self.withdrawn += withdrawn
        self._follows_spill |= self.rows > withdrawn
        self._chunks, self.rows = [], 0
