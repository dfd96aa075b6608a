"""Clusters of an index's documents, or of fingerprints in memory.

    rows         0 1 2 3 4 5       in all tables together, as they are numbered
    pairs        0-1, 1-4          of all rows: they make a forest (mode "components"), or are
                                   kept with their distances (mode "star")
    documents    0 1 1 2 3 4       by id: rows that share one are one document

Invariants
1. Clusters depend on documents, their fingerprints and h. They do not depend on threads, memory,
   the order of appending, or segments.
2. Every member of a star is within h of its representative; no two representatives are. By a
   similarity this holds for the pairs that are found, `permuted_candidates.py`.

`stars.py` says which documents become representatives.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.arrays import F32, I64, U16, U32, U64
from simindex.checks import require_distance
from simindex.errors import InvalidBatch, InvalidOption
from simindex.options import IndexOptions, as_flag
from simindex.pairs import stars, verified_stars
from simindex.pairs.all_pairs import room_within, search_of, sketches_of, stored_keys
from simindex.pairs.doubtful_pairs import Texts, Verifier, known_texts, texts_of, verifier_of
from simindex.pairs.find_all import WORTH_THREADS
from simindex.pairs.live_rows import StoredRows
from simindex.pairs.sketch_filter import PairSketches
from simindex.pairs.stars import NearPairs, as_preference
from simindex.pairs.verified_stars import Doubtful, ranks_by_pairs
from simindex.planning.similarity import Similar
from simindex.query.sketch_filter import apart
from simindex.records.arguments import as_fingerprints
from simindex.records.clusters import Clusters, Fetch
from simindex.records.reports import Progress
from simindex.records.stars import Prefer, ranks
from simindex.resources.threads import thread_count
from simindex.simhash.radius import raw_radius
from simindex.storage.files.checksums import verified
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.table import sort_table

if TYPE_CHECKING:
    from simindex.simhash.recipe import Recipe

MODES = ("star", "components")

MOST_ROWS = (1 << 32) - 2

ROW_BYTES = {"components": 100, "star": 120}
"""Bytes of a row while ids are sorted and clusters get their names."""

FOREST_BYTES = 4
"""Bytes of a row while pairs are found."""

NO_DOCUMENT = np.uint32(0xFFFFFFFF)


def index_clusters(
    snapshot: Snapshot,
    options: IndexOptions,
    *,
    h: int,
    mode: str,
    singletons: bool,
    memory_limit: int | None,
    threads: int | None,
    progress: Progress | None,
    similar: Similar | None = None,
    prefer: Prefer | None = None,
    texts: Any = None,
    recipe: Recipe | None = None,
) -> Clusters:
    """See `Index.clusters`."""
    h = require_distance(h, options.bits)
    verifier = verifier_of(texts, similar, recipe, mode)
    stored = StoredRows(
        snapshot.tables, snapshot.tombstones, words=options.words, ids=False, numbered=True
    )
    keys = partial(stored_keys, stored, options) if options.keyed else None
    return _clusters(
        stored, h=h, mode=mode, singletons=singletons, memory_limit=memory_limit,
        threads=threads, progress=progress, keys=keys, similar=similar, prefer=prefer,
        verifier=verifier, texts=texts,
    )


def find_clusters(
    fingerprints: Any,
    *,
    h: int | None = None,
    mode: str = "star",
    singletons: bool = True,
    threads: int | None = None,
    prefer: Prefer | None = None,
) -> Clusters:
    """Groups fingerprints in memory into clusters. Ids are row numbers.

    `Index.clusters` describes the other parameters and the method.

    Parameters
    ----------
    fingerprints : uint64 (n,) or (n, W)
    h : int, optional
        Default: 3 for each 64 bits.

    Raises
    ------
    InvalidBatch, InvalidOption
        If the rows are not fingerprints, or an option is out of range.
    """
    rows = as_fingerprints(fingerprints)
    bits = 64 * rows.shape[1]
    h = require_distance(raw_radius(bits) if h is None else h, bits)
    if len(rows) > MOST_ROWS:
        raise InvalidBatch(f"{len(rows):,} rows: the limit of one call is {MOST_ROWS:,}")
    table = sort_table("rows", rows, np.arange(len(rows), dtype=np.uint64), None, horizon=0)
    stored = StoredRows([table], None, words=rows.shape[1], ids=False, numbered=True)
    return _clusters(
        stored, h=h, mode=mode, singletons=singletons, memory_limit=None, threads=threads,
        progress=None, keys=None, prefer=prefer,
    )


def _clusters(
    stored: StoredRows,
    *,
    h: int,
    mode: str,
    singletons: bool,
    memory_limit: int | None,
    threads: int | None,
    progress: Progress | None,
    keys: Any,
    similar: Similar | None = None,
    prefer: Prefer | None = None,
    verifier: Verifier | None = None,
    texts: Any = None,
) -> Clusters:
    singletons = as_flag(singletons, "singletons")
    if not isinstance(mode, str) or mode not in MODES:
        raise InvalidOption(
            f"mode={mode!r} is unknown",
            remedy=f"give one of {', '.join(MODES)}", option="mode", found=mode, expected=MODES,
        )
    prefer = as_preference(prefer, mode)
    if stored.stored > MOST_ROWS:
        raise InvalidOption(
            f"the index has {stored.stored:,} rows, but the limit of clusters is {MOST_ROWS:,}"
        )
    per_row = FOREST_BYTES if mode == "components" else FOREST_BYTES + 4
    room = room_within(
        memory_limit, stored, similar, beside=per_row * stored.stored,
        later=ROW_BYTES[mode] * stored.stored, purpose="clusters",
    )
    search = search_of(
        stored, similar if verifier is None else verifier.doubt.wide, h=h, room=room, collapse=True,
        threads=thread_count(threads, len(stored), worth=WORTH_THREADS), progress=progress,
    )
    if mode == "star":
        documents = Documents(stored)
        pair_bytes = stars.PAIR_BYTES + (0 if verifier is None else verified_stars.PAIR_BYTES)
        near = NearPairs.of(search, stored.stored, ROW_BYTES["star"], memory_limit, pair_bytes)
        rank = None
        if callable(prefer):
            cluster = _components(stored, documents, near.forest())
            rank = ranks(
                prefer(_listed(documents, cluster, cluster, None, keys, "components")),
                documents.ids,
            )
        elif prefer is not None:
            rank = ranks(prefer, documents.ids)
        told: dict[str, Any] = {} if similar is None else similar.told
        if verifier is None:
            representative, distance = near.stars(documents.of_row, len(documents.ids), rank)
        else:
            representative, distance, told["exact"] = _verified(
                stored, documents, near, rank, verifier, texts, keys
            )
            told["verification"] = verifier.told
        del near
        cluster = _first_of_each(representative, len(documents.ids))
        return _listed(documents, cluster, representative, distance, keys, mode, singletons, told)
    forest = _native.Forest(stored.stored)
    for found in search:
        assert found.a_numbers is not None and found.b_numbers is not None  # as asked for
        forest.unite(found.a_numbers, found.b_numbers)
    documents = Documents(stored)
    cluster = _components(stored, documents, forest)
    del forest
    distance = _distances(
        stored, documents, cluster, _counts(cluster), sketches_of(stored, similar)
    )
    told = {} if similar is None else similar.told
    return _listed(documents, cluster, cluster, distance, keys, mode, singletons, told)


def _verified(
    stored: StoredRows, documents: Documents, near: NearPairs, rank: U64 | None,
    verifier: Verifier, texts: Any, keys: Any,
) -> tuple[U32, U16, F32]:
    """Stars, with doubtful pairs decided by their texts."""
    of_row, count = documents.of_row, len(documents.ids)
    if rank is None:
        rank = ranks_by_pairs(near, of_row, count, verifier.doubt.similar.most, NO_DOCUMENT)
    forest = near.forest()
    documents.join(forest)
    certain = verifier.doubt.certain
    doubtful = Doubtful.of(near, forest.labels(), of_row, certain, NO_DOCUMENT)
    del forest
    fetch = partial(_document_keys, keys, documents.first_row) if keys is not None else None
    asked, alone = doubtful.asked, np.zeros(len(doubtful.asked), np.uint16)
    found = known_texts(texts, Clusters(
        documents.ids, asked, asked, asked, alone, np.ones(len(asked), np.int64), "star", fetch
    ))

    def of(document: int) -> Texts:
        place = np.array([document], np.int64)
        return texts_of(found, int(documents.ids[document]) if fetch is None else fetch(place)[0])

    return verified_stars.verified_stars(near, of_row, count, rank, doubtful, verifier, of)


def _components(stored: StoredRows, documents: Documents, forest: _native.Forest) -> U32:
    """The first document of each document's component."""
    documents.join(forest)
    return _first_of_each(forest.labels()[documents.first_row], stored.stored)


