"""What changes an index: rows come and go, commits make it so, merges keep segments few.

The methods are those of `Index`, which says what they promise. Each runs under the handle's lock.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from simindex.errors import CorruptFile, InvalidBatch, SimindexError, raised_by_a_handler
from simindex.index.deadline import Deadline
from simindex.index.settling import Settling
from simindex.index.writing_call import WritingCall, foreseen
from simindex.memory import answer_bytes
from simindex.options import IndexOptions, as_flag, checked_structures
from simindex.query.search import THREADED_QUERIES
from simindex.records.batch import Batch
from simindex.storage.segmentfiles import checked_designs
from simindex.threads import thread_count
from simindex.writing import ingestion, policy, tombstone_runs
from simindex.writing.admission import (
    check_recipe,
    checked_batch,
    checked_document,
    checked_names,
    kind_of_keys,
    names_of_any_kind,
)
from simindex.writing.expiry import checked_time
from simindex.writing.merges import wait_for
from simindex.writing.recent import check_commit_s, nearer, nearest
from simindex.writing.restructuring import restructure

if TYPE_CHECKING:
    from simindex.arrays import U32, U64
    from simindex.index.handle import Handle
    from simindex.planning.question import Question
    from simindex.records.matches import Match, Matches
    from simindex.records.reports import Audit, Finding, Progress
    from simindex.simhash.recipe import Recipe
    from simindex.storage.snapshot import Snapshot
    from simindex.writing.committer import Committer

USUAL_FANOUT = 8
"""Files of tombstones of about one size that `compact` merges where commits merge none."""

RETRY_S = 5.0
"""After a commit that nobody waits for has failed, as on a full disk, until it is tried again."""

BRIEF_S = 0.0005
"""To fingerprint and ask a document so fast is part of a thread's turn; what takes longer, such as
to read from a disk, leaves the interpreter's lock to others for most of that time."""

SLOW_CALLS, APART_CALLS = 4, 1000
"""After so many slow calls in a row, so many fingerprint and ask their documents before their turn.
"""

log: logging.Logger = logging.getLogger(__package__)


class _Asked(NamedTuple):
    """A document that `seen_or_add` is to add unless it is near a row."""

    document: Batch
    near: Question
    """What is near enough."""
    commit_s: float | None
    options: IndexOptions
    """With the kind of keys that this document would bring."""
    recipe: Recipe | None
    snapshot: Snapshot
    found: Match | None
    """The nearest row of the snapshot within h."""


def _fitting(
    committer: Committer, options: IndexOptions, given: Any, keys: Any
) -> IndexOptions:
    kind = kind_of_keys(given, keys) if options.keys is None else None
    if kind and committer.may_take_keys:
        options = replace(options, keys=kind)
    sketch_bits = given.sketch_bits if isinstance(given, Batch) else 0
    if sketch_bits and committer.may_take_sketches:
        options = replace(options, sketch_bits=sketch_bits)
    return options


def _open_choices(options: IndexOptions) -> tuple[Any, int]:
    """What the first rows decide where the options leave it open."""
    return options.keys, options.sketch_bits


