"""The labels of all shards as clusters, in little more memory than the clusters take.

    ids               3  4  5  8  9         of all shards, ascending
    representative    5  4  5  4  5         of each row; itself, but for those that labels name
    smallest          3  4  3  4  3         of each row's cluster
    later             -  -  5  8  9         rows that are not the smallest of their cluster
    listed            3  5  9  |  4  8      each smallest row, and after it the later ones

Most rows are alone, so that only `later` has to be put in order. Places among the ids are uint32,
and columns are taken in pieces: numpy needs 8 bytes for each place of a piece.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simindex.arrays import I64, U16, U32, U64, keys_of_lists, picked
from simindex.distributed.forests import Labels
from simindex.errors import TooManyMatches
from simindex.pairs.clusters import MOST_ROWS
from simindex.records.clusters import Clusters

PIECE_ROWS = 1 << 20
"""Of a column that is taken at once."""


def merge_labels(
    parts: Iterable[Labels], *, singletons: bool = True, mode: str = "components",
    similarity_bits: int = 0, measure: str = "cosine",
) -> Clusters:
    """The clusters of all shards, as `Index.clusters` returns them.

    Parts are taken one at a time. `similarity_bits` and `measure` are those of the pairs.

    Raises TooManyMatches beyond 4,294,967,294 rows: keep the labels of the shards as they are.
    """
    held, others, roots, distances = [], [], [], []
    keys: Any = None
    for part in parts:
        held.append(part.ids)
        others.append(part.ids[part.place])
        roots.append(part.root)
        distances.append(part.distance)
        if part.keys is not None:
            if not keys:
                keys = keys_of_lists([], [keys, part.keys])
            keys += part.keys
    _require_few(sum(map(len, held)))
    ids = np.concatenate(held)
    held.clear()
    fetch = None
    if keys is not None:
        fetch = partial(_keys, picked(keys, np.argsort(ids, kind="stable").tolist()))
        keys.clear()
    ids.sort()
    member = _places(ids, others)
    representative = np.arange(len(ids), dtype=np.uint32)
    root = _places(ids, roots)
    representative[member] = root
    distance = np.zeros(len(ids), np.uint16)
    distance[member] = np.concatenate([np.empty(0, np.uint16), *distances])
    distances.clear()
    smallest = np.arange(len(ids), dtype=np.uint32)
    np.minimum.at(smallest, root, member)
    del member, root
    cluster = _taken(smallest, representative)
    del smallest
    size = np.ones(len(ids), np.uint32)
    later = np.flatnonzero(cluster != np.arange(len(ids), dtype=np.uint32)).astype(np.uint32)
    np.add.at(size, cluster[later], np.uint32(1))
    places = _listed(cluster, later, size, singletons)
    del later
    of_listed = _taken(cluster, places)
    del cluster
    sizes: I64 = _taken(size, of_listed).astype(np.int64)
    del size
    own: U32 = _taken(representative, places)
    del representative
    apart: U16 = _taken(distance, places)
    return Clusters(
        ids, places, of_listed, own, apart, sizes, mode, fetch, similarity_bits=similarity_bits,
        measure=measure,
    )


def _require_few(rows: int) -> None:
    if rows > MOST_ROWS:
        raise TooManyMatches(
            f"{rows:,} rows are more than one answer of clusters holds, {MOST_ROWS:,}",
            remedy="use the labels of each shard, from label_shard", found=rows,
            expected=MOST_ROWS,
        )


def _listed(cluster: U32, later: U32, size: U32, singletons: bool) -> U32:
    """Places in the order of (cluster, id); without `singletons`, of clusters of two or more."""
    first = np.ones(len(cluster), np.bool_)
    first[later] = False
    if not singletons:
        first &= size > 1
    heads = np.flatnonzero(first).astype(np.uint32)
    begin = np.zeros(len(heads) + 1, np.int64)
    np.cumsum(_taken(size, heads), out=begin[1:])
    places = np.empty(begin[-1], np.uint32)
    places[begin[:-1]] = heads
    order = np.argsort(cluster[later], kind="stable")
    later = later[order]
    of = cluster[later]
    new = np.flatnonzero(np.r_[True, of[1:] != of[:-1]]) if len(of) else np.empty(0, np.int64)
    within = np.arange(len(of)) - np.repeat(new, np.diff(np.r_[new, len(of)]))
    places[begin[np.searchsorted(heads, of)] + 1 + within] = later
    return places


def _places(ids: U64, parts: list[U64]) -> U32:
    """Places of some ids among all, which ascend. The list is emptied."""
    places = [np.searchsorted(ids, part).astype(np.uint32) for part in parts]
    parts.clear()
    return np.concatenate([np.empty(0, np.uint32), *places])


def _taken(column: NDArray[Any], places: U32) -> Any:
    found = np.empty(len(places), column.dtype)
    for start in range(0, len(places), PIECE_ROWS):
        piece = slice(start, start + PIECE_ROWS)
        found[piece] = column[places[piece]]
    return found


def _keys(keys: list[Any], places: Any) -> list[Any]:
    found: list[Any] = picked(keys, places.tolist())
    return found
