"""Clusters over shards: stars of all pairs, or union-find forests that merge in any order.

    pairs        3-5  5-9  4-8
    forest       node  3 4 5 8 9        ids that have a pair, ascending
                 root  3 4 3 4 3        the smallest id of each one's tree

    each pair of shards  ->  forest  \
                                      merge_forests, as a tree  ->  label_shard  ->  merge_labels
    each pair of shards  ->  forest  /                              of each shard

    pairs of all shards  ->  Pairs.clusters  ->  forest_of_stars  ->  label_shard  ->  merge_labels

A forest takes 16 bytes for each row that has a pair. Rows without one are in no forest, and
clusters of their own. `labels.py` puts the labels of all shards together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.arrays import U8, U16, U32, U64, no_keys
from simindex.distributed.nearness import Near
from simindex.distributed.shard import Held, named_rows, opened
from simindex.distributed.shard_pairs import among, pair_parts
from simindex.query.sketch_filter import distances
from simindex.records.batch import Batch
from simindex.records.pairs import CollapsedPairs, Pairs
from simindex.records.sketches import record_bytes
from simindex.records.stars import stars_by_id

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


    def below(self) -> Forest:
        """Only nodes that are not their own root: all that `roots_of` needs."""
        others = self.node != self.root
        return Forest(self.node[others], self.root[others])


class Rows(NamedTuple):
    """Some rows by their ids, which ascend: uint64 (n,)."""

    ids: U64
    rows: NDArray[Any]
    """Fingerprints uint64 (n, W), or records of sketches uint8 (n, 8 S + 1)."""


class Labels(NamedTuple):
    """Rows of a shard, uint64 (n,), and which of them are in the cluster of another one."""

    ids: U64
    place: U32
    """Among the rows: those that have another root than themselves, (k,). The rest are roots, or in
    no pair."""
    root: U64
    """Of each of these, (k,): the smallest id of a component, or the representative of a star."""
    distance: U16
    """To the row of that id, (k,)."""
    keys: list[Any] | None
    """Of all rows."""


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


def rows_of(held: Held, ids: U64, *, near: Near | None = None) -> Rows:
    """Those of some ids, which ascend, that a shard has. Reads all of its rows.

    Where sketches decide what is `near`, they are these in place of fingerprints.
    """
    found_ids, found_rows = [np.empty(0, np.uint64)], []
    with opened(held) as index:
        options, sketched = index.options, near is not None and near.sketched_in(index)
        found_rows.append(
            np.empty((0, record_bytes(options.sketch_words)), np.uint8) if sketched
            else np.empty((0, options.words), np.uint64)
        )
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
    columns = _Columns()
    for part in parts:
        columns.add(part)
    ids, root = columns.stars()
    return Forest(ids, root)


class _Columns:
    """The pairs of all shards, in the order in which they come, and without their keys."""

    def __init__(self) -> None:
        self._pairs: list[list[Any]] = [[], [], []]
        self._equal: list[list[Any]] = [[], []]
        self._bits = 0

    def add(self, part: Pairs) -> None:
        self._bits = max(self._bits, part.similarity_bits)
        for held, column in zip(self._pairs, (part.a, part.b, part.distance), strict=True):
            held.append(column)
        if isinstance(part, CollapsedPairs):
            for held, column in zip(
                self._equal, (part.groups.first, part.groups.row), strict=True
            ):
                held.append(column)

    def stars(self) -> tuple[U64, U64]:
        """Ids that have a pair, ascending, and their representatives."""
        a, b, distance = self._pairs
        first, row = self._equal
        return stars_by_id(
            _joined(a, np.uint64), _joined(b, np.uint64), _joined(distance, np.uint16),
            (_joined(first, np.uint64), _joined(row, np.uint64)), similarity_bits=self._bits,
        )


def _joined(parts: list[Any], kind: Any) -> Any:
    """The column of all parts, which is emptied."""
    column = np.concatenate([np.empty(0, kind), *parts])
    parts.clear()
    return column.astype(kind, copy=False)


def _compared(batch: Batch, sketched: bool) -> U64 | U8:
    if not sketched:
        return batch.rows
    assert batch.sketches is not None  # as the options of its index say
    return batch.sketches


def label_shard(held: Held, grown: Forest, roots: Rows, *, near: Near | None = None) -> Labels:
    """All rows of a shard with the roots of their clusters. `roots` has the rows of these, or where
    sketches decide what is `near` their sketches, of which distances are then.
    """
    ids, place, root, distance = [], [], [], []
    start = 0
    with opened(held) as index:
        keyed, keys = bool(index.options.keyed), no_keys(index.options.key_kind)
        similar = near.similar_in(index) if near is not None and near.sketched_in(index) else None
        for some, batch in named_rows(index):
            of = grown.roots_of(some)
            others = np.flatnonzero(of != some)
            at = np.searchsorted(roots.ids, of[others])
            if similar is None:
                apart = np.bitwise_count(batch.rows[others] ^ roots.rows[at])
                unlike = apart.sum(axis=1, dtype=np.uint16)
            else:
                assert batch.sketches is not None  # as the options of its index say
                unlike = distances(batch.sketches, others, roots.rows, at, similar)
            ids.append(some)
            place.append((others + start).astype(np.uint32))
            root.append(of[others])
            distance.append(unlike)
            keys += batch.keys or []
            start += len(some)
    none = np.empty(0, np.uint64)
    return Labels(
        np.concatenate([none, *ids]), np.concatenate([np.empty(0, np.uint32), *place]),
        np.concatenate([none, *root]), np.concatenate([np.empty(0, np.uint16), *distance]),
        keys if keyed else None,
    )


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
