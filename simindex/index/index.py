"""The index: append to it, ask it. Everything a user holds.

    Index       what users call, and what they may expect of it
    _handle     what is open: the files as of one commit, and for a writer the lock   (handle.py)
    _answerer   the reading half                                              (query/answerer.py)
    _changes    the writing half                                                     (changes.py)

One writer, any number of readers, in any processes. A call sees one commit throughout; the next
call follows new commits by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from simindex.arrays import U64
from simindex.checks import is_int
from simindex.errors import InvalidOption
from simindex.index.changes import Changes
from simindex.index.handle import Handle, Mode
from simindex.index.statistics import gather
from simindex.options import IndexOptions, as_flag
from simindex.pairs.clusters import index_clusters
from simindex.pairs.search import index_pairs
from simindex.planning.calibration import Calibration
from simindex.planning.machine import Machine
from simindex.planning.measurement import measure
from simindex.query import audit as auditing
from simindex.query.answerer import Answerer
from simindex.query.asked import Asked, asked
from simindex.query.explanation import Explanation, TopExplanation
from simindex.records.batch import Batch
from simindex.records.clusters import Clusters
from simindex.records.matches import Match, Matches, TopMatches
from simindex.records.pairs import Pairs
from simindex.records.reports import Audit, Finding, IndexStats, Progress
from simindex.repair.check import faults
from simindex.simhash.recipe import Recipe
from simindex.storage.catalog.values import pack
from simindex.storage.files.refusals import each, told, typed
from simindex.storage.files.verification import Verify
from simindex.storage.snapshot import live_rows
from simindex.writing.admission import check_recipe


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
        verify: Verify = "lazy",
    ) -> None:
        path = path.absolute()  # so that it outlives a change of the working directory
        self.path, self.mode = path, mode
        self._handle = Handle(path, mode, options, refresh=refresh, verify=verify)
        self._check_open, self._current = self._handle.check_open, self._handle.view.current
        self._changes = Changes(self._handle)

    @property
    def options(self) -> IndexOptions:
        """What it was created with, and the structures that segments get now."""
        return self._handle.view.options

    @property
    def recipe(self) -> Recipe | None:
        """How texts become this index's fingerprints, if it knows."""
        return self._handle.recipe

    def __repr__(self) -> str:
        state = "closed" if self._handle.closed else f"mode {self.mode!r}"
        return f"<simindex.Index {str(self.path)!r}, {state}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Index, (self.path, "r"))

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
            if kind is None:
                self._changes.leave()
        finally:
            self.close()

    @typed
    def close(self) -> None:
        """Closes the handle; what a writer has not committed is discarded. May be called twice.

        Merges that run are given up, which loses nothing but their work; leaving a ``with`` block
        cleanly, and `compact`, wait for them. The function that `compact` tells of its progress may
        not close its handle: InvalidOption.
        """
        self._handle.close()

    @property
    def _answerer(self) -> Answerer:
        return self._handle.answerer

    @typed
    def refresh(self) -> bool:
        """Follows new commits now instead of at the next call. Returns whether there were any.

        Raises ClosedIndex if another index, or a repaired catalog, has taken the place of this one.
        """
        self._check_open()
        before = self._handle.view.last()
        self._handle.view.check_place()
        return self._handle.view.newest() is not before

    @property
    @typed
    def generation(self) -> int:
        """Number of the last commit seen."""
        self._check_open()
        return self._current().head.generation

    @typed
    def __len__(self) -> int:
        """Live, committed rows. Reads all ids once after something was deleted."""
        self._check_open()
        snapshot = self._current()
        return snapshot.stored_rows - snapshot.dead_rows

    def __bool__(self) -> bool:
        """True, also without rows: `if index:` asks whether there is an index, as for a file."""
        return True

    # -- questions ---------------------------------------------------------------------------------

    @typed
    def query(
        self,
        batch: Batch | Any,
        *,
        h: int = 3,
        first: bool = False,
        recall: float = 1.0,
        method: str = "auto",
        memory: int | None = None,
        memory_limit: int | None = None,
        threads: int | None = None,
    ) -> Matches:
        """Stored rows within Hamming distance h, inclusive, of each query.

        Parameters
        ----------
        batch : str, sequence of str, Batch, or uint64 (m,) or (m, W)
            Texts become fingerprints by the index's recipe; one without a fingerprint has no
            matches. Plain fingerprints have no weights, so they are searched exactly.
        first : bool
            At most one match a query, the first that is found (PSMF); for "seen it?" questions.
        recall : float
            Share of the matches to be found: 1.0 is always exact. Below it, the number of bit flips
            tried is chosen from near-duplicates of the index itself, see `Matches.stats.guarantee`.
        method : str
            ``"psm"``, ``"scan"``, ``"bphs"`` for the index's permuted tables (or the name of one
            design), ``"issl"`` for its slice lists, or ``"auto"`` for the cheapest that keeps the
            promise.
        memory : int, optional
            Bytes that the tables and header directories searched may take: what does not fit is
            left out, permuted tables first, then headers, so that all rows are scanned.
        memory_limit : int, optional
            Bytes that the call may hold beside the queries and the matches. Every table is then
            read once, in order, and given back in passing: by its headers where the queries have
            weights and the recall is below 1, else by permuted tables over the queries, which
            ``"bphs"`` or a design's name asks for. For large batches on indexes beyond memory.
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
            `memory` or `memory_limit`; says what would do.
        InvalidBatch
            If the batch is of another width, or of no fingerprints.
        CorruptFile
            If a file or a record that is needed is damaged.

        Notes
        -----
        Source: [PSM] sections 4 to 6; PSMA and BPHSA, or PSMF and BPHSF with `first`. Permuted
        tables are exact at any `recall`; where they are not for `h`, ``"bphs"`` raises
        InvalidOption and ``"auto"`` never uses them. Slice lists are exact at any `h`: of the s
        slices of two fingerprints within it, one differs in at most h // s bits.
        """
        self._check_open()
        asking = self._asked(batch)
        snapshot = self._current()
        answerer = self._answerer
        question = answerer.question(
            h=h, first=first, recall=recall, method=method, memory=memory,
            memory_limit=memory_limit, threads=threads,
        )
        return asking.numbered(answerer.search(snapshot, asking.rows, asking.weights, question))

    @typed
    def top(
        self,
        batch: Batch | Any,
        *,
        k: int = 10,
        max_error: int | str = 2,
        rerank: int | None = None,
        method: str = "auto",
        recall: float | None = None,
        threads: int | None = None,
    ) -> TopMatches:
        """The k documents of least Hamming distance of each query.

        A document is all rows of one id, and stands at the distance of its nearest row.

        Parameters
        ----------
        batch : str, sequence of str, Batch, or uint64 (m,) or (m, W)
            Texts become fingerprints by the index's recipe.
        k : int
            At most the rows that are not deleted.
        max_error : int or "auto"
            Where slice lists are used, in how many bits a slice may differ from the query's, 0 to
            16 (or 8, where slices are that wide). ``"auto"`` takes the least that reaches `recall`.
        rerank : int, optional
            Rows of each segment, of those that the lists score highest, whose distance is computed.
            Unless given, 10 k or 256, whichever is more, or all that are listed where those are
            few; with ``max_error="auto"`` up to 8 times as many if that is needed.
        method : str
            ``"scan"`` compares all rows, and is exact; ``"issl"`` uses slice lists, which the
            segments must have; ``"auto"`` takes what is cheaper for each segment.
        recall : float, optional
            Share of the documents that are to be found, with ``max_error="auto"``: 0.95 unless
            given. 1.0 is exact.
        threads : int, optional
            By default `SIMINDEX_THREADS` or one for each processor; one where a scan would compare
            fewer than 8 M words.

        Returns
        -------
        TopMatches
            Columns (m, k), each query's documents ordered by (distance, id).

        Raises
        ------
        InvalidOption
            If an option is out of range, `k` beyond the rows (also in an empty index, unless
            nothing is asked), or ``method="issl"`` meets a segment without lists; says what would
            do.
        InvalidBatch
            If the batch is of another width, or of no fingerprints.
        CorruptFile
            If rows, or slice lists that are needed, are damaged.

        Notes
        -----
        Source: [ISSL] section 2. Slice lists may miss documents: `TopMatches.stats.guarantee` says
        what was looked at. For a `recall`, up to 256 rows of the index are asked, without
        themselves, once for the segments at hand: about the time of so many queries, some seconds
        on large indexes. It is the recall of queries that are like the index's own rows. Pending
        rows are always compared. Of deleted rows a mask is kept, a byte for each row of a segment
        that any is in.
        """
        self._check_open()
        asking = self._asked(batch)
        snapshot = self._current()
        answerer = self._answerer
        question = answerer.top_question(
            snapshot, k=k, max_error=max_error, rerank=rerank, method=method, recall=recall,
            threads=threads,
        )
        return asking.numbered_top(answerer.top(snapshot, asking.rows, question))

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
        with told(self.path):
            snapshot = self._current()
        return each(self.path, index_pairs(
            snapshot, self.options, h=h, method=method, memory_limit=memory_limit,
            collapse_equal=collapse_equal, threads=threads, progress=progress,
        ))

    @typed
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
        disjoint: the document with most pairs of one of its rows and a row of another document
        within h becomes a representative, of several the one of the smallest id; what is near it
        can no longer become one; so on with what is left. Then each other document joins the
        representative nearest to it, of several that of the smallest id. So no two representatives
        are within h of each other. The result depends on documents and h only, not on the order of
        appending, on segments, threads or memory.

        Equal fingerprints are compared as one. Stars of large families take longer than components:
        20 s instead of one for a million rows of which 300,000 are equal and 300,000 within 3 bits
        of those.
        """
        self._check_open()
        return index_clusters(
            self._current(), self.options, h=h, mode=mode, singletons=singletons,
            memory_limit=memory_limit, threads=threads, progress=progress,
        )

    def rows(self, *, chunk_rows: int = 1 << 16) -> Iterator[Batch]:
        """All live rows as batches of 1 to `chunk_rows`, without weights, as of one commit.

        Raises InvalidOption if `chunk_rows` is no whole number of 1 or more.
        """
        self._check_open()
        if not is_int(chunk_rows) or chunk_rows < 1:
            raise InvalidOption(
                f"chunk_rows={chunk_rows!r}",
                remedy="give a whole number of 1 or more", option="chunk_rows", found=chunk_rows,
            )
        with told(self.path):
            snapshot = self._current()
            yield from live_rows(snapshot, chunk_rows, self.options, self.recipe)

    @typed
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

        The options are those of `query` but for `first`, `memory_limit` and `threads`, and so is
        what is raised.

        Notes
        -----
        Runs every segment's plan some times, on one thread, and keeps no matches. A batch of one
        query tells of single calls; large ones may be planned otherwise.
        """
        self._check_open()
        asking = self._asked(batch)
        snapshot = self._current()
        answerer = self._answerer
        question = answerer.question(h=h, recall=recall, method=method, memory=memory)
        return answerer.explain(snapshot, asking.rows, asking.weights, question)

    @typed
    def explain_top(
        self,
        batch: Batch | Any,
        *,
        k: int = 10,
        max_error: int | str = 2,
        rerank: int | None = None,
        method: str = "auto",
        recall: float | None = None,
    ) -> TopExplanation:
        """How `top` would answer, segment by segment, and what that takes when it is done.

        Options and errors are those of `top`. Runs every segment's plan some times, on one thread.
        """
        self._check_open()
        asking = self._asked(batch)
        snapshot = self._current()
        answerer = self._answerer
        question = answerer.top_question(
            snapshot, k=k, max_error=max_error, rerank=rerank, method=method, recall=recall
        )
        return answerer.explain_top(snapshot, asking.rows, question)

    def _asked(self, given: Any) -> Asked:
        """A question that fits the index."""
        question = asked(given, recipe=self.recipe, bits=self.options.bits)
        if question.recipe is not None:
            check_recipe(question.recipe, self.recipe)
        return question

    @typed
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

        Raises
        ------
        InvalidOption
            If `h` is out of range, as in `query`.

        Notes
        -----
        Queries learn by themselves on a part of the sample that costs them about half a
        second at 64 bits, and seconds where rows and h are wide.
        """
        self._changes.check_may_keep()
        self._answerer.question(h=h)
        snapshot = self._current()
        if machine:
            largest = max(snapshot.segments, key=len, default=None)
            file = None if largest is None else self.path / "segments" / largest.name
            measured = measure(file)
            self._changes.keep("tune", "machine", pack(measured.to_dict()))
            with self._handle.lock:
                self._answerer.go_by(measured, snapshot)
        learned = self._answerer.plans.learn(
            snapshot, h=h, budget_s=float("inf"), queries=None
        )
        found = self._changes.self_audit(snapshot, h=h)
        if found is not None:
            self._changes.keep("audit", "audit", auditing.encode(found))
        return learned

    @property
    def machine(self) -> Machine:
        """The constants that plans go by: measured by `tune`, or the usual ones."""
        self._check_open()
        return self._answerer.machine(self._current())

    @typed
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
        self._changes.check_may_keep()
        snapshot = self._current()
        question = self._answerer.question(h=h, recall=recall, method=method, threads=threads)
        found = self._answerer.audit(snapshot, question, sample=sample)
        self._changes.keep("audit", "audit", auditing.encode(found))
        return found

    # -- changes -----------------------------------------------------------------------------------

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
        return self._changes.append(batch, {"ids": ids, "keys": keys, "weights": weights})

    @typed
    def replace(self, batch: Batch) -> U64:
        """Deletes all rows of the batch's ids or keys, then appends the batch.

        Both become durable and visible in one commit. Rows that wait for a commit are deleted, too,
        so the last of several replacements counts. A batch may name several rows by one key.

        Returns uint64 (n,) ids. Raises InvalidBatch if the batch names its rows by nothing, or as
        `append` does.
        """
        return self._changes.replace(batch)

    @typed
    def delete(self, *, ids: Any = None, keys: Any = None) -> int:
        """Buffers the deletion of all rows of some ids, or of some keys, that came before.

        Rows that wait for a commit are deleted, too; rows that are appended later stay. Returns how
        many ids or keys were given; rows are not looked up, so the cost is that of the list.
        `commit` makes it durable.
        """
        return self._changes.delete(ids, keys)

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
        self._changes.commit()

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
        self._changes.compact(full, structures, progress)

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
        return self._changes.ingest(
            batch, {"ids": ids, "keys": keys, "weights": weights},
            {"h": h, "recall": recall, "first": as_flag(first, "first"), "method": method,
             "memory_limit": memory_limit, "threads": threads},
        )

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
        return self._changes.seen_or_add(text_or_batch, key, h, recall, commit_s)

    # -- looking after it --------------------------------------------------------------------------

    @typed
    def check(self) -> list[Finding]:
        """Reads everything and verifies it; an empty list means that all is well.

        Severity ``"error"`` is damage, ``"note"`` harmless, such as a stray file. A writer waits
        for its merges; to others, a file that is being written is a stray one.
        """
        self._check_open()
        handle = self._handle
        found = faults(
            handle.path, handle.catalog, index=handle.view.index, options=self.options,
            snapshot=self._current(),
        )
        return [*found, *self._changes.strays()]

    @typed
    def stats(self, *, skew: bool = False) -> IndexStats:
        """What the index holds. Reads all ids once after something was deleted.

        `skew` also names the headers and fingerprints that most rows share, which reads the first
        word of every row: 0.12 s for 10 M.
        """
        self._check_open()
        return gather(self._handle, self._current(), skew=as_flag(skew, "skew"))
