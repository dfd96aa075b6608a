"""Documents that come one at a time: each is compared with all rows, and added if it is near none.

    asked      what is nearest in the last commit, before or within the caller's turn
    added      under the lock: what came since is compared, too; the document waits for a commit
    committed  by the next change, or once it has waited for `commit_s`

`Index.seen_or_add` says what it promises.
"""

from __future__ import annotations

import logging
import time
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from simindex.errors import SimindexError
from simindex.index.deadline import Deadline
from simindex.index.kernel_arrivals import KernelArrivals, Left, Near
from simindex.index.writing_call import WritingCall
from simindex.options import IndexOptions
from simindex.records.batch import Batch
from simindex.writing.admission import check_recipe, checked_document
from simindex.writing.recent import checked_commit_s, nearer, nearest

if TYPE_CHECKING:
    from simindex.index.handle import Handle
    from simindex.index.settling import Settling
    from simindex.planning.question import Question
    from simindex.records.matches import Match
    from simindex.simhash.recipe import Recipe
    from simindex.storage.snapshot import Snapshot

RETRY_S = 5.0
"""After a commit that nobody waits for has failed, as on a full disk, until it is tried again."""

BRIEF_S = 0.0005
"""To fingerprint and ask a document so fast is part of a thread's turn; what takes longer, such as
to read from a disk, leaves the interpreter's lock to others for most of that time."""

SLOW_CALLS, APART_CALLS = 4, 1000
"""After so many slow calls in a row, so many fingerprint and ask their documents before their turn.
"""

ALONE_CALLS = 16
"""So many calls run beside no other once one has taken the usual way, which holds the lock."""

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


def _open_choices(options: IndexOptions) -> tuple[Any, int]:
    """What the first rows decide where the options leave it open."""
    return options.keys, options.sketch_bits


class Arrivals:
    """Of one handle."""

    def __init__(self, handle: Handle, settling: Settling) -> None:
        self.handle = handle
        self._settling = settling
        self._deadline = Deadline(self._commit_added)
        self._seen = handle.counts.seen_or_add
        self._texts = KernelArrivals(handle, self._deadline, self._seen)
        self._slow = self._apart = 0
        """Slow calls of `seen_or_add` in a row; calls to come that ask before their turn."""
        self._alone = 0
        """Calls to come that run beside no other."""

    @property
    def _options(self) -> IndexOptions:
        return self.handle.options

    def seen_or_add(
        self, given: str | bytes | Batch, key: Any, near: Near, measure: str,
        commit_s: float | None,
    ) -> Match | None:
        """See `Index.seen_or_add`."""
        if self._apart:  # what takes long runs side by side
            self._apart -= 1
            return self._added(self._asked(given, key, near, measure, commit_s))
        turns = self.handle.turns
        with turns if self._alone else turns.beside as accompanied:
            began = time.monotonic()
            asked: _Asked | None = None
            found = self._texts.found(
                given, key, near, measure, commit_s, accompanied=bool(accompanied)
            )
            if isinstance(found, Left):
                self._alone = ALONE_CALLS
                asked, found = self._asked(*found, near, measure, commit_s), None
            elif self._alone:
                self._alone -= 1
            self._slow = self._slow + 1 if time.monotonic() - began > BRIEF_S else 0
            if self._slow >= SLOW_CALLS:
                self._apart = APART_CALLS
            return found if asked is None else self._added(asked)

    def _asked(
        self, given: str | bytes | Batch, key: Any, near: Near, measure: str,
        commit_s: float | None,
    ) -> _Asked | None:
        """The document with what is nearest in the last commit; None without a fingerprint."""
        self.handle.writing()
        commit_s = checked_commit_s(commit_s)
        options, recipe = self._options, self.handle.recipe
        if recipe is None or options.keys is None:
            with self.handle.turns, self.handle.lock:
                options, recipe = self.handle.check_may_change().committer.fitting(
                    self._options, given, [key]
                ), self.handle.recipe
                if isinstance(given, (str, bytes)):
                    recipe = self.handle.recipe_of_texts()
        answerer, brought = self.handle.answerer, getattr(given, "recipe", None)
        # An index without rows may take this recipe from another thread before this call looks.
        question = answerer.question(
            **self.handle.nearness(*near, recipe or brought, measure), first=True, threads=1
        )
        if question.similar is not None:
            question = question.compared_by(options.sketch_bits)
        document = checked_document(given, key, options, recipe)
        if document is None:
            return None
        snapshot = self.handle.view.current()
        found = nearest(answerer, snapshot, document, question)
        return _Asked(document, question, commit_s, options, recipe, snapshot, found)

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
                    now = committer.fitting(self._options, document, None)
                    if _open_choices(now) != _open_choices(options):  # another thread was first
                        checked_document(document, None, self._options, recipe)
                if decides or (self.handle.recipe is None and document.recipe is not None):
                    with committer.admitting(document, options):
                        committer.add_recent(document, commit_s)
                else:
                    if self.handle.recipe is not recipe:
                        check_recipe(document.recipe, self.handle.recipe)
                    committer.add_recent(document, commit_s)
                if committer.recent.due_at < inf:
                    self._deadline.expect(committer.recent.due_at)
                self._seen.added += 1
            else:
                self._seen.found += 1
            return found

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
