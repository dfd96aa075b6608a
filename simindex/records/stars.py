"""Stars of pairs that a caller has: clusters in which each member is near its representative.

    pairs            0-1  1-2  2-3                 of ids, each with its distance
    by pairs         1: 0 2       3                most pairs first, then the smallest id
    prefer 0         0: 1         2: 3

1. A member is near its representative: no chain makes it one.
2. A document that is near no representative is one itself.
3. The result depends on pairs and preference, not on the order in which pairs come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.arrays import I64, U16, U32, U64
from simindex.errors import InvalidBatch
from simindex.records.clusters import Clusters

Named = Callable[[], Iterable[tuple[NDArray[Any], Sequence[Any]]]]
"""Fetches columns of ids, with the keys of each."""

Prefer = Any | Callable[[Clusters], Any]
"""Ids, best first; or a function that gets the documents with near-duplicates, and returns them."""

AT_ONCE = 1 << 20
"""Documents of whose components stars are chosen at once, about."""

SPREAD = 8
"""Ids up to so many times their number are found in a table, others by sorting."""


def stars(
    a: NDArray[Any], b: NDArray[Any], distance: U16,
    equal: tuple[NDArray[Any], NDArray[Any]] | None, prefer: Any, *, similarity_bits: int,
    measure: str, named: Named | None,
) -> Clusters:
    """Stars of the documents of some pairs; see `Pairs.clusters`.

    `equal` are rows with a later one that equals them, where pairs are of the first ones only.
    """
    ids, representative, apart = _chosen(a, b, distance, equal, prefer, similarity_bits)
    own = np.arange(len(ids), dtype=np.uint32)
    smallest = np.empty(len(ids), np.uint32)
    smallest[representative[::-1]] = own[::-1]  # of several values the last one remains
    cluster = smallest[representative]
    order = _native.sort_rows(cluster.astype(np.uint64))
    cluster, representative = cluster[order], representative[order]
    size = np.bincount(cluster, minlength=len(ids))[cluster].astype(np.int64)
    return Clusters(
        ids, order.astype(np.uint32), cluster, representative, apart[order], size, "star",
        None if named is None else partial(_picked, named, ids), similarity_bits=similarity_bits,
        measure=measure,
    )


def stars_by_id(
    a: U64, b: U64, distance: U16, equal: tuple[U64, U64], *, similarity_bits: int
) -> tuple[U64, U64]:
    """The same as two columns, uint64 (D,): ids that have a pair, ascending, and their
    representatives."""
    ids, representative, _ = _chosen(a, b, distance, equal, None, similarity_bits)
    return ids, ids[representative]


def _chosen(
    a: NDArray[Any], b: NDArray[Any], distance: U16,
    equal: tuple[NDArray[Any], NDArray[Any]] | None, prefer: Any, similarity_bits: int,
) -> tuple[U64, U32, U16]:
    """Ids of the documents, and of each the place of its representative, and the distance."""
    columns = [column.astype(np.uint64, copy=False) for column in (a, b, *(equal or ()))]
    ids, (one, other, *same) = _placed(columns)
    del columns
    first = np.arange(len(ids), dtype=np.uint32)
    if equal is not None:
        forest = _native.Forest(len(ids))
        forest.unite(same[0].astype(np.uint64), same[1].astype(np.uint64))
        if not similarity_bits:  # of two shards, the first rows of equal ones are a pair
            near = distance == 0
            forest.unite(one[near].astype(np.uint64), other[near].astype(np.uint64))
            one, other, distance = one[~near], other[~near], distance[~near]
        first = forest.labels()
        one, other = first[one], first[other]
    one, other, distance = _once(one, other, distance)
    rank = np.empty(0, np.uint64)
    if prefer is not None:
        rank = ranks(prefer, ids)
    representative, apart = _by_components(first, one, other, distance, rank)
    return ids, representative, apart


def _by_components(
    first: U32, one: U32, other: U32, distance: U16, rank: U64
) -> tuple[U32, U16]:
    """The place of each document's representative, and the distance to it.

    No pair leads out of a component, so components are taken some at a time: the kernel takes 50
    bytes for each document that it is given.
    """
    documents = len(first)
    own = np.arange(documents, dtype=np.uint32)
    if documents <= AT_ONCE:
        return _native.star(first, own, documents, one, other, distance, rank)
    forest = _native.Forest(documents)
    for a, b in ((first, own), (one, other)):
        for start in range(0, len(a), AT_ONCE):
            piece = slice(start, start + AT_ONCE)
            forest.unite(a[piece].astype(np.uint64), b[piece].astype(np.uint64))
    group = forest.labels() // np.uint32(AT_ONCE)
    del forest
    place, of_pair = own, group[one]
    representative, apart = np.empty(documents, np.uint32), np.empty(documents, np.uint16)
    for number in range(int(group.max()) + 1):
        some = np.flatnonzero(group == number)
        pairs = of_pair == number
        place[some] = np.arange(len(some), dtype=np.uint32)
        chosen, apart[some] = _native.star(
            place[first[some]], np.arange(len(some), dtype=np.uint32), len(some),
            place[one[pairs]], place[other[pairs]], distance[pairs],
            rank[some] if len(rank) else rank,
        )
        representative[some] = some[chosen]
    return representative, apart


def ranks(preferred: Any, ids: U64) -> U64:
    """uint64 (D,): of each id its place among the preferred ones; the others come after them."""
    try:
        given = np.asarray(preferred)
        listed = given.astype(np.uint64) if given.size else np.empty(0, np.uint64)
    except (TypeError, ValueError, OverflowError) as error:
        raise _no_ids(preferred) from error
    if listed.ndim != 1 or (len(listed) and given.dtype.kind not in "iu"):
        raise _no_ids(preferred)
    rank = np.full(len(ids), len(listed), np.uint64)
    place = np.searchsorted(ids, listed)
    known = place < len(ids)
    known[known] = ids[place[known]] == listed[known]
    places, order = place[known], np.flatnonzero(known).astype(np.uint64)
    rank[places[::-1]] = order[::-1]  # of an id that comes twice, the first place
    return rank


def _no_ids(found: Any) -> InvalidBatch:
    return InvalidBatch(
        f"prefer: {found!r:.80} is not a list of ids", found=type(found).__name__,
        expected="ids (n,), best first",
    )


def _placed(columns: list[U64]) -> tuple[U64, list[U32]]:
    """The ids of all columns, ascending, and the columns as places among them."""
    count = sum(map(len, columns))
    most = max((int(column.max()) for column in columns if len(column)), default=0)
    if most < SPREAD * count:
        there = np.zeros(most + 1, np.bool_)
        for column in columns:
            there[column] = True
        table = np.cumsum(there, dtype=np.uint32) - np.uint32(1)
        return np.flatnonzero(there).astype(np.uint64), [table[column] for column in columns]
    joined = np.concatenate(columns) if columns else np.empty(0, np.uint64)
    ordered = joined[_native.sort_rows(joined)]
    new = np.ones(len(ordered), np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    ids = ordered[new]
    return ids, [np.searchsorted(ids, column).astype(np.uint32) for column in columns]


def _once(a: U32, b: U32, distance: U16) -> tuple[U32, U32, U16]:
    """Each pair once, at its least distance; and none of a row with itself."""
    low, high = np.minimum(a, b), np.maximum(a, b)
    key = low.astype(np.uint64) << np.uint64(32) | high
    if len(key) > 1 and not (key[1:] >= key[:-1]).all():
        order = _native.sort_rows(key)
        key, low, high, distance = key[order], low[order], high[order], distance[order]
    new = np.ones(len(key), np.bool_)
    new[1:] = key[1:] != key[:-1]
    if not new.all():
        distance = np.minimum.reduceat(distance, np.flatnonzero(new))
        low, high = low[new], high[new]
    others = low != high
    return (low, high, distance) if others.all() else (low[others], high[others], distance[others])


def _picked(named: Named, ids: U64, places: I64) -> list[Any]:
    keys: dict[int, Any] = {}
    for column, of in named():
        keys.update(zip(column.tolist(), of, strict=True))
    return [keys[name] for name in ids[places].tolist()]