def _counts(cluster: U32) -> I64:
    return np.bincount(cluster, minlength=len(cluster)) if len(cluster) else np.empty(0, np.int64)


def _listed(
    documents: Documents, cluster: U32, representative: U32, distance: U16 | None, keys: Any,
    mode: str, singletons: bool = False, told: Mapping[str, Any] | None = None,
) -> Clusters:
    """The clusters by (cluster, id). Without distances they are all 0.

    `told` is what they say of similarities, `exact` ones by document.
    """
    if distance is None:
        distance = np.zeros(len(cluster), np.uint16)
    counts = _counts(cluster)
    places = _native.sort_rows(cluster.astype(np.uint64))
    if not singletons:
        places = places[counts[cluster[places]] > 1]
    cluster, representative = cluster[places], representative[places]
    fetch: Fetch | None = None
    if keys is not None:
        fetch = partial(_document_keys, keys, documents.first_row)
    told = dict(told or {})
    if "exact" in told:
        told["exact"] = told["exact"][places]
    return Clusters(
        documents.ids, places.astype(np.uint32), cluster, representative, distance[places],
        counts[cluster].astype(np.int64), mode, fetch, **told,
    )


def _document_keys(keys: Any, first_row: U32, places: I64) -> list[Any]:
    found: list[Any] = keys(first_row[places].astype(np.uint64))
    return found