class Changes:
    """Of one handle; one that was opened for reading refuses them."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self._deadline = Deadline(self._commit_added)
        self._settling = Settling(handle)
        self._seen = handle.counts.seen_or_add
        self._slow = self._apart = 0
        """Slow calls of `seen_or_add` in a row; calls to come that ask before their turn."""

    @property
    def _options(self) -> IndexOptions:
        return self.handle.options

    def leave(self) -> None:
        """What leaving a ``with`` block cleanly does before it closes the handle."""
        handle = self.handle
        if handle.writer is not None and not handle.closed:
            with handle.turns, handle.lock, WritingCall(handle, "commit") as writer:
                writer.commit()
                self._settling.leave(writer)

    def _fitting(self, given: Any, keys: Any) -> IndexOptions:
        """The options; with the kind of keys and the width of sketches of the first rows, where
        they leave them open.

        `given` is a batch, or comes with its `keys`. Under the lock.
        """
        return _fitting(self.handle.check_may_change().committer, self._options, given, keys)

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
                ids = committer.admitted(
                    checked, options,
                    lambda batch: writer.given_space(committer.append, batch, times),
                )
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
            with WritingCall(self.handle, "replace") as writer:
                committer = writer.committer
                ids = committer.admitted(
                    checked, options, lambda batch: writer.given_space(committer.replace, batch)
                )
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
            self._settling.expect(writer)

    def discard(self) -> None:
        """See `Index.discard`."""
        with self.handle.turns, self.handle.lock, WritingCall(self.handle, "discard") as writer:
            writer.committer.discard()

    def compact(
        self, full: bool, structures: Sequence[str] | None, progress: Progress | None
    ) -> None:
        """See `Index.compact`."""
        from simindex.query import audit

        full = as_flag(full, "full")
        call = WritingCall(self.handle, "compact")
        with self.handle.turns, self.handle.lock, call as writer:
            self.handle.view.check_place()
            committer, report = writer.committer, call.reporting(progress)
            committer.hand_over()
            if structures is not None:
                wanted = checked_structures(structures)
                checked_designs(replace(self._options, structures=wanted))
            writer.given_space(committer.commit)
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
                committer.set_value("audit", audit.encode(found))
                committer.commit()

    def ingest(
        self, batch: Batch | Any, named: Mapping[str, Any], asked: Mapping[str, Any]
    ) -> Matches:
        """See `Index.ingest`; `asked` are the options of the search of the index."""
        started = time.perf_counter()
        with self.handle.turns, self.handle.lock:
            options = self._fitting(batch, named.get("keys"))
            checked = checked_batch(batch, options, self.handle.recipe, **named)
            answerer = self.handle.answerer
            recipe = self.handle.recipe or checked.recipe
            near = self.handle.nearness(asked["h"], asked["similarity"], asked["recall"], recipe)
            others = {name: value for name, value in asked.items() if name != "similarity"}
            question = answerer.question(**{**others, **near})
            if question.similar is not None:
                question = self._for_rows(question, options)
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
                        taken=len(inside.row) * ingestion.MATCH_BYTES, sketches=checked.sketch,
                    )
                    ids = committer.admitted(checked, options, committer.append)
                    found = ingestion.joined(
                        stored, inside, ids, checked.keys, first=question.first, started=started
                    )
                    seal = len(checked) >= ingestion.sealed_rows(self._options)
                    writer.commit(seal_pending=seal)
                    self._settling.expect(writer)
                except BaseException as error:
                    # Else nobody knows what is committed.
                    if foreseen(error) and not committer.waiting.empty:
                        committer.discard()
                    raise
                tally = self.handle.counts.ingest
                tally.calls, tally.asked = tally.calls + 1, tally.asked + len(checked)
                tally.found, tally.added = tally.found + len(found), tally.added + len(ids)
                return found

    def seen_or_add(
        self, given: str | bytes | Batch, key: Any, h: int | None, similarity: float | None,
        recall: float, commit_s: float | None,
    ) -> Match | None:
        """See `Index.seen_or_add`."""
        if self._apart:  # what takes long runs side by side
            self._apart -= 1
            return self._added(self._asked(given, key, h, similarity, recall, commit_s))
        with self.handle.turns:
            began = time.monotonic()
            asked = self._asked(given, key, h, similarity, recall, commit_s)
            self._slow = self._slow + 1 if time.monotonic() - began > BRIEF_S else 0
            if self._slow >= SLOW_CALLS:
                self._apart = APART_CALLS
            return self._added(asked)

    def _asked(
        self, given: str | bytes | Batch, key: Any, h: int | None, similarity: float | None,
        recall: float, commit_s: float | None,
    ) -> _Asked | None:
        """The document with what is nearest in the last commit; None without a fingerprint."""
        self.handle.writing()
        check_commit_s(commit_s)
        options, recipe = self._options, self.handle.recipe
        if recipe is None or options.keys is None:
            with self.handle.turns, self.handle.lock:
                options, recipe = self._fitting(given, [key]), self.handle.recipe
                if isinstance(given, (str, bytes)):
                    recipe = self.handle.recipe_of_texts()
        answerer, brought = self.handle.answerer, getattr(given, "recipe", None)
        # An index without rows may take this recipe from another thread before this call looks.
        near = answerer.question(
            **self.handle.nearness(h, similarity, recall, recipe or brought), first=True, threads=1
        )
        if near.similar is not None:
            near = self._for_rows(near, options)
        document = checked_document(given, key, options, recipe)
        if document is None:
            return None
        snapshot = self.handle.view.current()
        found = nearest(answerer, snapshot, document, near)
        return _Asked(document, near, commit_s, options, recipe, snapshot, found)

    def _added(self, asked: _Asked | None) -> Match | None:
        """The nearest of all rows; the document is added if there is none."""
        if asked is None:
            return None
        document, near, commit_s, options, recipe, snapshot, found = asked
        with self.handle.turns, self.handle.lock, WritingCall(self.handle, "seen_or_add") as writer:
            committer = writer.committer
            if not committer.waiting.empty or committer.recent.due(commit_s):
                writer.commit()
                self._settling.expect(writer)
            if committer.waiting.since.generation != snapshot.head.generation:
                snapshot = self.handle.view.current()
                found = nearest(self.handle.answerer, snapshot, document, near)
            found = nearer(found, committer.recent.nearest(document, near))
            if found is None:
                decides = _open_choices(options) != _open_choices(self._options)
                if decides:
                    now = _fitting(committer, self._options, document, None)
                    if _open_choices(now) != _open_choices(options):  # another thread was first
                        checked_document(document, None, self._options, recipe)
                add = partial(committer.add_recent, commit_s=commit_s)
                if decides or (self.handle.recipe is None and document.recipe is not None):
                    committer.admitted(document, options, add)
                else:
                    if self.handle.recipe is not recipe:
                        check_recipe(document.recipe, self.handle.recipe)
                    add(document)
                if committer.recent.due_at < inf:
                    self._deadline.expect(committer.recent.due_at)
                self._seen.added += 1
            else:
                self._seen.found += 1
            return found

    @staticmethod
    def _for_rows(question: Question, options: IndexOptions) -> Question:
        """The question by a similarity for rows of these options, whose first rows may decide if
        there are sketches."""
        asked = question.similar
        assert asked is not None
        if asked.sketch_bits == options.sketch_bits:
            return question
        return replace(question, similar=asked.compared_by(options.sketch_bits))

    def _commit_added(self) -> None:
        """Commits what `seen_or_add` has added, once it has waited long enough."""
        handle = self.handle
        with handle.turns, handle.lock:
            self._deadline.reached()
            if handle.closed or handle.writer is None or handle.note is not None:
                return
            committer = handle.writer.committer
            due = committer.due_at
            if committer.failed is not None:
                return
            if due <= time.monotonic():
                try:
                    with WritingCall(handle, "seen_or_add") as writer:
                        writer.commit()
                        self._settling.expect(writer)
                    return
                except (SimindexError, OSError, MemoryError) as error:
                    if committer.failed is not None:
                        log.warning(
                            "%s cannot be changed by this handle any more, and what it had not "
                            "committed may be lost; open the index again, and add these documents "
                            "again: %s", handle.path, error,
                        )
                        return
                    log.warning(
                        "%s was not committed, and will be tried again: %s", handle.path, error
                    )
                    due = time.monotonic() + RETRY_S
            if due < inf:
                self._deadline.expect(due)

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

        What damage prevents is left out with a warning: the caller's own work is done.
        """
        usual_h = self.handle.radius(None, self.handle.recipe)
        try:
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

        handle, writer = self.handle, self.handle.writer

        def found() -> list[Finding]:
            return strays(handle.path, handle.catalog, handle.view.current())

        if writer is None:
            return found()
        with handle.turns, handle.lock:
            before = found()
            running = writer.merges.running
        wait_for(running)  # without the lock; what they are writing has no final name yet
        with handle.turns, handle.lock:
            after = found()
            unfinished = writer.uninstalled
        return [one for one in before if one in after and Path(one.path).name not in unfinished]
