"""Whether shards are what the map says: at once, or by reading all of them.

    check_shard     opens it, and compares what costs nothing        before any call that writes
    verify_shard    reads all of it                                  (shard_contents.py)
    shared_ids      ids that two shards both have                    once after a build
    known_names     which rows a shard has already                   before rows are added
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from simindex.arrays import U64, Bools
from simindex.distributed.shard import Held, Shard, named_rows, open_shard, opened
from simindex.records.batch import Batch


def check_shard(shard: Shard) -> None:
    """Raises what `opened` raises, unless the shard is there, whole, and that of the map."""
    open_shard(shard).close()


def overlapping(shards: tuple[Shard, ...]) -> list[tuple[Shard, Shard]]:
    """Pairs of shards whose smallest and largest ids do not rule out that they share one."""
    return [
        (one, other) for one, other in combinations(shards, 2)
        if one.rows and other.rows
        and one.least_id <= other.greatest_id and other.least_id <= one.greatest_id
    ]


def shared_ids(one: Held, other: Held) -> U64:
    """Ids that both shards have, ascending. Reads all ids of both, about 32 bytes each."""
    return np.intersect1d(_ids(one), _ids(other), assume_unique=True)


def known_names(held: Held, ids: U64, batch: Batch) -> Bools:
    """Which rows of a batch have an id or key that a shard has, bool (n,).

    `ids` are those of the rows. Reads nothing if none of them can be in the shard; else it costs
    what `Index.contains` does.
    """
    if isinstance(held, Shard):
        possible = (ids >= np.uint64(held.least_id)) & (ids <= np.uint64(held.greatest_id))
        if not held.rows or not possible.any():
            return np.zeros(len(ids), np.bool_)
    with opened(held) as index:
        if batch.keys is not None:
            return index.contains(keys=batch.keys)
        return index.contains(ids=ids)


def _ids(held: Held) -> U64:
    with opened(held) as index:
        found, end = np.empty(len(index), np.uint64), 0
        for ids, _ in named_rows(index):
            found[end : end + len(ids)] = ids
            end += len(ids)
    return found
