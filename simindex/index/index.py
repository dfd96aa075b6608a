"""`Index`, the class that users work with.

    Index       what users call, and what the calls promise
    _handle     what is open: the files as of one commit, and for a writer the lock   (handle.py)
    _answerer   the reading half                                              (query/answerer.py)
    _changes    the writing half                                                     (changes.py)
    _arrivals   documents one at a time                                             (arrivals.py)

One writer, any number of readers, in any processes. A call sees one commit throughout; the next
call follows new commits by itself.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from simindex.advising.goals import PRECISION, RECALL, SAMPLE, SIMILARITY
from simindex.checks import require_share, require_whole
from simindex.errors import InvalidBatch
from simindex.index.deferred_half import DeferredHalf
from simindex.index.documents import contained, document, names_of
from simindex.index.gate_nearness import USUAL_LIMIT, gate_nearness
from simindex.index.handle import Handle, Mode
from simindex.options import AUDITED_RECALL, AUDITED_ROWS, IndexOptions, as_flag
from simindex.planning.similarity import Similar, require_sketches
from simindex.query.queries import Asked, asked
from simindex.records.batch import Batch
from simindex.records.gate import GateLimits, GateReport
from simindex.records.matches import NO_NEIGHBOUR
from simindex.records.sketches import record_bytes
from simindex.storage.catalog.sealed_values import pack
from simindex.storage.files.refusals import each, told, typed
from simindex.storage.snapshot import live_rows
from simindex.writing.admission import check_recipe

if TYPE_CHECKING:
    from simindex.arrays import U64, Bools
    from simindex.index.arrivals import Arrivals
    from simindex.index.changes import Changes
    from simindex.planning.calibration import Calibration
    from simindex.planning.machine import Machine
    from simindex.query.answerer import Answerer
    from simindex.query.explanation import Explanation, TopExplanation
    from simindex.records.advice import Advice, CalibrationReport
    from simindex.records.clusters import Clusters
    from simindex.records.matches import Match, Matches, TopMatches
    from simindex.records.pair_explanation import PairExplanation
    from simindex.records.pairs import Pairs
    from simindex.records.reports import Audit, BackupReport, Finding, IndexStats, Progress
    from simindex.simhash.recipe import Recipe
    from simindex.storage.files.checksums import Verify


def _changes(handle: Handle) -> Changes:
    from simindex.index.changes import Changes

    return Changes(handle)


def _arrivals(handle: Handle, changes: Changes) -> Arrivals:
    from simindex.index.arrivals import Arrivals

    return Arrivals(handle, changes.settling)


class Index:
    """A handle on an index directory; `simindex.open` makes it.

    As a context manager, a writer commits on a clean exit, merges until few segments are left, and
    discards on an exception. `close` commits, too. Many threads may query at once. A handle does
    not survive a fork. It pickles as its path, and is opened for reading where it is unpickled.
    """

    def __init__(
        self,
        path: Path,
        mode: Mode = "r",
        *,
        options: IndexOptions | None = None,
        refresh: bool = True,
        verify: Verify = "lazy",
        brief: bool = False,
    ) -> None:
        path = path.absolute()  # so that it outlives a change of the working directory
        self.path: Path = path
        self.mode = mode
        try:
            self._handle = Handle(path, mode, options, refresh=refresh, verify=verify)
            self._check_open, self._current = self._handle.check_open, self._handle.view.current
            self._changes = cast("Changes", DeferredHalf(partial(_changes, self._handle)))
            self._arrivals = cast(
                "Arrivals", DeferredHalf(partial(_arrivals, self._handle, self._changes))
            )
            if not brief:
                self._import_what_calls_need()
        except BaseException:
            if "_handle" in vars(self):  # it was interrupted once it was open
                self._handle.close()
            raise

    def _import_what_calls_need(self) -> None:
        import simindex.simhash.recipe_kernels

        self._handle.prepare_answers()
        if self._handle.writer is not None:
            import simindex.writing.ingestion  # noqa: F401

            self._changes = _changes(self._handle)
            self._arrivals = _arrivals(self._handle, self._changes)

    @property
    def options(self) -> IndexOptions:
        """The options of the index: those of its creation, the structures that new segments get,
        and the kind of keys that its first rows had."""
        return self._handle.options

    @property
    def recipe(self) -> Recipe | None:
        """The recipe of this index; None if it has none."""
        if self._handle.recipe is None and not self._handle.closed:
            self._current()  # of which a commit may have told since
        return self._handle.recipe

    @property
    def h(self) -> int:
        """The radius of calls without an h: that of the recipe that the index stores.

        In an index without a recipe it is 3 for each 64 bits.
        """
        return self._handle.radius(None, self.recipe)

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
        clean = False
        try:
            if kind is None:
                if self._handle.writer is not None:
                    self._changes.leave()
                clean = True
        finally:
            self._handle.close(discard=not clean)

    @typed
    def close(self) -> None:
        """Commits what waits, and closes the handle. May be called twice.

        Cancels running merges, which loses only their work. Leaving a ``with`` block cleanly and
        `compact` merge until few segments are left. To close without a commit, call `discard`
        before.

        Raises
        ------
        StorageFull, StorageFailed, MemoryError
            If the system refused the commit. Nothing is lost: the handle stays open. Call again
            once there is space, or `discard` first.
        CommitFailed, ClosedIndex
            If it is not known whether it was committed, or another index has taken this one's
            place. The handle is closed.
        InvalidOption
            If the `progress` function of `compact` calls it.

        Notes
        -----
        If the handle stopped writing after an interrupt or a failed commit, `close` drops the rows
        that wait, and logs that. A handle that is dropped, or open when the process ends, commits
        what waits if it can, with a ResourceWarning.
        """
        self._handle.close()

    @property
    def _answerer(self) -> Answerer:
        return self._handle.answerer

    @typed
    def refresh(self) -> bool:
        """Follows new commits now instead of at the next call. Returns whether there were any.

        Raises ClosedIndex if another index, or a repaired catalog, has replaced this one.
        """
        self._check_open()
        before = self._handle.view.last()
        self._handle.view.check_place()
        return self._handle.view.newest() is not before

    @property
    @typed
    def generation(self) -> int:
        """Number of the newest commit that this handle sees."""
        self._check_open()
        return self._current().head.generation

    @typed
    def __len__(self) -> int:
        """Number of live, committed rows. After a deletion the first call reads all ids."""
        self._check_open()
        snapshot = self._current()
        return snapshot.stored_rows - snapshot.dead_rows

    def __bool__(self) -> bool:
        """True, also without rows: `if index:` tests whether there is an index, as for a file."""
        return True

    # -- documents by name -------------------------------------------------------------------------

    @typed
    def __contains__(self, name: object) -> bool:
        """Whether a key, or an id in an index without keys, has a live row; see `contains`."""
        return bool(contained(self._handle, **names_of(self._handle, name))[0])

    @typed
    def contains(self, *, ids: Any = None, keys: Any = None) -> Bools:
        """Which of some ids or keys have a live row, bool (n,).

        A writer also sees rows and deletions that wait for its commit.

        Raises
        ------
        InvalidBatch
            If ids are given to an index with keys, or keys to one without, or of another type.
        CorruptFile
            If ids or keys that are looked at are damaged.

        Notes
        -----
        The first few names are compared with the ids of all rows, 0.8 ms each for a million rows.
        Then the handle orders the rows of each segment by id, once, in 4 bytes a row. From then on
        a name takes about 0.1 ms, and each of many at once takes a few microseconds.
        """
        return contained(self._handle, ids, keys)

    @typed
    def get(self, name: Any, default: Any = None) -> Any:
        """The live rows of a key, or of an id in an index without keys, as a Batch.

        Returns `default` if there is none. The batch has no weights: an index stores none with
        rows. Raises and costs what `contains` does.
        """
        found = document(self._handle, name)
        return default if found is None else found

    @typed
    def explain_pair(
        self,
        a: str | bytes | None = None,
        b: str | bytes | None = None,
        *,
        ids: Any = None,
        keys: Any = None,
        h: int | None = None,
        similarity: float | None = None,
        measure: str = "cosine",
    ) -> PairExplanation:
        """Tells why two documents match or not.

        Parameters
        ----------
        a, b : str or bytes, optional
            Their texts, where they are at hand. A document without a text is looked up by its name.
        ids, keys : two of them, optional
            The names of both documents, such as ``keys=("a.html", "b.html")``; None for one that
            is given as a text alone.
        h : int, optional
            The radius. Default: `Index.h`.
        similarity, measure : float and str, optional
            In place of h, as in `pairs`: whether the two are within the radius of candidates, and
            their sketches near enough.

        Returns
        -------
        PairExplanation
            Distance, estimated similarity and flipped bits. With both texts also features with
            weights, exact cosine, Jaccard resemblance, and the words that differ.

        Raises
        ------
        InvalidOption
            If a document has neither text nor name, the index has no document of the name, or h or
            the similarity is out of range.
        InvalidBatch
            If a text or a name is of another type, or texts are given to an index whose rows came
            without a recipe.
        CorruptFile
            If rows that are looked at are damaged.

        Notes
        -----
        If a document has several rows, the two nearest rows are compared.
        `simindex.explain_pair` compares texts without an index.
        """
        from simindex.index.pair_explanation import explained_pair

        self._check_open()
        self._current()  # first: it knows the recipe of the last commit
        return explained_pair(
            self._handle, (a, b), ids, keys, h=h, usual=self.h, similarity=similarity,
            measure=measure,
        )

    # -- questions ---------------------------------------------------------------------------------

    @typed
    def query(
        self,
        batch: Batch | Any,
        *,
        h: int | None = None,
        similarity: float | None = None,
        measure: str = "cosine",
        first: bool = False,
        limit: int | None = None,
        recall: float = 1.0,
        method: str = "auto",
        memory: int | None = None,
        memory_limit: int | None = None,
        threads: int | None = None,
    ) -> Matches:
        """Finds the stored rows within Hamming distance h, inclusive, of each query.

        Parameters
        ----------
        batch : str, iterable of str, Batch, or uint64 (m,) or (m, W)
            Texts become fingerprints by the index's recipe; one without a fingerprint has no
            matches. Several texts, and plain fingerprints, are a list, an array, an iterator, or a
            column of pandas, polars or Arrow. Plain fingerprints have no weights, so they are
            searched exactly.
        h : int, optional
            Bits in which a match may differ. Default: `Index.h`, as in every call that takes h.
        similarity : float, optional
            The least cosine of a match, from 0.5 to 1, in place of h. It chooses the radius for
            candidates. In an index with sketches these are kept or rejected by their sketches:
            `distance` is then that of the sketches, and matches have `similarity` and its standard
            error. Without sketches the radius alone decides. `Matches.stats.guarantee` says which
            share of the pairs is expected.
        measure : str
            What `similarity` is: ``"cosine"``, or ``"jaccard"`` for the Jaccard resemblance of the
            sets of features, from 1/3 to 1, in an index whose recipe has the weighting "binary".
            Sketches are compared by the sizes of both sets, where these are known. Else, and
            without sketches, sets are taken to be of equal size.
        first : bool
            Return at most one match for each query, the first that is found (PSMF).
        limit : int, optional
            Return at most so many matches for each query: the nearest, of equally near ones those
            of the smallest ids.
        recall : float
            Share of the matches to find. 1.0 is always exact. With `similarity` it is the share of
            the pairs at that similarity that become candidates; 1.0 stands for 0.85 then. Below 1,
            the number of bit flips is learned from near-duplicates in the index, and assumed while
            it has too few of them; with `similarity` it follows from the law of pairs at that
            cosine. `Matches.stats.guarantee` says which.
        method : str
            ``"psm"``, ``"scan"``, ``"bphs"`` for the index's permuted tables (or the name of one
            design), ``"issl"`` for its slice lists, or ``"auto"`` for the cheapest of those that
            keep the promise.
        memory : int, optional
            Bytes that the searched tables and header directories may take. Permuted tables that do
            not fit are left out, then headers, so that all rows are scanned.
        memory_limit : int, optional
            Bytes that the call may hold, matches included and queries not, for large batches on
            indexes larger than memory. Every table is then read once, in order. If the queries have
            weights and the recall is below 1, it is read by its headers, otherwise by permuted
            tables over the queries (which ``"bphs"`` or the name of a design asks for). With
            `first`, tables that take half of it at most may be looked up at random instead.
            Default: a quarter of the memory, for the matches alone.
        threads : int, optional
            Default: `SIMINDEX_THREADS`, or one for each processor; one below 4,096 queries.

        Returns
        -------
        Matches
            Unique, ordered by (query, distance, id).

        Raises
        ------
        InvalidOption
            If an option is out of range, `method` cannot answer within `h` exactly, or nothing fits
            into `memory` or `memory_limit`. The error says what would work.
        TooManyMatches
            If the matches would take more than `memory_limit`. Give `limit` or `first`, or call
            `query_stream`. With `first`, if those of so many queries do not fit: ask fewer at a
            time.
        InvalidBatch
            If the batch has another width, is neither texts nor fingerprints, or has a null, or if
            texts are given to an index whose rows came without a recipe.
        CorruptFile
            If a file or a record that the query needs is damaged.

        Notes
        -----
        Source: [PSM] sections 4 to 6; PSMA and BPHSA, or PSMF and BPHSF with `first`. Permuted
        tables are exact at any `recall`. If they are not exact for `h`, ``"bphs"`` raises
        InvalidOption, and ``"auto"`` does not use them. Slice lists are exact at any `h`: if two
        fingerprints of s slices are within h, one slice differs in at most h // s bits.
        """
        self._check_open()
        snapshot = self._current()  # first: it knows the recipe of the last commit
        asking = self._asked(batch)
        answerer = self._answerer
        question = answerer.question(
            **self._nearness(h, similarity, recall, asking, measure), first=first, method=method,
            memory=memory, memory_limit=memory_limit, threads=threads, limit=limit,
        )
        found = asking.numbered(answerer.search(
            snapshot, asking.rows, asking.weights, question, sketches=asking.sketches
        ))
        counts = self._handle.counts
        seconds = found.stats.seconds
        counts.searched(counts.query, 1, len(asking.rows), len(found.query), seconds)
        return found

    @typed
    def query_stream(
        self,
        batch: Batch | Any,
        *,
        h: int | None = None,
        similarity: float | None = None,
        measure: str = "cosine",
        first: bool = False,
        limit: int | None = None,
        recall: float = 1.0,
        method: str = "auto",
        memory: int | None = None,
        memory_limit: int | None = None,
        threads: int | None = None,
    ) -> Generator[Matches, None, None]:
        """Finds what `query` finds, in parts, so that an answer of any size takes bounded memory.

        Parameters
        ----------
        memory_limit : int, optional
            As in `query`, for each part. Default: 2 million matches, which take about 170 MB.

        Yields
        ------
        Matches
            Queries come in ascending order over all parts, and the matches of a query ordered by
            (distance, id), also where they are in several parts. A part may be empty. Its `stats`
            are those of its own search.

        Raises
        ------
        InvalidOption, InvalidBatch, CorruptFile
            As `query`. A wrong option or batch raises at the call itself.

        Notes
        -----
        All parts show the index as of the commit at the time of the call. Its files stay open until
        the last part, or until the iterator is closed or dropped. Closing the index does not end
        the iterator. The first parts have few queries, so that they come soon. If one query has
        more matches than a part holds, each half a million of them takes a pass over all rows.
        """
        self._check_open()
        snapshot = self._current()  # first: it knows the recipe of the last commit
        asking = self._asked(batch)
        answerer = self._answerer
        question = answerer.question(
            **self._nearness(h, similarity, recall, asking, measure), first=first, method=method,
            memory=memory, memory_limit=memory_limit, threads=threads, limit=limit,
        )
        counts, tally = self._handle.counts, self._handle.counts.query_stream
        counts.searched(tally, 1, len(asking.rows), 0, 0.0)
        found = answerer.stream(snapshot, asking.rows, asking.weights, question, asking.sketches)
        return each(self.path, asking.each_numbered(counts.each(tally, found)))

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
        """Finds the k documents nearest to each query in Hamming distance.

        A document is all rows of one id. Its distance is that of its nearest row.

        Parameters
        ----------
        batch : str, iterable of str, Batch, or uint64 (m,) or (m, W)
            As for `query`. Texts become fingerprints by the index's recipe.
        k : int
            At most the number of live rows.
        max_error : int or "auto"
            With slice lists: in how many bits a slice may differ from the query's, 0 to 16 (or 8,
            if slices are 8 bits wide). ``"auto"`` uses the smallest value that reaches `recall`.
        rerank : int, optional
            How many rows of each segment, with the highest scores, are compared exactly. Default:
            10 k or 256, whichever is more, or all listed rows if they are few. With
            ``max_error="auto"`` up to 8 times as many if necessary.
        method : str
            ``"scan"`` compares all rows and is exact. ``"issl"`` uses slice lists, which all
            segments must have. ``"auto"`` uses what is cheaper for each segment.
        recall : float, optional
            Share of the documents to find, with ``max_error="auto"``. Default: 0.95; 1.0 is exact.
        threads : int, optional
            Default: `SIMINDEX_THREADS`, or one for each processor; one if a scan would compare
            fewer than 8 M words.

        Returns
        -------
        TopMatches
            Columns (m, k), each query's documents ordered by (distance, id).

        Raises
        ------
        InvalidOption
            If an option is out of range, `k` exceeds the number of rows (also in an empty index,
            unless there are no queries), or a segment has no lists for ``method="issl"``. The error
            says what would work.
        InvalidBatch
            If the batch has another width, or is neither texts nor fingerprints.
        TooManyMatches
            If the answer would take more than a quarter of the memory.
        CorruptFile
            If rows, or slice lists that the call needs, are damaged.

        Notes
        -----
        Source: [ISSL] section 2. Slice lists may miss documents; `TopMatches.stats.guarantee` says
        what was searched. For a `recall`, up to 256 rows of the index are used as queries, once
        for each set of segments, which takes some seconds on large indexes. The recall therefore
        holds for queries similar to the rows of the index. Pending rows are always compared. A
        segment with deleted rows has a mask of one byte a row in memory.
        """
        self._check_open()
        snapshot = self._current()  # first: it knows the recipe of the last commit
        asking = self._asked(batch)
        answerer = self._answerer
        question = answerer.top_question(
            snapshot, k=k, max_error=max_error, rerank=rerank, method=method, recall=recall,
            threads=threads,
        )
        found = answerer.top(snapshot, asking.rows, question)
        counts, places = self._handle.counts, int((found.id != NO_NEIGHBOUR).sum())
        counts.searched(counts.top, 1, len(asking.rows), places, found.stats.seconds)
        return asking.numbered_top(found)

    @typed
    def gate(
        self,
        documents: Batch | Any,
        *,
        h: int | None = None,
        similarity: float | None = None,
        measure: str = "cosine",
        recall: float | None = None,
        limit: int | None = USUAL_LIMIT,
        max_matches: int | None = None,
        max_share: float | None = None,
        memory_limit: int | None = None,
        threads: int | None = None,
    ) -> GateReport:
        """Tells whether a collection has too many near-duplicates of documents of the index.

        For contamination: documents of a training set that are in a test set. For plagiarism:
        documents handed in that are copies of known ones.

        Parameters
        ----------
        documents : str, iterable of str, Batch, or uint64 (m,) or (m, W)
            As for `query`.
        h : int, optional
            Bits in which a match may differ.
        similarity : float, optional
            The least cosine of a match in place of h, as in `query`. Default: 0.85 if there are
            sketches, and h is not given.
        measure : str
            What `similarity` is, as in `query`.
        recall : float, optional
            As in `query`. Default: 1.0, and 0.95 of the pairs at a similarity.
        limit : int, optional
            Return at most so many matches for each document, the nearest ones. None returns all.
        max_matches : int, optional
            From so many documents with a match on the collection does not pass. Default: 1, unless
            `max_share` is given.
        max_share : float, optional
            From this share of the documents on it does not pass, either.

        Returns
        -------
        GateReport
            `passed`, how many documents there are, how many have a fingerprint and how many a
            match, and the matches.

        Raises
        ------
        InvalidOption, InvalidBatch, TooManyMatches, CorruptFile
            As `query`.

        Notes
        -----
        `simindex gate` reads collections of any size in parts, and writes reports.
        """
        limits = GateLimits.of(max_matches, max_share)
        self._check_open()
        self._current()  # first: it knows the recipe of the last commit
        asking = self._asked(documents)
        near = gate_nearness(
            h, similarity, recall, measure, sketched=asking.sketches is not None
        )
        found = self.query(
            asking, **near, limit=limit, memory_limit=memory_limit, threads=threads
        )
        checked = len(asking.rows)
        documents = checked if asking.places is None else asking.given
        return GateReport(documents, checked, len(np.unique(found.query)), found, limits)

    def pairs(
        self,
        *,
        h: int | None = None,
        similarity: float | None = None,
        measure: str = "cosine",
        recall: float = 1.0,
        method: str = "auto",
        memory_limit: int | None = None,
        collapse_equal: bool = False,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Iterator[Pairs]:
        """Yields all pairs of stored rows within Hamming distance h, inclusive, in parts.

        Parameters
        ----------
        similarity : float, optional
            The least cosine of a pair, from 0.5 to 1, in place of h, as in `query`. In an index
            with sketches these keep or reject the pairs within the radius; `Pairs.guarantee` says
            which share of them is expected.
        measure : str
            What `similarity` is, as in `query`.
        recall : float
            With `similarity`, the share of the pairs at that similarity that become candidates; 1.0
            stands for 0.85. Pairs within a radius are always all found.
        method : str
            ``"blocks"``, exact at any h, or ``"auto"``, which uses it, with one exception: for a
            `similarity` of 262,144 rows or more with sketches it compares rows in several orders
            of their bits, for as many candidates as `recall` asks for.
        memory_limit : int, optional
            Bytes that the search may take, not counting mapped files. Default: 1 GiB. With less,
            the rows are read more often.
        collapse_equal : bool
            Of rows with equal fingerprints, pair only the one with the smallest id. The others are
            listed with it, as `groups`. So a million equal rows give a million lines, not 5 10**11
            pairs. Where sketches are compared, rows whose sketches are equal, too, count as equal.
        threads : int, optional
            Default: `SIMINDEX_THREADS`, or one for each processor; one below 100,000 rows.
        progress : function (done, all), optional
            Called from time to time with the number of rows that are done and of all rows. The
            call reads all rows up to h + 1 times; each reading counts as a part of them.

        Yields
        ------
        Pairs
            Ids a < b, ordered by (a, b) within each part; `CollapsedPairs` with `collapse_equal`.
            No pair of rows comes twice. All pairs are those of the commit at the time of the call.

        Raises
        ------
        InvalidOption
            If an option is out of range. For `memory_limit` it names the smallest that works.

        Notes
        -----
        Rows of one id are one document and are not paired with each other. Two documents appear
        once for each pair of their rows within h. With `collapse_equal`, a pair is omitted if both
        groups are represented by rows of the same id.

        Source: [SHP] `find_all`, with h + 1 blocks. Each block takes one read of all fingerprints
        and one more for about every memory_limit / 140 rows of 64 bits; the first block takes two
        in all. Once all rows fit, everything is read once.
        """
        from simindex.pairs.all_pairs import index_pairs

        self._check_open()
        with told(self.path):
            snapshot = self._current()
        radius, similar = self._pairing(h, similarity, recall, measure)
        return each(self.path, index_pairs(
            snapshot, self.options, h=radius, similar=similar, method=method,
            memory_limit=memory_limit, collapse_equal=collapse_equal, threads=threads,
            progress=progress,
        ))

    @typed
    def clusters(
        self,
        *,
        h: int | None = None,
        similarity: float | None = None,
        measure: str = "cosine",
        recall: float = 1.0,
        mode: str = "star",
        prefer: Any = None,
        texts: Any = None,
        singletons: bool = True,
        memory_limit: int | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Clusters:
        """Groups near-duplicate documents into clusters. The rows of one id are one document.

        Parameters
        ----------
        similarity, measure, recall
            As in `pairs`: what is said of documents within h holds for those of the similarity.
        mode : str
            ``"star"``: a representative and documents within h of it, so that chains do not join
            documents that differ. ``"components"`` (single linkage): documents that pairs within h
            connect, over chains of any length. The representative is the smallest id, and may be
            further than h from others.
        prefer : ids (p,), or function, optional
            For stars: which documents become representatives before others, best first; others come
            after these, by id. A function gets the documents that have near-duplicates, as
            `Clusters`, once all pairs are found, and returns ids. Default: those with most pairs.
        texts : mapping, or function, optional
            For stars of a similarity: the texts of documents, by key (without keys, by id), of
            which one may have several. Pairs whose estimate leaves a doubt (docs/explanation/
            methods.md, "Doubtful pairs") are then decided by the exact similarity. A function gets
            the documents that are in such pairs, as `Clusters`, and returns the mapping. A pair
            without a text remains as estimated. Default: estimates decide alone.
        singletons : bool
            Whether to list documents without a near-duplicate, as clusters of one.
        memory_limit : int, optional
            Bytes that the call may take: at least 100 a row, or for stars 120 a row and 32 a pair.
            4 M documents in clusters of two took 86 and 103 bytes a row. With `texts` 96 a pair.
            Default: these and 1 GiB,
            and for pairs of stars a quarter of the machine's memory.
        threads, progress
            As in `pairs`.

        Returns
        -------
        Clusters
            Ordered by (cluster, id). `cluster` is the smallest id of a cluster. `distance` is the
            distance to the representative, between the nearest rows if documents have several.

        Raises
        ------
        InvalidOption
            If an option is out of range. For `memory_limit` the error names the smallest value that
            works, or what the pairs found so far would take.
        TooManyMatches
            If the pairs of stars would take more than the default.

        Notes
        -----
        Stars are made in these steps. The preferred document, or the one with the most pairs,
        becomes a representative (a pair is a row of it and a row of another document within h).
        Documents near it cannot become representatives any more. The same repeats with the
        remaining documents. Then every document that is no representative joins the nearest one. If
        two are equal, the smaller id wins. So no two representatives are within h of each other.
        The result depends only on documents, h and the preference, not on the order of appending,
        on segments, threads or memory. Source: Aslam, Pelekhov
        and Rus, The star clustering algorithm, 2004; here no document is in two clusters.

        With `texts`, a document is compared with at most the 16 nearest representatives before it,
        until one is near. A representative that is near without doubt is preferred.
        `Clusters.verification` counts what was compared.

        Equal fingerprints are compared as one. Stars of large families take longer than components:
        20 s instead of 1 s for a million rows, of which 300,000 are equal and 300,000 are within 3
        bits of those.
        """
        from simindex.pairs.clusters import index_clusters

        self._check_open()
        snapshot = self._current()  # first: it knows the recipe of the last commit
        radius, similar = self._pairing(h, similarity, recall, measure)
        return index_clusters(
            snapshot, self.options, h=radius, similar=similar, mode=mode, singletons=singletons,
            memory_limit=memory_limit, threads=threads, progress=progress, prefer=prefer,
            texts=texts, recipe=self.recipe,
        )

    def rows(self, *, chunk_rows: int = 1 << 16) -> Iterator[Batch]:
        """Yields all live rows of one commit as batches of 1 to `chunk_rows`, without weights.

        Rows are ordered by the first word of their fingerprints. Each batch has the recipe of the
        index, so you can use it as a query to another index.

        Raises InvalidOption if `chunk_rows` is not a whole number from 1 on.
        """
        self._check_open()
        size = require_whole(chunk_rows, "chunk_rows", 1)
        with told(self.path):
            snapshot = self._current()
            for batch, _ in live_rows(snapshot, size, self.options, self.recipe):
                yield batch

    @typed
    def explain(
        self,
        batch: Batch | Any,
        *,
        h: int | None = None,
        similarity: float | None = None,
        measure: str = "cosine",
        recall: float = 1.0,
        method: str = "auto",
        memory: int | None = None,
    ) -> Explanation:
        """Shows how `query` searches each segment, with predicted and measured cost.

        Options and errors are those of `query`, without `first`, `memory_limit` and `threads`. With
        `similarity` it shows how the candidates are found; reading sketches is not part of it.

        Notes
        -----
        Runs the plan of every segment several times, on one thread, and keeps no matches. The plan
        of a large batch may differ from that of a single query.
        """
        self._check_open()
        snapshot = self._current()  # first: it knows the recipe of the last commit
        asking = self._asked(batch)
        answerer = self._answerer
        near = self._handle.nearness(
            h, similarity, recall, self._handle.recipe, measure,
            weighted=asking.weights is not None,
        )
        question = answerer.question(**near, method=method, memory=memory)
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
        """Shows how `top` searches each segment, with predicted and measured cost.

        Options and errors are those of `top`. Runs the plan of every segment several times, on one
        thread.
        """
        self._check_open()
        snapshot = self._current()  # first: it knows the recipe of the last commit
        asking = self._asked(batch)
        answerer = self._answerer
        question = answerer.top_question(
            snapshot, k=k, max_error=max_error, rerank=rerank, method=method, recall=recall
        )
        return answerer.explain_top(snapshot, asking.rows, question)

    def _radius(self, h: int | None) -> int:
        handle = self._handle  # whose recipe is up to date: the call has taken its snapshot
        return handle.radius(h, handle.recipe)

    def _pairing(
        self, h: int | None, similarity: float | None, recall: float, measure: str
    ) -> tuple[int, Similar | None]:
        """The radius of pairs, and the similarity if there is one."""
        require_share(recall, "recall")
        found = self._handle.nearness(h, similarity, recall, self._handle.recipe, measure)
        return found["h"], found.get("similar")

    def _nearness(
        self, h: int | None, similarity: float | None, recall: float, asking: Asked, measure: str
    ) -> dict[str, Any]:
        handle = self._handle
        found = handle.nearness(
            h, similarity, recall, handle.recipe, measure, weighted=asking.weights is not None
        )
        if similarity is not None:
            require_sketches(asking, found["similar"])
        return found

    def _asked(self, given: Any) -> Asked:
        """A question that fits the index as of the snapshot taken last."""
        handle = self._handle
        if isinstance(given, Asked):  # of a call that has asked for it
            return given
        question = asked(given, recipe=handle.recipe_of_texts, bits=handle.options.bits)
        if isinstance(given, Batch):
            check_recipe(given.recipe, handle.recipe)
        words = handle.options.sketch_words
        if words and question.sketches is None and not len(question.rows):
            # An empty list may be one of texts, which a similarity compares by their sketches.
            question = question._replace(sketches=np.empty((0, record_bytes(words)), np.uint8))
        return question

    @typed
    def tune(self, *, h: int | None = None, machine: bool = True) -> Calibration:
        """Learns from the whole sample how bits flip, and measures the speed of this machine.

        Parameters
        ----------
        h : int, optional
            Largest distance of the near-duplicates to learn from.
        machine : bool
            Also measure the machine, in about ten seconds and 1.1 GB of memory; see
            `Index.machine`. A writer's next commit stores the constants with the index. A reader
            keeps them for its own handle.

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
        Without this call, queries learn from a part of the sample. Then the first query takes about
        half a second longer at 64 bits, and seconds longer for wide rows and large h.
        """
        from simindex.planning.measurement import measure
        from simindex.query import audit as auditing

        self._changes.check_may_keep()
        snapshot = self._current()
        h = self._radius(h)
        self._answerer.question(h=h)
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
        """The constants that plans use: measured by `tune`, or those of another machine."""
        self._check_open()
        return self._answerer.machine(self._current())

    @typed
    def audit(
        self,
        *,
        h: int | None = None,
        recall: float = AUDITED_RECALL,
        method: str = "auto",
        sample: int = AUDITED_ROWS,
        threads: int | None = None,
    ) -> Audit:
        """Measures which share of the matches queries at `recall` find, on rows of the index.

        Uses sampled rows with weights as queries, once at `recall` and once exactly. `stats` of
        this handle shows the result. After a writer's next commit, `stats` of every handle does.

        Parameters
        ----------
        sample : int
            How many of the `reservoir_rows` stored rows to use.

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
        The queries are rows of the index. Some of these may be in the sample from which simindex
        learned how bits flip, so the recall of other texts may differ. Costs `sample` exact
        queries.
        """
        from simindex.query import audit as auditing

        self._changes.check_may_keep()
        snapshot = self._current()
        question = self._answerer.question(
            h=self._radius(h), recall=recall, method=method, threads=threads
        )
        found = self._answerer.audit(snapshot, question, sample=sample)
        self._changes.keep("audit", "audit", auditing.encode(found))
        return found

    @typed
    def calibrate(
        self,
        documents: Iterable[str | bytes],
        *,
        similarity: float = SIMILARITY,
        recall: float = RECALL,
        precision: float = PRECISION,
        sample: int = SAMPLE,
        seed: int = 0,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> CalibrationReport:
        """Measures misses and false matches on a sample of documents, and recommends a threshold.

        The recommendation for the index's recipe is `own` of the report. After a writer's next
        commit, `advice` and `stats` of every handle show it.

        Parameters
        ----------
        documents : iterable of str or bytes
            Texts such as those of the index. If there are more than `sample`, as many are drawn.
        similarity : float
            Pairs of this exact cosine and above are near-duplicates, from 0.7 to 1.
        recall, precision : float
            What the recommended threshold should reach.
        sample : int
            At most so many documents, up to 100,000. The time grows with their square.
        seed : int
            Of the sample, the edits and the intervals.
        progress : function (done, all), optional
            Called from time to time.

        Returns
        -------
        CalibrationReport
            Tables of rates, and what is recommended.

        Raises
        ------
        InvalidOption
            If an option is out of range.
        InvalidBatch
            If a text is neither str nor UTF-8, fewer than two texts have a fingerprint, or the
            index's rows came without a recipe.

        Notes
        -----
        As `simindex.calibrate`, by the recipe of the index.
        """
        from simindex.advising import advice_bytes
        from simindex.advising.recommendation import calibrate

        self._changes.check_may_keep()
        self._current()  # first: it knows the recipe of the last commit
        recipe = self._handle.recipe_of_texts()
        if recipe is None:
            raise InvalidBatch(
                "this index has no recipe that turns texts into fingerprints",
                remedy="build it from texts, or call simindex.calibrate with a recipe",
            )
        found = calibrate(
            documents, recipe=recipe, similarity=similarity, recall=recall, precision=precision,
            sample=sample, seed=seed, threads=threads, progress=progress,
        )
        if found.own is not None:
            self._changes.keep("calibrate", advice_bytes.VALUE, advice_bytes.encode(found.own))
        return found

    @property
    @typed
    def advice(self) -> Advice | None:
        """What `calibrate` recommended last, and a writer committed; None before. Its `arguments`
        are those of `query`, `pairs` and `clusters`: ``index.clusters(**index.advice.arguments)``.
        """
        from simindex.advising.advice_bytes import stored_advice

        self._check_open()
        self._current()
        return stored_advice(self._handle.view.catalog)

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
        """Adds rows to the buffer. `commit` or `close` makes them durable and visible.

        Parameters
        ----------
        batch : Batch, or uint64 (n,) or (n, W)
            `ids`, `keys` and `weights` may accompany plain fingerprints, each as `Batch` takes it.
            `Recipe.batch` makes a Batch of texts.

        Returns
        -------
        uint64 (n,)
            The rows' ids: the given ones, those of the keys, or numbers in order of appending. Such
            a number may equal an id that you gave to another row, so do not mix both in one index.

        Raises
        ------
        InvalidBatch, RecipeMismatch
            If the batch does not fit the index. Nothing of it is kept.

        Notes
        -----
        After every `batch_rows` rows the buffer is written to a file, so memory does not grow.
        """
        return self._changes.append(batch, {"ids": ids, "keys": keys, "weights": weights})

    @typed
    def replace(self, batch: Batch) -> U64:
        """Deletes all rows of the batch's ids or keys, then appends the batch.

        One commit makes both durable and visible. Rows that wait for a commit are deleted, too, so
        the last of several replacements counts. Several rows of a batch may have the same key. A
        text that has no fingerprint (`Batch.skipped`) deletes the rows of its key, and adds none.

        Returns uint64 (n,) ids. Raises InvalidBatch if the batch has neither ids nor keys, or as
        `append` does.
        """
        return self._changes.replace(batch)

    @typed
    def delete(self, *, ids: Any = None, keys: Any = None) -> int:
        """Deletes all earlier rows with some ids or keys. `commit` makes this durable.

        Rows that wait for a commit are deleted, too. Rows that are appended later stay. Returns how
        many documents went away: different ids or keys that had a row. Costs what `contains` does.
        """
        return self._changes.delete(ids, keys)

    @typed
    def expire(self, *, older_than: timedelta | datetime | float) -> int:
        """Deletes all rows that were added before some time. `commit` makes this durable.

        A row came when `append`, `replace` or `ingest` was called; one that `seen_or_add` added,
        with the next of these, of deletions or of commits. The clock is that of the system. It
        counts in whole seconds: a row may stay up to a second longer. Where the clock goes back,
        rows get the last time that was given before, so none expires earlier than one that was
        committed before it.

        Parameters
        ----------
        older_than : timedelta, datetime or float
            The age in seconds, or the point in time, which has a time zone and is not to come.

        Returns
        -------
        int
            How many rows went away, those that waited for a commit included.

        Raises
        ------
        InvalidOption
            If `older_than` is neither, or negative, or the index does not store when its rows came,
            which ``IndexOptions(times=True)`` makes a new index do.

        Notes
        -----
        Reads 4 bytes of each row of the segments that have such a row. It stores one number for all
        deleted rows. Merges drop these rows.
        """
        return self._changes.expire(older_than)

    @typed
    def commit(self) -> None:
        """Makes everything since the last commit durable and visible: all of it or nothing.

        Background threads merge segments when there are too many. A later commit installs a
        finished merge. A commit waits for merges that are late, usually no longer than it takes
        itself. Two seconds after the last change, a background thread goes on until few segments
        are left, unless `min_merge` is 0; later calls do not wait for its merges.

        Raises
        ------
        StorageFull
            Nothing is changed or lost. Free some space and commit again.
        CommitFailed
            The outcome is unknown. The handle stops writing. The index, opened again, holds either
            this commit or the one before.
        """
        self._changes.commit()

    @typed
    def discard(self) -> None:
        """Drops all changes since the last commit: rows, replacements and deletions."""
        self._changes.discard()

    @typed
    def compact(
        self,
        *,
        full: bool = False,
        structures: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Commits, merges until few segments are left, and rewrites those with many deletions.

        Each segment that is left is more than three times as large as all smaller ones together.
        Waits for running merges and installs them; `full` and `structures` cancel them. With
        `structures` it merges as commits do, unless `full` is given, too.

        Parameters
        ----------
        full : bool
            Merge all segments into one, or into as few as their row numbers allow.
        structures : sequence of str, optional
            The structures of each segment from now on, as `IndexOptions.structures`. One commit
            builds missing and damaged permuted tables and slice lists, and drops those not named;
            another makes a segment of the rows that wait for one.
        progress : function (done, all), optional
            Called from time to time with the number of rows merged and of rows to merge, of one
            merge after the other. Rows count once all tables have them.

        Raises
        ------
        InvalidOption
            If a name is not a structure, or a design does not fit the width; then nothing has
            changed. Also if `progress` changes or closes the index; it may query.
        CorruptFile
            If rows to be merged are damaged. They stay as they were.

        Notes
        -----
        Drops deleted rows of the merged segments and frees their space. While it runs, old and new
        files exist at the same time. Memory is bounded (for slice lists by the option
        `slice_memory`), except that permuted tables are sorted one at a time in memory, 8 bytes a
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
        h: int | None = None,
        similarity: float | None = None,
        measure: str = "cosine",
        recall: float = 1.0,
        first: bool = False,
        method: str = "auto",
        memory_limit: int | None = None,
        threads: int | None = None,
    ) -> Matches:
        """Finds the matches of a batch in the index and in itself, and adds the batch.

        The answer is the same as if you asked and added one row after the other: row i matches the
        stored rows within h, and the earlier rows of the batch.

        Parameters
        ----------
        batch : Batch, or uint64 (m,) or (m, W)
            As for `append`. `ids`, `keys` and `weights` may accompany plain fingerprints.
        similarity, measure : float and str, optional
            In place of h, as in `pairs`, also for a batch with weights.
        recall : float
            Share of the matches in the index, as in `query`. Within the batch all are found.
        first : bool
            At most one match a row. A row with a match in the index gets none within the batch.
        memory_limit : int, optional
            For the search of the index, and all matches, as in `query`.

        Returns
        -------
        Matches
            As of `query`. `id` and `keys()` may name rows of the batch. `stats` describes the
            search of the index.

        Raises
        ------
        InvalidBatch, RecipeMismatch, InvalidOption
            If the batch does not fit the index, or an option is out of range.
        TooManyMatches
            If the matches, those within the batch included, would take more than `memory_limit`, or
            the batch has more than 134 million within itself. Nothing of it is kept. Give `first`.
        StorageFull, CommitFailed
            As `commit`. After CommitFailed, and after an interrupt of the commit, the index, opened
            again, holds the whole batch or nothing of it. After any other error nothing of the
            batch is kept.

        Notes
        -----
        First commits the buffered rows, so that they are matched, too. Then one commit makes the
        batch durable and visible. Meanwhile other threads that write wait.
        Source: [PSM] section 5, batch mode, PSMA or PSMF.
        """
        return self._changes.ingest(
            batch, {"ids": ids, "keys": keys, "weights": weights},
            {"h": h, "similarity": similarity, "measure": measure, "recall": recall,
             "first": as_flag(first, "first"), "method": method, "memory_limit": memory_limit,
             "threads": threads},
        )

    @typed
    def seen_or_add(
        self,
        text_or_batch: str | bytes | Batch,
        key: Any = None,
        *,
        h: int | None = None,
        similarity: float | None = None,
        measure: str = "cosine",
        recall: float = 1.0,
        commit_s: float | None = 5.0,
    ) -> Match | None:
        """Returns the nearest row within h of a document, or adds the document if there is none.

        Many threads may call it: if two bring the same page at once, one of them adds it.

        Parameters
        ----------
        text_or_batch : str, bytes or Batch
            A text, which the index's recipe turns into a fingerprint, or a batch of one.
        key : str, bytes or int, optional
            Its key, or its id in an index without keys, unless the batch has it.
        h, similarity, measure, recall
            How near a row must be, as in `ingest`.
        commit_s : float, optional
            The row is committed after this many seconds at the latest, without another call. With
            None, time causes no commit, see below.

        Returns
        -------
        Match, or None
            The nearest row, if there is one; then nothing was added. None if the document was
            added, or if it is a text without a fingerprint, which is not stored.

        Raises
        ------
        InvalidBatch, RecipeMismatch, InvalidOption
            If the document does not fit the index, or an option is out of range.
        StorageFull, CommitFailed
            As `commit`, before this document is added. Once there is space, call again with it.

        Notes
        -----
        A document whose `key` the index has already is compared like any other one. If it is near
        no row, it is added as a further row of this key. Rows of one key count as one document. To
        keep only the new row, use `replace`.

        Later calls see an added row at once. Queries see it from the next commit on, and only from
        then on does it survive a crash. A commit comes with `commit`, `close`, leaving a ``with``
        block cleanly, `commit_s`, or 65,536 waiting rows of 64 bits (fewer if rows are wider or
        segments smaller, or if their keys have more than 64 MiB). What `append`, `replace` and
        `delete` have buffered is committed first. If a commit that `commit_s` causes fails, for
        example on a full disk, the row continues to wait. A log message says so, and the commit is
        repeated every 5 seconds and by the next call.
        """
        return self._arrivals.seen_or_add(
            text_or_batch, key, (h, similarity, recall), measure, commit_s
        )

    # -- looking after it --------------------------------------------------------------------------

    @typed
    def check(self, *, progress: Progress | None = None) -> list[Finding]:
        """Reads and verifies everything. An empty list means that nothing is wrong.

        Severity ``"error"`` is damage. A ``"note"`` is harmless, such as a stray file. A writer
        waits for its merges. A reader reports a file as stray while it is written. `progress` is
        called from time to time with the rows verified and all rows; a row counts once for each
        table that holds it.
        """
        from simindex.repair.check import faults, strays

        self._check_open()
        handle = self._handle
        found = faults(
            handle.path, handle.catalog, index=handle.view.index, options=self.options,
            snapshot=self._current(), progress=progress,
        )
        if handle.writer is None:
            return [*found, *strays(handle.path, handle.catalog, self._current())]
        return [*found, *self._changes.strays()]

    @typed
    def backup(
        self,
        path: str | os.PathLike[str],
        *,
        verify: bool = False,
        progress: Progress | None = None,
    ) -> BackupReport:
        """Makes a backup of the newest commit, or updates an older backup to it.

        Readers and writers of the index go on meanwhile, in this process and in others. The backup
        is an index: `open` it, copy it, or put it in the place of a lost one.

        Parameters
        ----------
        path : str
            A folder outside of the index: a new or empty one, or a backup of an earlier commit.
        verify : bool
            Read every byte and compare it with its checksum, as `check` does. Without it, headers,
            footers and sizes of all files are compared, all of the catalog, and whole files that
            are copied.
        progress : function, optional
            Called from time to time with the bytes copied and all bytes to copy; then, with
            `verify`, with the bytes verified and all bytes.

        Returns
        -------
        BackupReport
            How many files were linked and copied, and of which commit.

        Raises
        ------
        IndexExists
            If there is anything else at the path: another index, a newer or changed backup, one
            from before a repair, or files of other kinds. It stays as it is.
        InvalidOption
            If the path is the index, within it, or a mount point.
        IndexNotFound
            If there is no folder for it.
        IndexLocked
            If the backup at the path is open for writing.
        CorruptFile
            If the index, or the older backup, is damaged. The older backup is as it was.
        StorageFull, StorageFailed
            If the system refused to write. The older backup is as it was.

        Notes
        -----
        If the file system has hard links, files of segments become hard links, which share their
        bytes with the index. Neither changes the other, because files of segments never change. If
        the disk loses the bytes, both lose them: make another backup on another disk, to which each
        file is copied once.

        The backup replaces the older one completely or not at all, also after a kill or a power
        cut. The next backup to the path removes what a killed one left next to it.
        Rows that wait for a commit are not part of it. Handles on the older backup raise
        ClosedIndex: open it again.
        """
        from simindex.backup.index_copy import make_backup

        self._check_open()
        handle = self._handle
        return make_backup(
            handle.path, handle.catalog, handle.view.index, path,
            verify=as_flag(verify, "verify"), progress=progress,
        )

    @typed
    def stats(self, *, skew: bool = False) -> IndexStats:
        """What the index contains, in numbers. After a deletion the first call reads all ids.

        `skew` adds the headers and fingerprints that most rows share. It reads the first word of
        every row: 0.12 s for 10 M.
        """
        from simindex.index.statistics import gather

        self._check_open()
        return gather(self._handle, self._current(), skew=as_flag(skew, "skew"))

    @typed
    def metrics(self, *, calls: bool = True) -> str:
        """Figures for monitoring, in the text format of OpenMetrics, which Prometheus reads.

        Rows, segments and bytes of the index, and what the calls of this handle have done since it
        was opened: documents that they looked up, found and added, time of searches and commits,
        merges. Each sample has a label `index` with the path. With ``calls=False`` the figures of
        the handle are left out. After a deletion the first call reads all ids, as in `stats`.
        """
        from simindex.index import metrics

        calls = as_flag(calls, "calls")
        self._check_open()
        return metrics.text(self._handle, self._current(), calls=calls)
