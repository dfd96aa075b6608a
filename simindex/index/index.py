"""The index: open it, append to it, ask it. Everything a user holds.

One writer, any number of readers, in any processes. A call sees one commit throughout; the next
call follows new commits by itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simindex.arrays import F32, U64
from simindex.errors import IndexExists
from simindex.index.change import Changing
from simindex.index.changes import WritableHandle
from simindex.index.handle import Mode
from simindex.index.statistics import gather
from simindex.options import IndexOptions, as_flag
from simindex.pairs.all_pairs import index_pairs
from simindex.pairs.clusters import index_clusters
from simindex.planning.calibration import Calibration
from simindex.planning.machine import Machine
from simindex.planning.measurement import measure
from simindex.query import audit as auditing
from simindex.query.explanation import Explanation, TopExplanation
from simindex.records.batch import Batch, as_fingerprints
from simindex.records.clusters import Clusters
from simindex.records.matches import Matches, TopMatches
from simindex.records.pairs import Pairs
from simindex.records.reports import Audit, Finding, IndexStats, Progress
from simindex.repair.check import faults, strays
from simindex.storage.catalog.values import pack
from simindex.storage.files.refusals import each, told, translated, typed
from simindex.storage.files.verification import Verify
from simindex.storage.location import checked_call
from simindex.writing import creation
from simindex.writing.admission import check_recipe
from simindex.writing.merges import wait_for
from simindex.writing.ownership import exists


def open(
    path: str | os.PathLike[str],
    mode: Mode = "r",
    *,
    options: IndexOptions | None = None,
    overwrite: bool = False,
    refresh: bool = True,
    verify: Verify = "lazy",
) -> Index:
    """An index directory, opened as dbm files are.

    Parameters
    ----------
    mode : str
        ``"r"`` reads an index and creates nothing; ``"w"`` writes one that exists; ``"c"`` writes
        one, creating it if there is none; ``"n"`` creates one, and keeps one that exists unless
        `overwrite` is given, and then, too, if a newer version made it.
    options : IndexOptions
        For an index that is created. For one that exists they must agree with its own.
    refresh : bool
        Whether a reader's calls follow new commits by themselves. False pins the commit it was
        opened at until `Index.refresh` is called.
    verify : str
        When rows and structures are compared with their checksums. ``"lazy"``: each 64 KiB of a
        file when a call first touches them, so that damage on the disk gives CorruptFile, never a
        wrong answer; ``"open"``: whole files when they are opened, too, of this commit and of later
        ones; ``"never"``: damage may give wrong answers. What changes under an open handle after
        its first touch is not noticed: `Index.check` reads everything.

    Raises
    ------
    IndexNotFound, IndexExists, IndexLocked
        As the mode meets no index, one it must keep, or another writer.
    CorruptFile, FormatTooOld, FormatTooNew
        If the index is damaged or of another version.
    InvalidOption
        If options differ from the stored ones; carries the differences. If `verify` is unknown.

    Notes
    -----
    Maps files and reads the catalog's head; unless ``verify="open"`` no row is read, so that the
    cost does not grow with them.
    """
    directory = checked_call(path, mode, options, verify)
    refresh, overwrite = as_flag(refresh, "refresh"), as_flag(overwrite, "overwrite")
    with translated(directory, mode != "r"):
        missing = mode == "n" or (mode == "c" and not exists(directory))
    if missing:
        try:
            with translated(directory, True):
                creation.create(
                    directory, options or IndexOptions(), overwrite=overwrite and mode == "n"
                )
        except IndexExists:
            if mode == "n" or not exists(directory):
                raise
    return Index(directory, mode, options=options, refresh=refresh, verify=verify)


class Index(WritableHandle):
    """A handle on an index directory; `simindex.open` makes it.

    As a context manager a writer commits on a clean exit and discards on an exception. Queries may
    come from many threads at once. A handle does not survive a fork; it pickles as its path and is
    opened for reading where it is unpickled.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (str(self.path), "r"))

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
        batch : Batch, or uint64 (m,) or (m, W)
            Only a batch with weights can be searched at a recall below 1.
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
        rows, weights = self._asked(batch)
        snapshot = self._current()
        answerer = self._answerer
        question = answerer.question(
            h=h, first=first, recall=recall, method=method, memory=memory,
            memory_limit=memory_limit, threads=threads,
        )
        return answerer.search(snapshot, rows, weights, question)

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
        batch : Batch, or uint64 (m,) or (m, W)
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
        rows, _ = self._asked(batch)
        return self._answerer.top(
            self._current(), rows, k=k, max_error=max_error, rerank=rerank, method=method,
            recall=recall, threads=threads,
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

        Equal fingerprints are compared as one, so a million equal rows cost no more than others.
        """
        self._check_open()
        return index_clusters(
            self._current(), self.options, h=h, mode=mode, singletons=singletons,
            memory_limit=memory_limit, threads=threads, progress=progress,
        )

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
        rows, weights = self._asked(batch)
        snapshot = self._current()
        answerer = self._answerer
        question = answerer.question(h=h, recall=recall, method=method, memory=memory)
        return answerer.explain(snapshot, rows, weights, question)

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
        rows, _ = self._asked(batch)
        return self._answerer.explain_top(
            self._current(), rows, k=k, max_error=max_error, rerank=rerank, method=method,
            recall=recall,
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
        Queries learn by themselves on a part of the sample that costs them under half a second.
        """
        self._check_may_keep()
        self._answerer.question(h=h)
        snapshot = self._current()
        if machine:
            largest = max(snapshot.segments, key=len, default=None)
            file = None if largest is None else self.path / "segments" / largest.name
            measured = measure(file)
            if self._writer is not None:
                with self._lock, Changing(self, "tune") as writer:
                    writer.set_value("machine", pack(measured.to_dict()))
            with self._lock:
                self._answerer.go_by(measured, snapshot)
        learned = self._answerer.plans.learn(
            snapshot, h=h, budget_s=float("inf"), queries=None
        )
        found = self._self_audit(snapshot, h=h)
        if found is not None:
            self._keep(found)
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
        self._check_may_keep()
        snapshot = self._current()
        question = self._answerer.question(h=h, recall=recall, method=method, threads=threads)
        found = self._answerer.audit(snapshot, question, sample=sample)
        self._keep(found)
        return found

    # -- looking after it --------------------------------------------------------------------------

    @typed
    def check(self) -> list[Finding]:
        """Reads everything and verifies it; an empty list means that all is well.

        Severity ``"error"`` is damage, ``"note"`` harmless, such as a stray file. A writer waits
        for its merges; to others, a file that is being written is a stray one.
        """
        self._check_open()
        found = faults(
            self.path, self._catalog, index=self._uuid, options=self.options,
            snapshot=self._current(),
        )
        return [*found, *self._strays()]

    def _strays(self) -> list[Finding]:
        """Files that are no part of the index, nor about to become one by this handle."""
        writer = self._writer
        if writer is None:
            return strays(self.path, self._catalog, self._current())
        with self._lock:
            before = strays(self.path, self._catalog, self._current())
            running = writer.running
        wait_for(running)  # without the lock; what they are writing has no final name yet
        with self._lock:
            after = strays(self.path, self._catalog, self._current())
            unfinished = writer.uninstalled
        return [
            found for found in before
            if found in after and Path(found.path).name not in unfinished
        ]

    @typed
    def stats(self, *, skew: bool = False) -> IndexStats:
        """What the index holds. Reads all ids once after something was deleted.

        `skew` also names the headers and fingerprints that most rows share, which reads the first
        word of every row: 0.12 s for 10 M.
        """
        self._check_open()
        return gather(
            self.path, self._current(), options=self.options, recipe=self._recipe,
            catalog_bytes=self._environment.file_bytes, skew=as_flag(skew, "skew"),
            audit=self._answerer.last_audit(),
            spot_checks=self._answerer.spot_checks.measured(),
            flips_from=self._answerer.plans.sources,
        )
