"""The commits of the one writer of an index: its lock, its snapshot, what waits for the next one.

    waiting    the last commit, which is this writer's, and what comes after it
    snapshot   the index as of that commit: the view's, once it is compared with `waiting`
    recent     rows that were added one at a time; they join what waits before a commit

The commit rule: data is durable under its final name before the transaction that names it, and
files are unlinked after the transaction that stops naming them. An error inside that transaction
leaves its outcome unknown, so the writer then refuses to go on, and unlinks nothing more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from time import monotonic, thread_time
from typing import Any

import numpy as np

from simindex.arrays import I64, U32, U64
from simindex.errors import (
    ClosedIndex,
    CommitFailed,
    ReadOnlyIndex,
    RecipeMismatch,
    what_happened,
)
from simindex.options import SECRET_BYTES, IndexOptions
from simindex.records.batch import Batch
from simindex.simhash.recipe import Recipe
from simindex.storage.catalog.catalog import Catalog, Edit
from simindex.storage.catalog.leases import check_place
from simindex.storage.catalog.records import Pages, Run
from simindex.storage.files import locks
from simindex.storage.files.checksums import verified_at
from simindex.storage.files.descriptor import Descriptor
from simindex.storage.files.refusals import REOPEN, WENT
from simindex.storage.segment_files import SegmentFiles, checked_designs
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.row_names import Names
from simindex.storage.tables.table import Table
from simindex.storage.view import View
from simindex.writing.admission import has_no_keys, kind_of_keys
from simindex.writing.catalog_edit import composed
from simindex.writing.ownership import remove_strays
from simindex.writing.recent import Recent
from simindex.writing.waiting import Rows, Waiting

LARGE_ROWS = 1 << 17
"""Tombstones in a file of several megabytes: to give their space back takes 2 ms each."""

Holding = Table | Rows
"""What has columns of fingerprints, ids and keys."""


class Committer:
    """Holds the index's lock from creation to `close`."""

    commits: int
    commits_s: float

    def __init__(self, view: View) -> None:
        self.view: View = view
        self.catalog: Catalog = view.catalog
        self.failed: str | None = None
        """Why it changes nothing any more."""
        self.lock: Descriptor | None = None
        self.held: list[Descriptor] = []
        """Of files that were unlinked after a commit, whose space is to be given back."""
        self.commit_s: float = 0.0
        """Processor time of the last commit that had anything to do."""
        self.commits, self.commits_s = 0, 0.0
        """How many there were, and the time that they took."""
        self._files: SegmentFiles | None = None
        try:
            self.lock = locks.lock(view.path / "LOCK")
            check_place(self.catalog.environment)  # else its strays would be another index's files
            view.open()  # not before: the last writer may have decided the options
            with self.catalog.reading() as reading:
                commit = reading.head()
            self.recent: Recent = Recent(view.options)
            """Rows that were added one at a time, and do not wait yet."""
            self.waiting: Waiting = Waiting(view.options.key_secret, commit)
            remove_strays(self.catalog, view.segments, *commit)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Gives the lock back; may be called again, after an interrupt."""
        if self.lock is not None:
            locks.unlock(self.lock)

    @property
    def files(self) -> SegmentFiles:
        """Where segment files are written, and what they carry."""
        options = self.options
        if self._files is None or self._files.options is not options:
            self._files = SegmentFiles(
                self.view.segments, self.view.index, options, tuple(checked_designs(options))
            )
        return self._files

    @property
    def options(self) -> IndexOptions:
        """Of the index, or of what waits."""
        return self.waiting.options or self.view.options

    @property
    def recipe(self) -> Recipe | None:
        """Of the index, or of what waits."""
        return self.waiting.recipe or self.view.recipe

    @property
    def snapshot(self) -> Snapshot:
        """The index as of the last commit, which was this writer's.

        The catalog is asked each time: it refuses an index that another writer has changed.
        """
        found = self.view.newest()
        if found.value != self.waiting.value:
            raise self._not_alone(
                "another writer has changed the index, though this one held LOCK"
            )
        return found

    def alone(self) -> Snapshot:
        """The snapshot, for a change of it.

        Refuses to change an index that another writer has changed, or may change now: LOCK keeps
        others out for as long as its name leads to it.
        """
        snapshot = self.snapshot
        if self.lock is None or not locks.is_locked(self.lock, self.view.path / "LOCK"):
            if not os.path.lexists(self.view.path):
                self.failed = WENT
                raise CommitFailed(
                    f"{self.view.path} was not changed: {WENT}",
                    remedy=f"{REOPEN}, and repeat what was not committed",
                    path=str(self.view.path),
                )
            raise self._not_alone(
                "its LOCK was removed or replaced, so that another writer may be open"
            )
        return snapshot

    def _not_alone(self, reason: str) -> CommitFailed:
        self.failed = reason
        return CommitFailed(
            f"{self.view.path} was not changed: {reason}. Nothing may remove LOCK while a writer "
            "is open",
            remedy="open the index again, and repeat what was not committed",
            path=str(self.view.path),
        )

    def refuse(self, reason: str) -> None:
        """Changes nothing from now on, and unlinks nothing that a commit may have named."""
        if self.failed is None:
            self.failed = reason

    def check_usable(self) -> None:
        """Raises ReadOnlyIndex once a commit has failed, or a change was cut off."""
        if self.failed is not None:
            raise ReadOnlyIndex(
                f"{self.view.path} cannot be changed by this handle any more: {self.failed}",
                remedy="close it and open the index again; the index has its last commit",
                path=str(self.view.path),
            )

    # -- what waits --------------------------------------------------------------------------------

    def append(self, batch: Batch, times: U32 | None = None) -> U64:
        """Adds the rows of a checked batch, all or none; returns their ids, uint64 (n,).

        They came now, or at their `times`.
        """
        self.check_usable()
        if self._says_nothing(batch):
            return np.zeros(0, np.uint64)
        return self.waiting.append(batch, self.files, times)

    def add_recent(self, document: Batch, commit_s: float | None) -> None:
        """Adds a checked batch of one row, to be appended with others like it."""
        recent = self.recent
        recent.add(document, self.waiting.appended + recent.count, commit_s)

    def replace(self, batch: Batch) -> U64:
        """`delete` of the ids or keys of a checked batch, then `append` of it; all or none."""
        self.check_usable()
        if self._says_nothing(batch):
            return np.zeros(0, np.uint64)
        return self.waiting.replace(batch, self.files)

    def _says_nothing(self, batch: Batch) -> bool:
        """Whether a batch has keys but no row, and no row has said yet whether rows have keys."""
        if batch.keys is None or self.options.keyed:
            return False
        if not self.may_take_keys:
            raise has_no_keys()
        return True

    @property
    def anything_waits(self) -> bool:
        """Whether a commit would have anything to do."""
        return self.recent.count > 0 or not self.waiting.empty

    @property
    def due_at(self) -> float:
        """Time of `monotonic` at which rows that were added one at a time are to be committed."""
        return min(self.waiting.due_at, self.recent.due_at if self.recent.count else inf)

    def hand_over(self) -> None:
        """Appends what was added one at a time."""
        while self.recent.count:
            batch, taken = self.recent.portion()
            others = self.recent.without(taken)
            self.append(batch)  # all of it or, after an interrupt, nothing
            self.waiting.due_at = min(self.waiting.due_at, self.recent.due_at)
            self.recent = others

    def named(self, names: Names) -> Iterator[tuple[Holding, I64, I64]]:
        """Live rows of some names, those that wait included: rows, places of names, and which rows.

        Once there is a commit that `waiting` does not follow, as where a commit was interrupted at
        its end, only the committed rows: those that waited may be among them.
        """
        snapshot = self.view.newest()
        if snapshot.value != self.waiting.value:
            yield from snapshot.named(names)
            return
        hidden = self.waiting.hides(names)
        for table, places, rows in snapshot.named(names):
            seen = ~hidden[places]
            if table.times is not None:
                seen &= verified_at(table.times, rows) >= self.waiting.expired
            yield table, places[seen], rows[seen]
        yield from self.waiting.named(names, self.files)
        if self.recent.count:
            fingerprints, ids, keys, sketches, places = self.recent.named(names)
            if len(places):
                heap = None if names.keys is None else KeyHeap.of(keys)
                found = Rows(
                    fingerprints, ids, heap,
                    sketches=sketches if self.options.sketch_words else None,
                )
                yield found, places, np.arange(len(places))

    def delete(self, names: Names) -> int:
        """Deletes all rows of some names; returns how many of the names had any."""
        self.check_usable()
        self.hand_over()
        _ = self.snapshot  # which refuses an index that another writer has changed
        there = np.zeros(len(names), np.bool_)
        for _, places, _ in self.named(names):
            there[places] = True
        self.waiting.delete(names)
        return len(set(zip(names.id[there].tolist(), names.second[there].tolist(), strict=True)))

    def expire(self, before: int) -> int:
        """Deletes all rows from before a time, at most now; returns how many there were."""
        self.check_usable()
        self.hand_over()
        waiting, snapshot = self.waiting, self.snapshot
        if before <= waiting.expired:
            return 0
        deleted = snapshot.tombstones.and_later(waiting.tombstones(), waiting.expired)
        count = sum(deleted.live_before(table, before) for table in snapshot.tables)
        count += waiting.live_before(before, self.files)
        if count:
            waiting.expired = before
        return count

    @contextmanager
    def admitting(self, batch: Batch, options: IndexOptions) -> Iterator[None]:
        """A `with` block that adds a checked batch to what waits.

        The index takes its recipe, and the keys and the width of sketches of `options`, unless it
        has them; if the block fails, it does not. Raises RecipeMismatch if rows came without a
        recipe.
        """
        self.check_usable()
        self.hand_over()
        waiting, recent, recipe = self.waiting, self.recent, self.waiting.recipe
        try:
            self._decide(options)
            self._adopt_recipe(batch)
            yield
        except BaseException:
            waiting.recipe = recipe
            self.waiting, self.recent = waiting, recent
            raise

    def _adopt_recipe(self, batch: Batch) -> None:
        if self.recipe is None and batch.recipe is not None:
            if self.waiting.appended:
                raise RecipeMismatch(
                    "the rows of this index were appended without a recipe, but this batch has one",
                    remedy="append only its fingerprints, if they are of the same kind",
                    differences={"recipe": (repr(batch.recipe), None)},
                )
            self.waiting.recipe = batch.recipe

    def _decide(self, wanted: IndexOptions) -> None:
        """Takes the keys and the width of sketches of the first rows."""
        options = self.options
        if wanted.keys != options.keys:
            options = replace(options, keys=wanted.keys, key_secret=os.urandom(SECRET_BYTES))
        if wanted.sketch_bits != options.sketch_bits:
            options = replace(options, sketch_bits=wanted.sketch_bits)
        if options is not self.options:
            self.waiting, self.recent = self.waiting.decided(options), Recent(options)

    @property
    def no_rows(self) -> bool:
        """Whether no row ever came into the index, nor waits for a commit."""
        return not self.waiting.appended + self.recent.count

    @property
    def may_take_keys(self) -> bool:
        """Whether the first rows decide if this index has keys: nobody has, and none came yet."""
        return self.options.keys is None and self.no_rows

    @property
    def may_take_sketches(self) -> bool:
        """Whether the first rows decide if this index has sketches: neither recipe nor rows came.
        """
        return not self.options.sketch_bits and self.recipe is None and self.no_rows

    def fitting(self, options: IndexOptions, given: Any, keys: Any) -> IndexOptions:
        """The options; with the kind of keys and the width of sketches of the first rows, where
        they leave them open.

        `given` is a batch, or comes with its `keys`.
        """
        kind = kind_of_keys(given, keys) if options.keys is None else None
        if kind and self.may_take_keys:
            options = replace(options, keys=kind)
        sketch_bits = given.sketch_bits if isinstance(given, Batch) else 0
        if sketch_bits and self.may_take_sketches:
            options = replace(options, sketch_bits=sketch_bits)
        return options

    def set_value(self, name: str, payload: bytes) -> None:
        """Sets a whole value of the catalog."""
        self.check_usable()
        self.waiting.values[name] = payload

    def discard(self) -> None:
        """Forgets everything since the last commit."""
        waiting, options = self.waiting, self.view.options
        self.recent = Recent(options)
        self.waiting = waiting.emptied(options.key_secret)
        if self.failed is None:
            self.files.remove(record for record, _ in waiting.spilled)
            # last: it may be interrupted

    # -- commits -----------------------------------------------------------------------------------

    def commit(self, *, seal_pending: bool = False) -> bool:
        """Makes what waits durable and visible, all or nothing. Returns whether there was any.

        `seal_pending` writes pending rows as a segment, however few they are.
        """
        self.check_usable()
        waiting = self.waiting
        rows = waiting.rows + waiting.since.pending_rows
        if waiting.empty and not (seal_pending and rows):
            self.view.newest()  # which raises if the index was replaced
            return False
        snapshot = self.alone()
        began, began_at = thread_time(), monotonic()
        written: list[str] = []
        try:
            edit = composed(
                waiting, snapshot, self.files, self.catalog, written, seal_pending=seal_pending
            )
        except BaseException:
            self.files.remove_named(written)
            raise
        self.finish(edit, written)
        self.commit_s = thread_time() - began
        self.commits, self.commits_s = self.commits + 1, self.commits_s + monotonic() - began_at
        return True

    def finish(self, edit: Edit, written: Sequence[str]) -> None:
        """Commits, and unlinks the files written for it only if it is certain that it did not.

        Nobody else unlinks them: the caller cannot know what an error means. Once it has
        committed, it unlinks files of tombstones that the head names no more. Raises ClosedIndex
        if another index has taken this one's place.
        """
        try:
            check_place(self.catalog.environment)
            self.files.require(edit.files)
            commit = self.catalog.commit(edit)
            self.view.adopt(self.waiting.recipe, self.waiting.options)
            self.waiting = Waiting(self.view.options.key_secret, commit)
        except BaseException as error:
            if isinstance(error, (ClosedIndex, OSError, MemoryError)) and not edit.begun:
                self.files.remove_named(written)
            else:
                # An interrupt arrives when the transaction has just ended, most likely well.
                self.failed = (
                    what_happened(error) or f"its commit was interrupted by {type(error).__name__}"
                )
            raise
        self._unlink(edit.unnamed)

    def _unlink(self, runs: Sequence[Run]) -> None:
        """Unlinks files of tombstones; the space of large ones is to be given back by a thread."""
        large = [run.file for run in runs if run.rows >= LARGE_ROWS]
        self.held += self.files.remove_held(large)
        self.files.remove_named(run.file for run in runs if run.rows < LARGE_ROWS)

    def stage(self, pages: Pages) -> None:
        """Stores directories ahead of the commit that names their segment."""
        try:
            self.catalog.stage(self.waiting.value, pages)
        except CommitFailed as error:
            self.failed = error.what
            raise
