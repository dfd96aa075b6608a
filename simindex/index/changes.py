"""What changes an index: rows come and go, commits make it so, merges keep segments few."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar

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
from simindex.options import as_flag, checked_structures
from simindex.query import audit
from simindex.query.search import THREADED_QUERIES
from simindex.records.batch import Batch, as_ids
from simindex.records.matches import Match, Matches
from simindex.records.reports import Audit, Progress
from simindex.storage.files.refusals import typed
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.designs import checked_designs
from simindex.threads import thread_count
from simindex.writing import ingestion, policy
from simindex.writing.admission import check_recipe, checked_batch, checked_keys
from simindex.writing.merges import put_off
from simindex.writing.recent import admitted, check_commit_s, nearer, nearest
from simindex.writing.writer import Writer

Result = TypeVar("Result")

USUAL_FANOUT = 8
"""Segments of about one size that `compact` merges where commits merge none (min_merge=0)."""

log = logging.getLogger("simindex")


class WritableHandle(Handle):
    """A handle that may change its index; one opened for reading refuses to."""

    def __enter__(self) -> Self:
        return self

    @typed
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None and self._writer is not None and not self._closed:
                with self._lock, Changing(self, "commit") as writer:
                    self._commit(writer)
                    self._finish_merges(start=True)
        finally:
            self.close()

    @typed
    def append(
        self,
        batch: Batch | Any,
        *,
        ids: Any = None,
        keys: Any = None,
        weights: Any = None,
    ) -> U64:
        """Buffers rows; `commit` makes them durable and visible.

        Parameters
        ----------
        batch : Batch, or uint64 (n,) or (n, W)
            Plain fingerprints may be given with ids, keys and weights beside them.

        Returns
        -------
        uint64 (n,)
            The rows' ids: those given, those of the keys, or numbers in order of appending.

        Raises
        ------
        InvalidBatch, RecipeMismatch
            If the batch does not fit the index; nothing of it is kept.

        Notes
        -----
        Every `batch_rows` rows are written to a file at once, so memory does not grow.
        """
        with self._lock:
            self._changing()
            checked = checked_batch(
                batch, self.options, self._recipe, ids=ids, keys=keys, weights=weights
            )
            with Changing(self, "append") as writer:
                self._hand_over(writer)
                self._adopt_recipe(writer, checked)
                return self._given_space(lambda: writer.append(checked))

    @typed
    def replace(self, batch: Batch) -> U64:
        """Deletes all rows of the batch's ids or keys, then appends the batch.

        Both become durable and visible in one commit. Rows that wait for a commit are deleted, too,
        so the last of several replacements counts. A batch may name several rows by one key.

        Returns uint64 (n,) ids. Raises InvalidBatch if the batch names its rows by nothing, or as
        `append` does.
        """
        with self._lock:
            self._changing()
            checked = checked_batch(batch, self.options, self._recipe)
            if checked.keys is None and checked.ids is None:
                raise InvalidBatch("a replacement needs ids or keys")
            with Changing(self, "replace") as writer:
                self._hand_over(writer)
                self._adopt_recipe(writer, checked)
                return self._given_space(lambda: writer.replace(checked))

    @typed
    def delete(self, *, ids: Any = None, keys: Any = None) -> int:
        """Buffers the deletion of all rows of some ids, or of some keys, that came before.

        Rows that wait for a commit are deleted, too; rows that are appended later stay. Returns how
        many ids or keys were given; rows are not looked up, so the cost is that of the list.
        `commit` makes it durable.
        """
        with self._lock:
            self._changing()
            if (ids is None) == (keys is None):
                raise InvalidBatch("give ids or keys to delete")
            if self.options.keyed and keys is None:
                raise InvalidBatch("this index has keys: give keys=")
            if not self.options.keyed and ids is None:
                raise InvalidBatch("this index has no keys: give ids=")
            checked_ids = None if ids is None else as_ids(ids, None)
            checked = None if keys is None else checked_keys(keys, self.options)
            with Changing(self, "delete") as writer:
                self._hand_over(writer)
                return writer.delete(checked_ids, checked)

    @typed
    def commit(self) -> None:
        """Makes all since the last commit durable and visible, all or nothing.

        Segments that become too many are merged by threads beside the work, and what these have
        ended is installed by a later commit. A commit waits for merges that are late, in general no
        longer than it takes itself.

        Raises
        ------
        StorageFull
            Nothing is changed or lost; free some space and commit again.
        CommitFailed
            The outcome is unknown; the handle stops writing, and the index, opened anew, holds
            either this commit or the one before.
        """
        with self._lock, Changing(self, "commit") as writer:
            self._commit(writer)

    def _commit(self, writer: Writer, *, seal_pending: bool = False) -> None:
        self._hand_over(writer)
        if writer.changed:
            self._view.check_place()
            writer.keep_pace()
        changed = self._given_space(lambda: writer.commit(seal_pending=seal_pending))
        try:
            if writer.install_merges(whole=False) or changed:
                writer.start_merges()
            writer.release_retired()
        except (ClosedIndex, CorruptFile, OSError, MemoryError) as error:
            put_off(error)  # what is committed stays so: it is not for the caller to repeat

    def _given_space(self, work: Callable[[], Result]) -> Result:
        """What `work` returns; on a full disk it is tried again without the files of merges."""
        try:
            return work()
        except StorageFull:
            writer = self._writing()
            if not writer.merging:
                raise
            writer.cancel_merges()
        return work()

    def _finish_merges(self, *, start: bool) -> None:
        """Waits for the merges that run and installs them; with `start`, until none is due."""
        writer = self._writing()
        while writer.await_merges():
            if writer.install_merges(whole=True) and start:
                writer.start_merges()
            writer.release_retired()

    @typed
    def compact(
        self,
        *,
        full: bool = False,
        structures: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Commits, then merges segments that are too many; `full` merges all into one, or into
        as few as their row numbers allow.

        Merges that run are waited for and installed; `full` and `structures` give them up.

        Parameters
        ----------
        structures : sequence of str, optional
            What each segment carries from now on, as `IndexOptions.structures`. Permuted tables
            and slice lists that are missing or damaged are built, those not named are dropped, in
            one commit.

        Raises
        ------
        InvalidOption
            If a name is no structure, or a design does not fit the width; nothing has changed then.
            Also if `progress` changes or closes the index; it may query.
        CorruptFile
            If rows that are to be merged are damaged; they stay as they were.

        Notes
        -----
        Dead rows of the merged segments are dropped and their space is given back. While it runs,
        old and new files stand side by side. Memory is bounded, that of slice lists by the option
        `slice_memory`, but for permuted tables: they are sorted one at a time in memory, 8 bytes a
        row of 64 bits.
        """
        full = as_flag(full, "full")
        changing = Changing(self, "compact")
        with self._lock, changing as writer:
            self._view.check_place()
            self._compact(writer, full, structures, changing.reporting(progress))

    def _compact(
        self, writer: Writer, full: bool, structures: Sequence[str] | None,
        progress: Progress | None,
    ) -> None:
        self._hand_over(writer)
        if structures is not None:
            wanted = checked_structures(structures)
            checked_designs(replace(self.options, structures=wanted))
        self._given_space(writer.commit)
        if full or structures is not None:
            writer.cancel_merges()  # of what is merged now, or changes
        else:
            self._finish_merges(start=False)
        if structures is not None:
            # What is to go is not merged first, and what is to come is built once.
            kept = [name for name in self.options.structures if name in wanted]
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
            fanout = self.options.min_merge or USUAL_FANOUT
            while inputs := writer.due(fanout):
                writer.compact(inputs, progress)
        if full and structures is not None:
            writer.restructure(wanted)
        found = self._self_audit(writer.snapshot)
        if found is not None:
            writer.set_value("audit", audit.encode(found))
            writer.commit()

    @typed
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
        """Matches of a batch in the index and in itself; then the batch is in the index.

        The answer is what asking and adding its rows one after the other would give: row i matches
        the stored rows within h, and the rows of the batch before it.

        Parameters
        ----------
        batch : Batch, or uint64 (m,) or (m, W)
            As `append` takes it, with ids, keys and weights beside plain fingerprints.
        recall : float
            Of the matches in the index, as in `query`; those within the batch are all found.
        first : bool
            At most one match a row; a row with a match in the index gets none within the batch.
        memory_limit : int, optional
            Of the search of the index, as in `query`.

        Returns
        -------
        Matches
            As of `query`; `id` and `keys()` name rows of the batch, too. Its stats tell of the
            search of the index.

        Raises
        ------
        InvalidBatch, RecipeMismatch, InvalidOption
            If the batch does not fit the index, or an option is out of range. Also if the batch has
            more than 134 million matches within itself; ask for the first ones then.
        StorageFull, CommitFailed
            As `commit`. Nothing of the batch is kept after any error but CommitFailed; after that
            one, and after an interrupt while it is committed, the index opened anew holds all of it
            or nothing.

        Notes
        -----
        What is buffered is committed first, by a commit of its own: it is matched, too. Then one
        commit makes the batch durable and visible. Other threads that write wait meanwhile.
        Source: [PSM] section 5, batch mode, PSMA or PSMF.
        """
        started = time.perf_counter()
        first = as_flag(first, "first")
        with self._lock:
            self._changing()
            checked = checked_batch(
                batch, self.options, self._recipe, ids=ids, keys=keys, weights=weights
            )
            answerer = self._answerer
            question = answerer.question(
                h=h, first=first, recall=recall, method=method, memory_limit=memory_limit,
                threads=threads,
            )
            workers = thread_count(threads, len(checked), worth=THREADED_QUERIES)
            with Changing(self, "ingest") as writer:
                self._commit(writer)
                try:
                    self._adopt_recipe(writer, checked)
                    inside = ingestion.within(checked.rows, h, first=first, threads=workers)
                    stored = answerer.search(
                        self._current(), checked.rows, checked.weights, question
                    )
                    found = ingestion.joined(
                        stored, inside, writer.append(checked), checked.keys, first=first,
                        started=started,
                    )
                    seal = len(checked) >= ingestion.sealed_rows(self.options)
                    self._commit(writer, seal_pending=seal)
                except BaseException as error:
                    if foreseen(error) and writer.changed:  # else nobody knows what is committed
                        writer.discard()
                    raise
                return found

    @typed
    def seen_or_add(
        self,
        text_or_batch: str | bytes | Batch,
        key: Any = None,
        *,
        h: int = 3,
        recall: float = 1.0,
        commit_s: float | None = 5.0,
    ) -> Match | None:
        """A row within h of one document; if there is none, the document is added.

        Safe from many threads: of two that bring the same page at once, one adds it.

        Parameters
        ----------
        text_or_batch : str, bytes or Batch
            A text, which the index's recipe makes a fingerprint of, or a batch of one.
        key : str, bytes or int, optional
            Its key, or its id in an index without keys, unless the batch has it.
        commit_s : float, optional
            A row that has waited so long for a commit gets one at the next call; None leaves
            commits to the caller, and to the number of rows, see below.

        Returns
        -------
        Match, or None
            A nearest row, and nothing was added; or None and the document was added, unless it is a
            text without a fingerprint, which is near nothing and is not kept.

        Raises
        ------
        InvalidBatch, RecipeMismatch, InvalidOption
            If the document does not fit the index, or an option is out of range.
        StorageFull, CommitFailed
            As `commit`, before this document is added: once there is space, call again with it.

        Notes
        -----
        Rows added are seen by later calls at once; by queries, and after a crash, from the next
        commit on. That comes with `commit`, a clean exit, `commit_s`, or 65,536 rows of 64 bits
        (fewer where rows are wider or segments smaller). What `append`, `replace` and `delete` have
        buffered is committed first.
        """
        self._writing()
        check_commit_s(commit_s)
        self._answerer.question(h=h, recall=recall)
        recipe = self._recipe
        document = admitted(text_or_batch, key, self.options, recipe)
        if document is None:
            return None
        snapshot = self._current()
        found = self._nearest(snapshot, document, h, recall)
        with self._lock, Changing(self, "seen_or_add") as writer:
            if writer.changed or self._recent.due(commit_s):
                self._commit(writer)
            if writer.generation != snapshot.head.generation:
                found = self._nearest(self._current(), document, h, recall)
            found = nearer(found, self._recent.nearest(document.rows, h))
            if found is None:
                if self._recipe is not recipe:
                    check_recipe(document.recipe, self._recipe)
                elif recipe is None and document.recipe is not None:
                    self._hand_over(writer)
                    self._adopt_recipe(writer, document)
                self._recent.add(document, writer.appended + len(self._recent))
            return found

    def _nearest(
        self, snapshot: Snapshot, document: Batch, h: int, recall: float
    ) -> Match | None:
        answerer = self._answerer

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
        if self._recipe is None and batch.recipe is not None:
            if writer.appended:
                raise RecipeMismatch(
                    "the index's rows were appended without a recipe, this batch has one: "
                    "append its fingerprints alone if they are alike",
                    differences={"recipe": (repr(batch.recipe), None)},
                )
            writer.adopt(batch.recipe)

    def _self_audit(self, snapshot: Snapshot, *, h: int | None = None) -> Audit | None:
        """Measures the recall if the last audit tells of another index.

        What damage prevents is left out with a warning: the caller's own work is done.
        """
        try:
            return self._answerer.self_audit(snapshot, h=h)
        except (CorruptFile, OSError) as error:
            if raised_by_a_handler(error):
                raise
            log.warning("the recall was not measured: %s", error)
            return None

    def _check_may_keep(self) -> None:
        """Refuses, before it is measured, what the next commit would not store."""
        self._check_open()
        if self._writer is not None:
            with self._lock:
                self._changing()

    def _keep(self, found: Audit) -> None:
        if self._writer is not None:
            with self._lock, Changing(self, "audit") as writer:
                writer.set_value("audit", audit.encode(found))
