"""The index: open it, append to it, ask it. Everything a user holds.

One writer, any number of readers, in any processes. A call sees one commit throughout; the next
call follows new commits by itself.
"""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Literal

from simindex import auditing, compaction, creation
from simindex.admission import check_recipe, checked_batch, checked_keys
from simindex.answering import Answerer
from simindex.calibration import Calibration
from simindex.check import check
from simindex.clustering import Clusters
from simindex.compaction import Progress
from simindex.designs import checked_designs
from simindex.errors import (
    ClosedIndex,
    CorruptFile,
    IndexExists,
    InvalidBatch,
    ReadOnlyIndex,
    RecipeMismatch,
)
from simindex.explanation import Explanation
from simindex.index_clusters import index_clusters
from simindex.index_pairs import index_pairs
from simindex.machine import measure
from simindex.model import Machine
from simindex.opening import check_agreement, checked_call, translated
from simindex.options import IndexOptions, checked_structures
from simindex.records import (
    F32,
    U64,
    Audit,
    Batch,
    Finding,
    IndexStats,
    Matches,
    Pairs,
    as_fingerprints,
    as_ids,
)
from simindex.simhash.fingerprint import Recipe
from simindex.snapshot import Snapshot, live_rows, take
from simindex.statistics import gather
from simindex.storage import format as durable
from simindex.storage.catalog import Catalog, pack, unpack
from simindex.storage.environment import acquire, release
from simindex.writer import Writer

Mode = Literal["r", "w", "c", "n"]

USUAL_FANOUT = 8
"""Segments of about one size that `compact` merges where commits merge none (min_merge=0)."""

log = logging.getLogger("simindex")

_handles: weakref.WeakSet[Index] = weakref.WeakSet()


def open(
    path: str | os.PathLike[str],
    mode: Mode = "r",
    *,
    options: IndexOptions | None = None,
    overwrite: bool = False,
    refresh: bool = True,
) -> Index:
    """An index directory, opened as dbm files are.

    Parameters
    ----------
    mode : str
        ``"r"`` reads an index and creates nothing; ``"w"`` writes one that exists; ``"c"`` writes
        one, creating it if there is none; ``"n"`` creates one, and keeps one that exists unless
        `overwrite` is given.
    options : IndexOptions
        For an index that is created. For one that exists they must agree with its own.
    refresh : bool
        Whether a reader's calls follow new commits by themselves. False pins the commit it was
        opened at until `Index.refresh` is called.

    Raises
    ------
    IndexNotFound, IndexExists, IndexLocked
        As the mode meets no index, one it must keep, or another writer.
    CorruptFile, FormatTooOld, FormatTooNew
        If the index is damaged or of another version.
    InvalidOption
        If options differ from the stored ones; carries the differences.

    Notes
    -----
    Maps files and reads the catalog's head; no row is read, so the cost does not grow with them.
    """
    directory = checked_call(path, mode, options)
    if mode == "n" or (mode == "c" and not creation.exists(directory)):
        try:
            with translated(directory, True):
                creation.create(
                    directory, options or IndexOptions(), overwrite=overwrite and mode == "n"
                )
        except IndexExists:
            if mode == "n" or not creation.exists(directory):
                raise
    return Index(directory, mode, options=options, refresh=refresh)


