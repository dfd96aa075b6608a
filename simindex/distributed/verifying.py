"""Whether shards are what the map says: at once, or by reading all of them.

    check_shard     opens it, and compares what costs nothing        before any call that writes
    verify_shard    reads all of it                                  (shard.py)
    shared_ids      ids that two shards both have                    once after a build
    known_ids       which of some ids a shard has                    before rows are added
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from simindex.arrays import U64, Bools
from simindex.distributed.shard import Held, Shard, named_rows, open_shard, opened


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
    """Ids that both shards have, ascending. Reads all ids of both, 16 bytes each."""
    return np.intersect1d(_ids(one), _ids(other), assume_unique=True)


def known_ids(held: Held, ids: U64) -> Bools:
    """Which of some ids a shard has, bool (n,). Reads all ids unless none can be among them."""
    if isinstance(held, Shard):
        possible = (ids >= np.uint64(held.least_id)) & (ids <= np.uint64(held.greatest_id))
        if not held.rows or not possible.any():
            return np.zeros(len(ids), np.bool_)
    known: Bools = np.isin(ids, _ids(held), kind="sort")
    return known


def _ids(held: Held) -> U64:
    with opened(held) as index:
        return np.concatenate([np.empty(0, np.uint64), *(ids for ids, _ in named_rows(index))])
