"""What changes an index: rows come and go, commits make it so, merges keep segments few.

The methods are those of `Index`, which says what they promise. Each runs under the handle's lock.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simindex.errors import CorruptFile, InvalidBatch, StorageFull, raised_by_a_handler
from simindex.index.settling import Settling
from simindex.index.writing_call import WritingCall, foreseen
from simindex.options import IndexOptions, as_flag, checked_structures
from simindex.records.batch import Batch
from simindex.resources.memory import answer_bytes
from simindex.resources.threads import thread_count
from simindex.storage.segment_files import checked_designs
from simindex.writing import policy, tombstone_runs
from simindex.writing.admission import (
    checked_batch,
    checked_names,
    names_of_any_kind,
    require_names_of_skipped,
)
from simindex.writing.expiry import checked_time
from simindex.writing.merges import wait_for
from simindex.writing.restructuring import restructure

if TYPE_CHECKING:
    from simindex.arrays import U32, U64
    from simindex.index.handle import Handle
    from simindex.records.matches import Matches
    from simindex.records.reports import Audit, Finding, Progress
    from simindex.storage.snapshot import Snapshot

SELF_AUDIT_ROWS = 1 << 20
"""Rows from which `tune` and `compact` measure the recall by themselves."""

USUAL_FANOUT = 8
"""Files of tombstones of about one size that `compact` merges where commits merge none."""

log: logging.Logger = logging.getLogger(__package__)


class Changes:
    """Of one handle; one that was opened for reading refuses them."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.settling: Settling = Settling(handle)

    @property
    def _options(self) -> IndexOptions:
        return self.handle.options

    def leave(self) -> None:
        """What leaving a ``with`` block cleanly does before it closes the handle."""
        handle = self.handle
        if handle.writer is not None and not handle.closed:
            with handle.turns, handle.lock, WritingCall(handle, "commit") as writer:
                writer.commit()
                self.settling.leave(writer)

    def _fitting(self, given: Any, keys: Any) -> IndexOptions:
        """The options; with the kind of keys and the width of sketches of the first rows, where
        they leave them open.

        `given` is a batch, or comes with its `keys`. Under the lock.
        """
        return self.handle.check_may_change().committer.fitting(self._options, given, keys)

    def append(
        self, batch: Batch | Any, named: Mapping[str, Any], times: U32 | None = None
    ) -> U64:
        """See `Index.append`; `named` are ids, keys and weights of plain fingerprints.

        Rows came now, or at their `times`.
        """
        with self.handle.turns, self.handle.lock:
            options = self._fitting(batch, named.get("keys"))
            checked = checked_batch(batch, options, self.handle.recipe, **named)
            with WritingCall(self.handle, "append") as writer:
                committer = writer.committer
                with committer.admitting(checked, options):
                    try:
                        ids = committer.append(checked, times)
                    except StorageFull:
                        writer.make_room()
                        ids = committer.append(checked, times)
                tally = self.handle.counts.append
                tally.calls, tally.added = tally.calls + 1, tally.added + len(ids)
                return ids

    def replace(self, batch: Batch) -> U64:
        """See `Index.replace`."""
        with self.handle.turns, self.handle.lock:
            options = self._fitting(batch, None)
            checked = checked_batch(batch, options, self.handle.recipe)
            if checked.keys is None and checked.ids is None:
                raise InvalidBatch(
                    "the batch to replace has neither ids nor keys", remedy="give a batch with "
                    "one of them"
                )
            require_names_of_skipped(checked, options)
            with WritingCall(self.handle, "replace") as writer:
                committer = writer.committer
                with committer.admitting(checked, options):
                    try:
                        ids = committer.replace(checked)
                    except StorageFull:
                        writer.make_room()
                        ids = committer.replace(checked)
                tally = self.handle.counts.replace
                tally.calls, tally.added = tally.calls + 1, tally.added + len(ids)
                return ids

    def delete(self, ids: Any, keys: Any) -> int:
        """See `Index.delete`."""
        with self.handle.turns, self.handle.lock:
            self.handle.check_may_change()
            if self.handle.undecided:
                names_of_any_kind(ids, keys, self._options)
                return 0
            checked_ids, checked_keys = checked_names(ids, keys, self._options)
            with WritingCall(self.handle, "delete") as writer:
                names = writer.committer.waiting.names(checked_ids, checked_keys)
                gone = writer.committer.delete(names)
                tally = self.handle.counts.delete
                tally.calls, tally.found = tally.calls + 1, tally.found + gone
                return gone

    def expire(self, older_than: Any) -> int:
        """See `Index.expire`."""
        with self.handle.turns, self.handle.lock:
            self.handle.check_may_change()
            before = checked_time(older_than, self._options)
            with WritingCall(self.handle, "expire") as writer:
                gone = writer.committer.expire(before)
                tally = self.handle.counts.expire
                tally.calls, tally.found = tally.calls + 1, tally.found + gone
                return gone

    def commit(self) -> None:
        """See `Index.commit`."""
        with self.handle.turns, self.handle.lock, WritingCall(self.handle, "commit") as writer:
            writer.commit()
            self.settling.expect(writer)

    def discard(self) -> None:
        """See `Index.discard`."""
        with self.handle.turns, self.handle.lock, WritingCall(self.handle, "discard") as writer:
            writer.committer.discard()

    def compact(
        self, full: bool, structures: Sequence[str] | None, progress: Progress | None
    ) -> None:
        """See `Index.compact`."""
        full = as_flag(full, "full")
        call = WritingCall(self.handle, "compact")
        with self.handle.turns, self.handle.lock, call as writer:
            self.handle.view.check_place()
            committer, report = writer.committer, call.reporting(progress)
            committer.hand_over()
            if structures is not None:
                wanted = checked_structures(structures)
                checked_designs(replace(self._options, structures=wanted))
            try:
                committer.commit()
            except StorageFull:
                writer.make_room()
                committer.commit()
            if full or structures is not None:
                writer.cancel_merges()  # of what is merged now, or changes
            else:
                writer.finish_merges(settle=False, progress=report)
            if structures is not None:
                # What is to go is not merged first, and what is to come is built once.
                kept = [name for name in self._options.structures if name in wanted]
                restructure(committer, kept if full else wanted)
            if full or structures is not None:
                committer.commit(seal_pending=True)
            if full:
                segments = committer.snapshot.segments
                for places in policy.fitting([len(segment) for segment in segments]):
                    inputs = [segments[place] for place in places]
                    later = committer.snapshot.tombstones.concerns(inputs[0])
                    if len(inputs) > 1 or later:
                        writer.compact(inputs, report)
            else:
                while inputs := writer.due(settling=structures is None):
                    writer.compact(inputs, report)
                fanout = self._options.min_merge or USUAL_FANOUT
                while runs := tombstone_runs.due(committer.snapshot, fanout):
                    tombstone_runs.compact(committer, runs)
            if full and structures is not None:
                restructure(committer, wanted)
            found = self.self_audit(committer.snapshot)
            if found is not None:
                from simindex.query import audit

                committer.set_value("audit", audit.encode(found))
                committer.commit()

    def ingest(
        self, batch: Batch | Any, named: Mapping[str, Any], asked: Mapping[str, Any]
    ) -> Matches:
        """See `Index.ingest`; `asked` are the options of the search of the index."""
        from simindex.query.search import THREADED_QUERIES
        from simindex.writing import ingestion

        started = time.perf_counter()
        with self.handle.turns, self.handle.lock:
            options = self._fitting(batch, named.get("keys"))
            checked = checked_batch(batch, options, self.handle.recipe, **named)
            answerer = self.handle.answerer
            recipe = self.handle.recipe or checked.recipe
            others = dict(asked)
            h, similarity, measure = map(others.pop, ("h", "similarity", "measure"))
            near = self.handle.nearness(h, similarity, asked["recall"], recipe, measure)
            question = answerer.question(**{**others, **near})
            if question.similar is not None:
                question = question.compared_by(options.sketch_bits)
            workers = thread_count(question.threads, len(checked), worth=THREADED_QUERIES)
            with WritingCall(self.handle, "ingest") as writer:
                committer = writer.committer
                writer.commit()
                try:
                    inside = ingestion.inside(
                        checked, question, threads=workers,
                        limit_bytes=question.memory_limit or answer_bytes(),
                    )
                    stored = answerer.search(
                        self.handle.view.current(), checked.rows, checked.weights, question,
                        taken=len(inside.row) * ingestion.MATCH_BYTES, sketches=checked.sketches,
                    )
                    with committer.admitting(checked, options):
                        ids = committer.append(checked)
                    found = ingestion.joined(
                        stored, inside, ids, checked.keys, first=question.first, started=started
                    )
                    seal = len(checked) >= ingestion.sealed_rows(self._options)
                    writer.commit(seal_pending=seal)
                    self.settling.expect(writer)
                except BaseException as error:
                    # Else nobody knows what is committed.
                    if foreseen(error) and not committer.waiting.empty:
                        committer.discard()
                    raise
                tally = self.handle.counts.ingest
                tally.calls, tally.asked = tally.calls + 1, tally.asked + len(checked)
                tally.found, tally.added = tally.found + len(found), tally.added + len(ids)
                return found

    # -- what is measured --------------------------------------------------------------------------

    def check_may_keep(self) -> None:
        """Refuses, before it is measured, what the next commit would not store."""
        self.handle.check_open()
        if self.handle.writer is not None:
            with self.handle.turns, self.handle.lock:
                self.handle.check_may_change()

    def keep(self, call: str, name: str, payload: bytes) -> None:
        """Has a writer's next commit store what a call has measured."""
        if self.handle.writer is not None:
            with self.handle.turns, self.handle.lock, WritingCall(self.handle, call) as writer:
                writer.committer.set_value(name, payload)

    def self_audit(self, snapshot: Snapshot, *, h: int | None = None) -> Audit | None:
        """Measures the recall if the index has changed much since the last audit.

        None for an index that is small or knows no weights, without a planner. What damage
        prevents is left out with a warning: the caller's own work is done.
        """
        if snapshot.stored_rows < SELF_AUDIT_ROWS:
            return None
        usual_h = self.handle.radius(None, self.handle.recipe)
        try:
            if not len(snapshot.reservoir):
                return None
            return self.handle.answerer.self_audit(snapshot, h=h, usual_h=usual_h)
        except (CorruptFile, OSError) as error:
            if raised_by_a_handler(error):
                raise
            log.warning("the recall was not measured: %s", error)
            return None

    # -- what is left ------------------------------------------------------------------------------

    def strays(self) -> list[Finding]:
        """Files that are not part of the index, nor about to become one by this handle."""
        from simindex.repair.check import strays

        handle, writer = self.handle, self.handle.writing()

        def found() -> list[Finding]:
            return strays(handle.path, handle.catalog, handle.view.current())

        with handle.turns, handle.lock:
            before = found()
            running = writer.merges.running
        wait_for(running)  # without the lock; what they are writing has no final name yet
        with handle.turns, handle.lock:
            after = found()
            unfinished = writer.uninstalled
        return [one for one in before if one in after and Path(one.path).name not in unfinished]