class Index:
    """A handle on an index directory; `simindex.open` makes it.

    As a context manager a writer commits on a clean exit and discards on an exception. Queries may
    come from many threads at once. A handle does not survive a fork; it pickles as its path and is
    opened for reading where it is unpickled.
    """

    def __init__(
        self,
        path: Path,
        mode: Mode = "r",
        *,
        options: IndexOptions | None = None,
        refresh: bool = True,
    ) -> None:
        path = path.absolute()  # so that it outlives a change of the working directory
        self.path, self.mode = path, mode
        self._closed = True
        self._pinned = mode == "r" and not refresh
        self._pid = os.getpid()
        self._lock = RLock()
        self._writer: Writer | None = None
        writable = mode != "r"
        self._uuid = durable.read_format(path)
        for name in ("catalog", "segments"):
            if (path / name).is_symlink():
                raise CorruptFile(f"{path / name} is a link, no directory", path=str(path / name))
        with translated(path, writable):
            self._environment = acquire(path / "catalog", writable=writable)
        try:
            self._catalog = Catalog(self._environment)
            self.options = self._read_options(options)
            durable.check_storage(path, allow_remote=self.options.allow_remote)
            if writable:
                with translated(path, writable):
                    self._writer = Writer(
                        path, self._catalog, index=self._uuid, options=self.options
                    )
            self._snapshot = self._take(None)
            self._answerer = Answerer(self._catalog, self.options)
        except BaseException:
            if self._writer is not None:
                self._writer.close()
            release(self._environment)
            raise
        self._closed = False
        _handles.add(self)

    # -- life --------------------------------------------------------------------------------------

    def _read_options(self, asked: IndexOptions | None) -> IndexOptions:
        with self._catalog.reading() as reading:
            _, head = reading.head()
            stored = reading.value(head, "options")
            self._options_crc = head.values.get("options")
            recipe = reading.value(head, "recipe")
        options = IndexOptions.from_dict(unpack("options", stored or b"\x80"))
        self._recipe = Recipe.from_bytes(recipe) if recipe is not None else None
        if asked is not None:
            check_agreement(self.path, options, self._recipe, asked)
        return options

    def _take(self, before: Snapshot | None) -> Snapshot:
        return take(
            self._catalog, self.path / "segments", index=self._uuid, options=self.options,
            before=before,
        )

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None and self._writer is not None and not self._closed:
                self.commit()
        finally:
            self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (str(self.path), "r"))

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"mode {self.mode!r}"
        return f"<simindex.Index {str(self.path)!r}, {state}>"

    def close(self) -> None:
        """Closes the handle; what a writer has not committed is discarded. May be called twice."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._pid != os.getpid():
                return  # nothing here is the child's own
            try:
                if self._writer is not None:
                    self._writer.discard()
                    self._writer.close()
            finally:
                release(self._environment)
                # Maps and descriptors of the segments go with them; running calls hold their own.
                self._answerer = Answerer(self._catalog, self.options)
                del self._snapshot

    def __del__(self) -> None:
        # A handle that was dropped must not keep the writer's lock.
        if not getattr(self, "_closed", True):
            with suppress(Exception):
                self.close()

    def _check_open(self) -> None:
        if self._pid != os.getpid():
            raise ClosedIndex(
                f"the handle on {self.path} was opened before a fork: open the index again here",
                path=str(self.path),
            )
        if self._closed:
            raise ClosedIndex(
                f"the handle on {self.path} is closed: open the index again", path=str(self.path)
            )

    def _writing(self) -> Writer:
        self._check_open()
        if self._writer is None:
            raise ReadOnlyIndex(
                f"{self.path} was opened for reading: open it with mode 'w'", path=str(self.path)
            )
        return self._writer

    def refresh(self) -> bool:
        """Follows new commits now instead of at the next call. Returns whether there were any."""
        self._check_open()
        before = self._snapshot
        return self._newest() is not before

    def _current(self) -> Snapshot:
        return self._snapshot if self._pinned else self._newest()

    def _newest(self) -> Snapshot:
        snapshot = self._snapshot
        if self._catalog.head_value() == snapshot.value:
            return snapshot
        with self._lock:
            if self._catalog.head_value() != self._snapshot.value:
                self._snapshot = self._take(self._snapshot)
                self._follow_recipe(self._snapshot)
                if self._follow_options(self._snapshot):
                    self._snapshot = self._take(self._snapshot)
            return self._snapshot

    def _follow_recipe(self, snapshot: Snapshot) -> None:
        if self._recipe is None and "recipe" in snapshot.head.values:
            with self._catalog.reading() as reading:
                _, head = reading.head()
                payload = reading.value(head, "recipe")
            self._recipe = Recipe.from_bytes(payload) if payload is not None else None

    def _follow_options(self, snapshot: Snapshot) -> bool:
        """Structures are the one option that changes, by a compaction."""
        crc = snapshot.head.values.get("options")
        if crc == self._options_crc:
            return False
        with self._catalog.reading() as reading:
            _, head = reading.head()
            stored = reading.value(head, "options")
            self._options_crc = head.values.get("options")
        self.options = IndexOptions.from_dict(unpack("options", stored or b"\x80"))
        return True

    # -- what it is --------------------------------------------------------------------------------

    @property
    def recipe(self) -> Recipe | None:
        """How texts become this index's fingerprints, if it knows."""
        return self._recipe

    @property
    def generation(self) -> int:
        """Number of the last commit seen."""
        self._check_open()
        return self._current().head.generation

    def __len__(self) -> int:
        """Live, committed rows. Reads all ids once after something was deleted."""
        self._check_open()
        snapshot = self._current()
        return snapshot.stored_rows - snapshot.dead_rows

    def rows(self, *, chunk_rows: int = 1 << 16) -> Iterator[Batch]:
        """All live rows as batches of at most `chunk_rows`, without weights, as of one commit."""
        self._check_open()
        snapshot = self._current()
        yield from live_rows(snapshot, chunk_rows, self.options, self._recipe)

    # -- writing -----------------------------------------------------------------------------------

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
            writer = self._writing()
            checked = checked_batch(
                batch, self.options, self._recipe, ids=ids, keys=keys, weights=weights
            )
            self._adopt_recipe(writer, checked)
            return writer.append(checked)

    def replace(self, batch: Batch) -> U64:
        """Deletes all rows of the batch's ids or keys and appends the batch, in one commit.

        Returns uint64 (n,) ids. Raises InvalidBatch if the batch names its rows by nothing, or as
        `append` does.
        """
        with self._lock:
            writer = self._writing()
            checked = checked_batch(batch, self.options, self._recipe)
            if checked.keys is None and checked.ids is None:
                raise InvalidBatch("a replacement needs ids or keys")
            self._adopt_recipe(writer, checked)
            appended = writer.append(checked)
            writer.delete(None if checked.keys is not None else checked.ids, checked.keys)
            return appended

    def delete(self, *, ids: Any = None, keys: Any = None) -> int:
        """Buffers the deletion of all rows of some ids, or of some keys, committed before.

        Returns how many ids or keys were given; rows are not looked up, so the cost is that of the
        list. Rows appended since the last commit stay.
        """
        with self._lock:
            writer = self._writing()
            if (ids is None) == (keys is None):
                raise InvalidBatch("give ids or keys to delete")
            if self.options.keys is not False:
                if keys is None:
                    raise InvalidBatch("this index has keys: give keys=")
                return writer.delete(None, checked_keys(keys, self.options))
            if ids is None:
                raise InvalidBatch("this index has no keys: give ids=")
            return writer.delete(as_ids(ids, None), None)

    def commit(self) -> None:
        """Makes all since the last commit durable and visible, all or nothing.

        Raises
        ------
        StorageFull
            Nothing is changed or lost; free some space and commit again.
        CommitFailed
            The outcome is unknown; the handle stops writing, and the index, opened anew, holds
            either this commit or the one before.
        """
        with self._lock:
            writer = self._writing()
            if writer.commit(self._current()):
                while writer.merge_due(self._current()):
                    pass

    def compact(
        self,
        *,
        full: bool = False,
        structures: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Commits, then merges segments that are too many; `full` merges all into one, or into
        as few as their row numbers allow.

        Parameters
        ----------
        structures : sequence of str, optional
            What each segment carries from now on, as `IndexOptions.structures`. Permuted tables
            that are missing or damaged are built, those not named are dropped, in one commit.

        Raises
        ------
        InvalidOption
            If a name is no structure, or a design does not fit the width; nothing has changed then.
        CorruptFile
            If rows that are to be merged are damaged; they stay as they were.

        Notes
        -----
        Dead rows of the merged segments are dropped and their space is given back. While it runs,
        old and new files stand side by side. Memory is bounded, but for permuted tables: they are
        sorted one at a time in memory, 8 bytes a row of 64 bits.
        """
        with self._lock:
            writer = self._writing()
            if structures is not None:
                wanted = checked_structures(structures)
                checked_designs(replace(self.options, structures=wanted))
                self.commit()
                # What is to go is not merged first, and what is to come is built once.
                kept = [name for name in self.options.structures if name in wanted]
                if writer.restructure(self._current(), kept if full else wanted):
                    self._current()
            if full:
                writer.commit(self._current(), seal_pending=True)
                segments = self._current().segments
                for places in compaction.fitting([len(segment) for segment in segments]):
                    inputs = [segments[place] for place in places]
                    snapshot = self._current()
                    if len(inputs) > 1 or snapshot.tombstones.later_than(inputs[0].horizon):
                        writer.compact(snapshot, inputs, progress)
            else:
                self.commit()
                fanout = self.options.min_merge or USUAL_FANOUT
                while inputs := writer.due(self._current(), fanout):
                    writer.compact(self._current(), inputs, progress)
            if full and structures is not None:
                writer.restructure(self._current(), wanted)
            if self._self_audit(self._current()):
                writer.commit(self._current())
            self._current()

    def _adopt_recipe(self, writer: Writer, batch: Batch) -> None:
        if self._recipe is None and batch.recipe is not None:
            if writer.appended:
                raise RecipeMismatch(
                    "the index's rows were appended without a recipe, this batch has one: "
                    "append its fingerprints alone if they are alike",
                    differences={"recipe": (repr(batch.recipe), None)},
                )
            writer.set_value("recipe", batch.recipe.to_bytes())
            self._recipe = batch.recipe

    # -- asking ------------------------------------------------------------------------------------

    def query(
        self,
        batch: Batch | Any,
        *,
        h: int = 3,
        first: bool = False,
        recall: float = 1.0,
        method: str = "auto",
        memory: int | None = None,
        threads: int | None = None,
    ) -> Matches:
        """Stored rows within Hamming distance h, inclusive, of each query.

        Parameters
        ----------
        batch : Batch, or uint64 (m,) or (m, W)
            Only a batch with weights can be searched at a recall below 1.
        first : bool
            At most one match a query, the first that is found (PSMF); for "seen it?" questions.
        recall : float
            Share of the matches to be found: 1.0 is always exact. Below it, the number of bit flips
            tried is chosen from near-duplicates of the index itself, see `Matches.stats.guarantee`.
        method : str
            ``"psm"``, ``"scan"``, ``"bphs"`` for the index's permuted tables (or the name of one
            design), or ``"auto"`` for the cheapest that keeps the promise.
        memory : int, optional
            Bytes that the tables and header directories searched may take: what does not fit is
            left out, permuted tables first, then headers, so that all rows are scanned.
        threads : int, optional
            By default `SIMINDEX_THREADS` or one for each processor; one below 4,096 queries.

        Returns
        -------
        Matches
            Unique, ordered by (query, distance, id).

        Raises
        ------
        InvalidOption
            If an option is out of range, `method` cannot answer within `h` exactly, or nothing fits
            `memory`; says what would do.
        InvalidBatch
            If the batch is of another width, or of no fingerprints.
        CorruptFile
            If a file or a record that is needed is damaged.

        Notes
        -----
        Source: [PSM] sections 4 to 6; PSMA and BPHSA, or PSMF and BPHSF with `first`. Permuted
        tables are exact at any `recall`; where they are not for `h`, ``"bphs"`` raises
        InvalidOption and ``"auto"`` never uses them.
        """
        self._check_open()
        rows, weights = self._asked(batch)
        snapshot = self._current()
        answerer = self._answerer
        answerer.planner.check(h=h, recall=recall, method=method, bits=self.options.bits)
        return answerer.search(
            snapshot, rows, weights, h=h, first=first, recall=recall, method=method,
            memory=memory, threads=threads,
        )

    def pairs(
        self,
        *,
        h: int = 3,
        method: str = "auto",
        memory_limit: int | None = None,
        collapse_equal: bool = False,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Iterator[Pairs]:
        """All pairs of stored rows within Hamming distance h, inclusive, some at a time.

        Parameters
        ----------
        method : str
            ``"blocks"``, which is also what ``"auto"`` takes: exact at any h.
        memory_limit : int, optional
            Bytes that finding them may take, 1 GiB unless given; the mapped files are not counted.
            With less, the rows are read more often.
        collapse_equal : bool
            Of rows with equal fingerprints only that of the smallest id is paired with others; the
            others are given as `groups`, each with that one. A million equal rows are so a million
            lines and not 5 10**11 pairs.
        threads : int, optional
            By default `SIMINDEX_THREADS` or one for each processor; one below 100,000 rows.
        progress : function (done, all), optional
            Called now and then with how many rows were looked at, and how many will be.

        Yields
        ------
        Pairs
            Ids a < b, ordered by (a, b) in each; a `CollapsedPairs` with `collapse_equal`. No pair
            of rows comes twice. All are as of the commit of the call.

        Raises
        ------
        InvalidOption
            If an option is out of range; for `memory_limit` it says the least that works.

        Notes
        -----
        Rows that share an id are one document and not paired with each other; two documents of
        several rows come as often as they have rows within h. With `collapse_equal`, rows within h
        whose group is stood for by a row of the same id are left out.

        Source: [SHP] `find_all`, with h + 1 blocks. Each block takes one read of all fingerprints
        and one more for about every memory_limit / 140 rows of 64 bits; the first block takes two
        in all. Once all rows fit, everything is read once.
        """
        self._check_open()
        return index_pairs(
            self._current(), self.options, h=h, method=method, memory_limit=memory_limit,
            collapse_equal=collapse_equal, threads=threads, progress=progress,
        )

    def clusters(
        self,
        *,
        h: int = 3,
        mode: str = "components",
        singletons: bool = True,
        memory_limit: int | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Clusters:
        """Clusters of near-duplicates among the documents, the rows of one id being one document.

        Parameters
        ----------
        mode : str
            ``"components"``: documents that are connected by pairs within h, however long the
            chain; the representative is the smallest id, and may be further than h from others.
            ``"star"``: a representative and documents within h of it, so that a chain glues nothing
            together.
        singletons : bool
            Whether documents that are near to no other one are listed, as clusters of one.
        memory_limit : int, optional
            Bytes that may be taken, at least 100 a row, or 120 and 32 a pair for stars: the rows
            of 4 M documents in clusters of two took 86 and 103. Without it, so much and 1 GiB.
        threads, progress
            As in `pairs`.

        Returns
        -------
        Clusters
            Ordered by (cluster, id), `cluster` being the smallest id of each; `distance` is that to
            the representative, of the nearest rows where documents have several.

        Raises
        ------
        InvalidOption
            If an option is out of range; for `memory_limit` it says the least that works, or what
            the pairs found so far would take.

        Notes
        -----
        Stars are those of Aslam, Pelekhov and Rus (The star clustering algorithm, 2004), but
        disjoint: the document with most rows within h becomes a representative, of several the one
        of the smallest id; what is near it can no longer become one; so on with what is left. Then
        each other document joins the representative nearest to it, of several that of the smallest
        id. So no two representatives are within h of each other. The result depends on documents
        and h only, not on the order of appending, on segments, threads or memory.

        Equal fingerprints are compared as one, so a million equal rows cost no more than others.
        """
        self._check_open()
        return index_clusters(
            self._current(), self.options, h=h, mode=mode, singletons=singletons,
            memory_limit=memory_limit, threads=threads, progress=progress,
        )

    def explain(
        self,
        batch: Batch | Any,
        *,
        h: int = 3,
        recall: float = 1.0,
        method: str = "auto",
        memory: int | None = None,
    ) -> Explanation:
        """How `query` would answer, segment by segment, and what that takes when it is done.

        The options are those of `query`, and so is what is raised.

        Notes
        -----
        Runs every segment's plan some times, on one thread, and keeps no matches. A batch of one
        query tells of single calls; large ones may be planned otherwise.
        """
        self._check_open()
        rows, weights = self._asked(batch)
        snapshot = self._current()
        answerer = self._answerer
        answerer.planner.check(h=h, recall=recall, method=method, bits=self.options.bits)
        return answerer.explain(
            snapshot, rows, weights, h=h, recall=recall, method=method, memory=memory
        )

    def _asked(self, batch: Batch | Any) -> tuple[U64, F32 | None]:
        """Fingerprints (m, W) and weights of a question that fits the index."""
        if type(batch) is not Batch:
            return as_fingerprints(batch, bits=self.options.bits), None
        rows = batch.rows
        if rows.shape[1] != self.options.words:
            as_fingerprints(rows, bits=self.options.bits)
        if batch.recipe is not None:
            check_recipe(batch.recipe, self._recipe)
        return rows, batch.weights

    def tune(self, *, h: int = 3, machine: bool = True) -> Calibration:
        """Learns anew from the whole sample how bits flip, and what this machine's steps take.

        Parameters
        ----------
        h : int
            Largest distance of the near-duplicates learned from.
        machine : bool
            Also measure the machine, for about five seconds and in 600 MB of memory; see
            `Index.machine`. A writer's next commit stores the constants with the index, for all
            who open it; a reader keeps them for itself.

        Returns
        -------
        Calibration
            What was learned: volatility, and how many near-duplicates it rests on.

        Notes
        -----
        Queries learn by themselves on a part of the sample that costs them under half a second.
        """
        self._check_open()
        snapshot = self._current()
        if machine:
            largest = max(snapshot.segments, key=len, default=None)
            file = None if largest is None else self.path / "segments" / largest.name
            measured = measure(file)
            with self._lock:
                if self._writer is not None:
                    self._writer.set_value("machine", pack(measured.to_dict()))
                self._answerer.go_by(measured, snapshot)
        learned = self._answerer.planner.learn(
            snapshot, h=h, budget_s=float("inf"), queries=None
        )
        self._self_audit(snapshot, h=h)
        return learned

    @property
    def machine(self) -> Machine:
        """The constants that plans go by: measured by `tune`, or the usual ones."""
        self._check_open()
        return self._answerer.machine(self._current())

    def audit(
        self,
        *,
        h: int = 3,
        recall: float = auditing.USUAL_RECALL,
        method: str = "auto",
        sample: int = auditing.SAMPLE_ROWS,
        threads: int | None = None,
    ) -> Audit:
        """What share of matches queries at `recall` find, measured on rows of the index.

        Sampled rows with weights are asked as queries, once so and once exactly. The result is kept
        in `stats`: in those of this handle, and, if it is a writer, in everybody's from its next
        commit on.

        Parameters
        ----------
        sample : int
            Rows to ask, of the `reservoir_rows` that are kept.

        Returns
        -------
        Audit
            The recall and its 95% interval; no recall where no row has weights or a match.

        Raises
        ------
        InvalidOption
            If an option is out of range, as in `query`.

        Notes
        -----
        The rows are indexed texts, some of which may also have taught how bits flip: the recall of
        other texts may differ. Costs `sample` exact queries.
        """
        self._check_open()
        snapshot = self._current()
        self._answerer.planner.check(h=h, recall=recall, method=method, bits=self.options.bits)
        found = self._answerer.audit(
            snapshot, h=h, recall=recall, method=method, sample=sample, threads=threads
        )
        self._keep(found)
        return found

    def _self_audit(self, snapshot: Snapshot, *, h: int | None = None) -> bool:
        """Measures the recall if the last audit tells of another index; buffers the result.

        What damage prevents is left out with a warning: the caller's own work is done.
        """
        try:
            found = self._answerer.self_audit(snapshot, h=h)
        except (CorruptFile, OSError) as error:
            log.warning("the recall was not measured: %s", error)
            return False
        if found is not None:
            self._keep(found)
        return found is not None

    def _keep(self, found: Audit) -> None:
        if self._writer is not None:
            with self._lock:
                self._writing().set_value("audit", auditing.encode(found))

    # -- looking after it --------------------------------------------------------------------------

    def check(self) -> list[Finding]:
        """Reads everything and verifies it; an empty list means that all is well.

        Severity ``"error"`` is damage, ``"note"`` harmless, such as a stray file.
        """
        self._check_open()
        return check(
            self.path, self._catalog, index=self._uuid, options=self.options,
            snapshot=self._current(),
        )

    def stats(self, *, skew: bool = False) -> IndexStats:
        """What the index holds. Reads all ids once after something was deleted.

        `skew` also names the headers and fingerprints that most rows share, which reads the first
        word of every row: 0.12 s for 10 M.
        """
        self._check_open()
        return gather(
            self.path, self._current(), options=self.options, recipe=self._recipe,
            catalog_bytes=self._environment.file_bytes, skew=skew,
            audit=self._answerer.last_audit(),
            spot_checks=self._answerer.spot_checks.measured(),
            flips_from=self._answerer.planner.sources,
        )


def _after_fork() -> None:
    # The child must not keep the parent's writer lock alive, nor wait for threads it lacks.
    for handle in list(_handles):
        handle._lock = RLock()
        if handle._writer is not None:
            handle._writer.forget_lock()


os.register_at_fork(after_in_child=_after_fork)