class Documents:
    """Which rows are one document.

    ids         uint64 (D,)    ascending
    first_row   uint32 (D,)    the first row of each
    of_row      uint32 (n,)    the document of each stored row; NO_DOCUMENT for deleted ones
    """

    def __init__(self, stored: StoredRows) -> None:
        ids, rows = _ids(stored)
        order = _native.sort_rows(ids)
        ids, self._rows = ids[order], rows[order]
        del order, rows
        new = np.ones(len(ids), np.bool_)
        new[1:] = ids[1:] != ids[:-1]
        self.ids: U64 = ids[new]
        self.first_row: U32 = self._rows[new]
        self.of_row: U32 = np.full(stored.stored, NO_DOCUMENT, np.uint32)
        self.of_row[self._rows] = np.cumsum(new, dtype=np.uint32) - np.uint32(1)
        self._again = np.flatnonzero(~new)

    def join(self, forest: _native.Forest) -> None:
        """Puts the rows of each document together."""
        again = self._again
        forest.unite(
            self._rows[again].astype(np.uint64), self._rows[again - 1].astype(np.uint64)
        )


def _ids(stored: StoredRows) -> tuple[U64, U32]:
    """Ids and numbers of all live rows."""
    ids, rows = np.empty(len(stored), np.uint64), np.empty(len(stored), np.uint32)
    at = 0
    for place, start, some, chosen in stored.pieces():
        numbers = stored.numbers(place, start, len(some), chosen)
        column = verified(stored.tables[place].ids[start : start + len(some)])
        end = at + len(numbers)
        ids[at:end] = column if chosen is None else column[chosen]
        rows[at:end] = numbers
        at = end
    return ids, rows


def _first_of_each(label: NDArray[Any], labels: int) -> U32:
    """The first place that has the same label, for each place."""
    first = np.empty(labels, np.uint32)
    # Of several values assigned to one place the last remains, here that of the first document.
    first[label[::-1]] = np.arange(len(label), dtype=np.uint32)[::-1]
    firsts: U32 = first[label]
    return firsts


def _distances(
    stored: StoredRows, documents: Documents, cluster: U32, counts: I64,
    sketches: PairSketches | None,
) -> U16:
    """Least distance between a row of each document and one of its cluster's first document.

    Of sketches if they are given: rows are then compared by their numbers.
    """
    distance = np.zeros(len(cluster), np.uint16)
    if not len(cluster) or int(counts.max()) < 2:
        return distance
    own = np.arange(len(cluster), dtype=np.uint32)
    heads = (cluster == own) & (counts > 1)
    members = counts[cluster] > 1
    members[heads] = False
    found: list[tuple[U32, U64]] = []
    for place, start, rows, chosen in stored.pieces():
        numbers = stored.numbers(place, start, len(rows), chosen)
        of = documents.of_row[numbers]
        some = np.flatnonzero(heads[of])
        if sketches is not None:
            rows, chosen = numbers, None
        found.append((of[some], rows[some if chosen is None else chosen[some]]))
    of_head = np.concatenate([of for of, _ in found])
    order = np.argsort(of_head, kind="stable")
    of_head = of_head[order]
    head_rows = np.concatenate([rows for _, rows in found])[order]
    del found, order
    distance[members] = np.iinfo(np.uint16).max
    for place, start, rows, chosen in stored.pieces():
        numbers = stored.numbers(place, start, len(rows), chosen)
        of = documents.of_row[numbers]
        some = np.flatnonzero(members[of])
        if not len(some):
            continue
        if sketches is not None:
            rows, chosen = numbers, None
        of, rows = of[some], rows[some if chosen is None else chosen[some]]
        at = np.searchsorted(of_head, cluster[of], side="left")
        end = np.searchsorted(of_head, cluster[of], side="right")
        while len(of):  # once, except for documents of several rows
            bits = (
                apart(rows, head_rows[at]) if sketches is None
                else sketches.distance(rows, head_rows[at])
            )
            np.minimum.at(distance, of, bits)
            at = at + 1
            left = at < end
            of, rows, at, end = of[left], rows[left], at[left], end[left]
    return distance
