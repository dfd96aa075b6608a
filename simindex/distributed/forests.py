"""Clusters over shards: stars of all pairs, or union-find forests that merge in any order.

    pairs        3-5  5-9  4-8
    forest       node  3 4 5 8 9        ids that have a pair, ascending
                 root  3 4 3 4 3        the smallest id of each one's tree

    each pair of shards  ->  forest  \
                                      merge_forests, as a tree  ->  label_shard  ->  merge_labels
    each pair of shards  ->  forest  /                              of each shard

    pairs of all shards  ->  Pairs.clusters  ->  forest_of_stars  ->  label_shard  ->  merge_labels

A forest takes 16 bytes for each row that has a pair. Rows without one are in no forest, and
clusters of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from simindex._kernels import _native
from simindex.arrays import U16, U64
from simindex.distributed.merging import merge_pairs
from simindex.distributed.pairing import among, pair_parts
from simindex.distributed.shard import Held, named_rows, opened
from simindex.errors import TooManyMatches
from simindex.pairs.clusters import MOST_ROWS
from simindex.records.batch import Batch
from simindex.records.clusters import Clusters
from simindex.records.pairs import CollapsedPairs, EqualRows, Pairs

LEAST_PAIRS = 1 << 20
"""Pairs that are kept before they become part of a forest."""


class Forest(NamedTuple):
    """Which ids pairs connect. Columns uint64 (n,); `node` ascends, and `root` is the smallest id
    of all that a node is connected with."""

    node: U64
    root: U64

    def roots_of(self, ids: U64) -> U64:
        """The root of each of some ids; one in no pair is its own."""
        if not len(self.node):
            return ids
        places = np.minimum(np.searchsorted(self.node, ids), len(self.node) - 1)
        return np.where(self.node[places] == ids, self.root[places], ids)


class Rows(NamedTuple):
    """Some rows by their ids, which ascend: uint64 (n,) and (n, W)."""

    ids: U64
    rows: U64


class Labels(NamedTuple):
    """Rows of a shard with their clusters: uint64 (n,), uint64 (n,), uint16 (n,), and keys."""

    ids: U64
    cluster: U64
    """The smallest id of a component, or the representative of a star."""
    distance: U16
    """To the row of that id."""
    keys: list[Any] | None


def forest(parts: Iterable[Pairs]) -> Forest:
    """The forest of some pairs, whose parts are taken one at a time."""
    none = np.empty(0, np.uint64)
    held, waiting = [Forest(none, none)], 0
    for part in parts:
        held.append(Forest(part.b.astype(np.uint64), part.a.astype(np.uint64)))
        if isinstance(part, CollapsedPairs):
            groups = part.groups
            held.append(Forest(groups.row.astype(np.uint64), groups.first.astype(np.uint64)))
            waiting += len(groups)
        waiting += len(part)
        # Each time the forest is made, there is as much to add as it has: O(p log p) in all.
        if waiting > max(LEAST_PAIRS, len(held[0].node)):
            held, waiting = [united(held)], 0
    return united(held)


def merge_forests(one: Forest, other: Forest) -> Forest:
    """The forest of the pairs of both. Associative and commutative."""
    return united([one, other])


def forest_of_shards(
    one: Held, other: Held, h: int | None = None, *, similarity: float | None = None,
    measure: str = "cosine", recall: float = 1.0, memory_limit: int | None = None,
    threads: int | None = None,
) -> Forest:
    """The forest of the pairs within h of two shards, or of one; see `pair_shards`."""
    return forest(pair_parts(
        one, other, h, similarity=similarity, measure=measure, recall=recall, collapse_equal=True,
        memory_limit=memory_limit, threads=threads,
    ))


def rows_of(held: Held, ids: U64, *, sketched: bool = False) -> Rows:
    """Those of some ids, which ascend, that a shard has. Reads all of its rows.

    With `sketched` they are sketches in place of fingerprints.
    """
    found_ids, found_rows = [np.empty(0, np.uint64)], []
    with opened(held) as index:
        bits = index.options.sketch_bits if sketched else index.options.bits
        found_rows.append(np.empty((0, bits // 64), np.uint64))
        for some, batch in named_rows(index):
            wanted = among(some, ids)
            found_ids.append(some[wanted])
            found_rows.append(_compared(batch, sketched)[wanted])
    joined, rows = np.concatenate(found_ids), np.concatenate(found_rows)
    order = np.argsort(joined, kind="stable")
    return Rows(joined[order], rows[order])


def merge_rows(parts: Iterable[Rows]) -> Rows:
    """Rows of several shards as one."""
    listed = list(parts)
    ids = np.concatenate([part.ids for part in listed])
    order = np.argsort(ids, kind="stable")
    return Rows(ids[order], np.concatenate([part.rows for part in listed])[order])


def forest_of_stars(parts: Iterable[Pairs]) -> Forest:
    """Representatives as roots, of all pairs of all shards with `collapse_equal`. It does not
    merge with others."""
    stars = merge_pairs(map(_without_keys, parts)).clusters()
    order = np.argsort(stars.id, kind="stable")
    return Forest(stars.id[order], stars.representative[order])


def _without_keys(part: Pairs) -> Pairs:
    told: dict[str, Any] = {"similarity_bits": part.similarity_bits, "measure": part.measure}
    if not isinstance(part, CollapsedPairs):
        return Pairs(part.a, part.b, part.distance, **told)
    groups = EqualRows(part.groups.first, part.groups.row)
    return CollapsedPairs(part.a, part.b, part.distance, groups, **told)


def _compared(batch: Batch, sketched: bool) -> U64:
    if not sketched:
        return batch.rows
    assert batch.sketch is not None  # as the options of its index say
    return batch.sketch


def label_shard(held: Held, grown: Forest, roots: Rows, *, sketched: bool = False) -> Labels:
    """All rows of a shard with the roots of their clusters. `roots` has the rows of these, or with
    `sketched` their sketches, of which distances are then.
    """
    ids, cluster, distance = [], [], []
    keys: list[Any] = []
    with opened(held) as index:
        keyed = bool(index.options.keyed)
        for some, batch in named_rows(index):
            root = grown.roots_of(some)
            apart = np.zeros(len(some), np.uint16)
            others = np.flatnonzero(root != some)
            if len(others):
                at = np.searchsorted(roots.ids, root[others])
                rows = _compared(batch, sketched)
                unlike = np.bitwise_count(rows[others] ^ roots.rows[at])
                apart[others] = unlike.sum(axis=1, dtype=np.uint16)
            ids.append(some)
            cluster.append(root)
            distance.append(apart)
            keys += batch.keys or []
    none = np.empty(0, np.uint64)
    return Labels(
        np.concatenate([none, *ids]), np.concatenate([none, *cluster]),
        np.concatenate([np.empty(0, np.uint16), *distance]), keys if keyed else None,
    )


def merge_labels(
    parts: Iterable[Labels], *, singletons: bool = True, mode: str = "components",
    similarity_bits: int = 0, measure: str = "cosine",
) -> Clusters:
    """The clusters of all shards, as `Index.clusters` returns them.

    `similarity_bits` and `measure` are those of the pairs.

    Raises TooManyMatches beyond 4,294,967,294 rows: keep the labels of the shards as they are.
    """
    listed = list(parts)
    ids = np.concatenate([part.ids for part in listed])
    if len(ids) > MOST_ROWS:
        raise TooManyMatches(
            f"{len(ids):,} rows are more than one answer of clusters holds, {MOST_ROWS:,}",
            remedy="use the labels of each shard, from label_shard", found=len(ids),
            expected=MOST_ROWS,
        )
    by_id = np.argsort(ids, kind="stable")
    ids = ids[by_id]
    root = np.searchsorted(ids, np.concatenate([part.cluster for part in listed])[by_id])
    smallest = np.empty(len(ids), np.int64)
    smallest[root[::-1]] = np.arange(len(ids))[::-1]  # of several values the last one remains
    cluster = smallest[root]
    distance = np.concatenate([part.distance for part in listed])[by_id]
    counts = np.bincount(cluster, minlength=len(ids)) if len(ids) else np.empty(0, np.int64)
    places = np.argsort(cluster, kind="stable")
    if not singletons:
        places = places[counts[cluster[places]] > 1]
    held = [key for part in listed for key in part.keys or []]
    fetch = None
    if any(part.keys is not None for part in listed):
        fetch = partial(_keys, [held[place] for place in by_id.tolist()])
    size = counts[cluster[places]].astype(np.int64)
    cluster, root = cluster.astype(np.uint32), root.astype(np.uint32)
    return Clusters(
        ids, places.astype(np.uint32), cluster[places], root[places], distance[places], size, mode,
        fetch, similarity_bits=similarity_bits, measure=measure,
    )


def _keys(keys: list[Any], places: Any) -> list[Any]:
    return [keys[place] for place in places.tolist()]


def united(parts: list[Forest]) -> Forest:
    """The forest of all (node, root) taken as pairs."""
    node = np.concatenate([part.node for part in parts])
    root = np.concatenate([part.root for part in parts])
    ids, places = np.unique(np.concatenate([node, root]), return_inverse=True)
    united = _native.Forest(len(ids))
    numbers: U64 = places.reshape(-1).astype(np.uint64)
    united.unite(numbers[: len(node)], numbers[len(node) :])
    # Places ascend with ids, so the smallest place is that of the smallest id.
    return Forest(ids, ids[united.labels()])
