"""What changes an index: rows come and go, commits make it so, merges keep segments few.

The methods are those of `Index`, which says what they promise. Each runs under the handle's lock.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from simindex.arrays import U64
from simindex.errors import (
    ClosedIndex,
    CorruptFile,
    InvalidBatch,
    RecipeMismatch,
    StorageFull,
    raised_by_a_handler,
)
from simindex.index.change import Changing, foreseen
from simindex.index.handle import Handle
from simindex.options import IndexOptions, as_flag, checked_structures
from simindex.query import audit
from simindex.query.search import THREADED_QUERIES
from simindex.records.batch import Batch, as_ids
from simindex.records.matches import Match, Matches
from simindex.records.reports import Audit, Finding, Progress
from simindex.repair.check import strays
from simindex.storage.segmentfiles import checked_designs
from simindex.storage.snapshot import Snapshot
from simindex.threads import thread_count
from simindex.writing import ingestion, policy
from simindex.writing.admission import check_recipe, checked_batch, checked_keys
from simindex.writing.merges import put_off, wait_for
from simindex.writing.recent import Recent, admitted, check_commit_s, nearer, nearest
from simindex.writing.writer import Writer

Result = TypeVar("Result")

USUAL_FANOUT = 8
"""Segments of about one size that `compact` merges where commits merge none (min_merge=0)."""

log = logging.getLogger("simindex")


class Changes:
    """Of one handle; one that was opened for reading refuses them."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self._recent = Recent(handle.view.options)

    @property
    def _options(self) -> IndexOptions:
        return self.handle.view.options

    def leave(self) -> None:
        """What leaving a ``with`` block cleanly does before it closes the handle."""
        handle = self.handle
        if handle.writer is not None and not handle.closed:
            with handle.lock, Changing(handle, "commit") as writer:
                self._commit(writer)
                self._finish_merges(writer, start=True)

    def close(self) -> None:
        """Closes the handle; nothing waits any more."""
        self.handle.close()
        self._recent = Recent(self._options)

    def append(
        self,
        batch: Batch | Any,
        *,
        ids: Any = None,
        keys: Any = None,
        weights: Any = None,
    ) -> U64:
        """See `Index.append`."""
        with self.handle.lock:
            self.handle.changing()
            checked = checked_batch(
                batch, self._options, self.handle.recipe, ids=ids, keys=keys, weights=weights
            )
            with Changing(self.handle, "append") as writer:
                self._hand_over(writer)
                self._adopt_recipe(writer, checked)
                return self._given_space(writer, lambda: writer.append(checked))

    def replace(self, batch: Batch) -> U64:
        """See `Index.replace`."""
        with self.handle.lock:
            self.handle.changing()
            checked = checked_batch(batch, self._options, self.handle.recipe)
            if checked.keys is None and checked.ids is None:
                raise InvalidBatch("a replacement needs ids or keys")
            with Changing(self.handle, "replace") as writer:
                self._hand_over(writer)
                self._adopt_recipe(writer, checked)
                return self._given_space(writer, lambda: writer.replace(checked))

    def delete(self, *, ids: Any = None, keys: Any = None) -> int:
        """See `Index.delete`."""
        with self.handle.lock:
            self.handle.changing()
            if (ids is None) == (keys is None):
                raise InvalidBatch("give ids or keys to delete")
            if self._options.keyed and keys is None:
                raise InvalidBatch("this index has keys: give keys=")
            if not self._options.keyed and ids is None:
                raise InvalidBatch("this index has no keys: give ids=")
            checked_ids = None if ids is None else as_ids(ids, None)
            checked = None if keys is None else checked_keys(keys, self._options)
            with Changing(self.handle, "delete") as writer:
                self._hand_over(writer)
                return writer.delete(checked_ids, checked)

    def commit(self) -> None:
        """See `Index.commit`."""
        with self.handle.lock, Changing(self.handle, "commit") as writer:
            self._commit(writer)

    def _commit(self, writer: Writer, *, seal_pending: bool = False) -> None:
        self._hand_over(writer)
        if writer.changed:
            self.handle.view.check_place()
            writer.keep_pace()
        changed = self._given_space(writer, lambda: writer.commit(seal_pending=seal_pending))
        try:
            if writer.install_merges(whole=False) or changed:
                writer.start_merges()
            writer.release_retired()
        except (ClosedIndex, CorruptFile, OSError, MemoryError) as error:
            put_off(error)  # what is committed stays so: it is not for the caller to repeat

    def _given_space(self, writer: Writer, work: Callable[[], Result]) -> Result:
        """What `work` returns; on a full disk it is tried again without the files of merges."""
        try:
            return work()
        except StorageFull:
            if not writer.merging:
                raise
            writer.cancel_merges()
        return work()

    def _finish_merges(self, writer: Writer, *, start: bool) -> None:
        """Waits for the merges that run and installs them; with `start`, until none is due."""
        while writer.await_merges():
            if writer.install_merges(whole=True) and start:
                writer.start_merges()
            writer.release_retired()

    def compact(
        self,
        *,
        full: bool = False,
        structures: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """See `Index.compact`."""
        full = as_flag(full, "full")
        changing = Changing(self.handle, "compact")
        with self.handle.lock, changing as writer:
            self.handle.view.check_place()
            self._compact(writer, full, structures, changing.reporting(progress))

    def _compact(
        self, writer: Writer, full: bool, structures: Sequence[str] | None,
        progress: Progress | None,
    ) -> None:
        self._hand_over(writer)
        if structures is not None:
            wanted = checked_structures(structures)
            checked_designs(replace(self._options, structures=wanted))
        self._given_space(writer, writer.commit)
        if full or structures is not None:
            writer.cancel_merges()  # of what is merged now, or changes
        else:
            self._finish_merges(writer, start=False)
        if structures is not None:
            # What is to go is not merged first, and what is to come is built once.
            kept = [name for name in self._options.structures if name in wanted]
            writer.restructure(kept if full else wanted)
        if full:
            writer.commit(seal_pending=True)
            segments = writer.snapshot.segments
            for places in policy.fitting([len(segment) for segment in segments]):
                inputs = [segments[place] for place in places]
                later = writer.snapshot.tombstones.later_than(inputs[0].horizon)
                if len(inputs) > 1 or later:
                    writer.compact(inputs, progress)
        else:
            fanout = self._options.min_merge or USUAL_FANOUT
            while inputs := writer.due(fanout):
                writer.compact(inputs, progress)
        if full and structures is not None:
            writer.restructure(wanted)
        found = self.self_audit(writer.snapshot)
        if found is not None:
            writer.set_value("audit", audit.encode(found))
            writer.commit()

    def ingest(
        self,
        batch: Batch | Any,
        *,
        ids: Any = None,
        keys: Any = None,
        weights: Any = None,
        h: int = 3,
        recall: float = 1.0,
        first: bool = False,
        method: str = "auto",
        memory_limit: int | None = None,
        threads: int | None = None,
    ) -> Matches:
        """See `Index.ingest`."""
        started = time.perf_counter()
        first = as_flag(first, "first")
        with self.handle.lock:
            self.handle.changing()
            checked = checked_batch(
                batch, self._options, self.handle.recipe, ids=ids, keys=keys, weights=weights
            )
            answerer = self.handle.answerer
            question = answerer.question(
                h=h, first=first, recall=recall, method=method, memory_limit=memory_limit,
                threads=threads,
            )
            workers = thread_count(threads, len(checked), worth=THREADED_QUERIES)
            with Changing(self.handle, "ingest") as writer:
                self._commit(writer)
                try:
                    self._adopt_recipe(writer, checked)
                    inside = ingestion.within(checked.rows, h, first=first, threads=workers)
                    stored = answerer.search(
                        self.handle.view.current(), checked.rows, checked.weights, question
                    )
                    found = ingestion.joined(
                        stored, inside, writer.append(checked), checked.keys, first=first,
                        started=started,
                    )
                    seal = len(checked) >= ingestion.sealed_rows(self._options)
                    self._commit(writer, seal_pending=seal)
                except BaseException as error:
                    if foreseen(error) and writer.changed:  # else nobody knows what is committed
                        writer.discard()
                    raise
                return found

    def seen_or_add(
        self,
        text_or_batch: str | bytes | Batch,
        key: Any = None,
        *,
        h: int = 3,
        recall: float = 1.0,
        commit_s: float | None = 5.0,
    ) -> Match | None:
        """See `Index.seen_or_add`."""
        self.handle.writing()
        check_commit_s(commit_s)
        answerer = self.handle.answerer
        answerer.question(h=h, recall=recall)
        recipe = self.handle.recipe
        document = admitted(text_or_batch, key, self._options, recipe)
        if document is None:
            return None
        snapshot = self.handle.view.current()
        found = self._nearest(snapshot, document, h, recall)
        with self.handle.lock, Changing(self.handle, "seen_or_add") as writer:
            if writer.changed or self._recent.due(commit_s):
                self._commit(writer)
            if writer.generation != snapshot.head.generation:
                found = self._nearest(self.handle.view.current(), document, h, recall)
            found = nearer(found, self._recent.nearest(document.rows, h))
            if found is None:
                if self.handle.recipe is not recipe:
                    check_recipe(document.recipe, self.handle.recipe)
                elif recipe is None and document.recipe is not None:
                    self._hand_over(writer)
                    self._adopt_recipe(writer, document)
                self._recent.add(document, writer.appended + len(self._recent))
            return found

    def _nearest(
        self, snapshot: Snapshot, document: Batch, h: int, recall: float
    ) -> Match | None:
        answerer = self.handle.answerer

        def search(h: int, recall: float) -> Matches:
            question = answerer.question(h=h, first=True, recall=recall, threads=1)
            return answerer.search(snapshot, document.rows, document.weights, question)

        return nearest(search, h, recall)

    def _hand_over(self, writer: Writer) -> None:
        """Gives the writer what was added one at a time."""
        while len(self._recent):
            batch, taken = self._recent.portion()
            others = self._recent.without(taken)
            writer.append(batch)  # all of it or, after an interrupt, nothing
            self._recent = others

    def _adopt_recipe(self, writer: Writer, batch: Batch) -> None:
        if self.handle.recipe is None and batch.recipe is not None:
            if writer.appended:
                raise RecipeMismatch(
                    "the index's rows were appended without a recipe, this batch has one: "
                    "append its fingerprints alone if they are alike",
                    differences={"recipe": (repr(batch.recipe), None)},
                )
            writer.adopt(batch.recipe)

    # -- what is measured --------------------------------------------------------------------------

    def check_may_keep(self) -> None:
        """Refuses, before it is measured, what the next commit would not store."""
        self.handle.check_open()
        if self.handle.writer is not None:
            with self.handle.lock:
                self.handle.changing()

    def keep(self, call: str, name: str, payload: bytes) -> None:
        """Has a writer's next commit store what a call has measured."""
        if self.handle.writer is not None:
            with self.handle.lock, Changing(self.handle, call) as writer:
                writer.set_value(name, payload)

    def self_audit(self, snapshot: Snapshot, *, h: int | None = None) -> Audit | None:
        """Measures the recall if the last audit tells of another index.

        What damage prevents is left out with a warning: the caller's own work is done.
        """
        try:
            return self.handle.answerer.self_audit(snapshot, h=h)
        except (CorruptFile, OSError) as error:
            if raised_by_a_handler(error):
                raise
            log.warning("the recall was not measured: %s", error)
            return None

    # -- what is left ------------------------------------------------------------------------------

    def strays(self) -> list[Finding]:
        """Files that are no part of the index, nor about to become one by this handle."""
        handle, writer = self.handle, self.handle.writer

        def found() -> list[Finding]:
            return strays(handle.path, handle.catalog, handle.view.current())

        if writer is None:
            return found()
        with handle.lock:
            before = found()
            running = writer.running
        wait_for(running)  # without the lock; what they are writing has no final name yet
        with handle.lock:
            after = found()
            unfinished = writer.uninstalled
        return [one for one in before if one in after and Path(one.path).name not in unfinished]
