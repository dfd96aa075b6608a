"""Which shards a batch is asked of, and the answer of one. `merging` puts all answers together.

The batch goes to every shard as it is, so it is sent once. A shard with a region looks up only
those queries that can have a match in it.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from simindex.arrays import I64
from simindex.checks import require_distance
from simindex.distributed import regions
from simindex.distributed.shard import Held, Shard, opened
from simindex.distributed.shardmap import ShardMap
from simindex.records.batch import Batch, as_fingerprints
from simindex.records.matches import Matches, TopMatches, TopStats

LOOKED_AT = 1 << 12
"""Queries at a time until one is found for whose sake a shard is asked: mostly one of the first."""


def query_shard(
    held: Held,
    batch: Batch,
    h: int,
    *,
    first: bool = False,
    limit: int | None = None,
    recall: float = 1.0,
    method: str = "auto",
    memory: int | None = None,
    memory_limit: int | None = None,
    threads: int | None = None,
) -> Matches:
    """The rows of one shard within h of each query; parameters and errors are of `Index.query`.

    The numbers of queries are their places in the batch. Keys travel with the matches. Raises what
    `opened` raises if the shard is not what it should be.
    """
    with opened(held) as index:
        chosen = _asked(held, batch, h)
        found = index.query(
            batch if chosen is None else batch.take(chosen), h=h, first=first, limit=limit,
            recall=recall, method=method, memory=memory, memory_limit=memory_limit,
            threads=threads,
        )
        keys = found.keys()  # while the shard is open
    query = found.query if chosen is None else chosen[found.query]
    fetch = None if keys is None else partial(_picked, keys)
    return Matches(query, found.id, found.distance, found.stats, fetch)


def top_shard(
    held: Held,
    batch: Batch,
    k: int,
    *,
    method: str = "scan",
    max_error: int | str = 2,
    rerank: int | None = None,
    recall: float | None = None,
    threads: int | None = None,
) -> TopMatches:
    """The k rows of one shard nearest to each query, or as many as it has.

    Parameters and errors are of `Index.top`, except that `k` may exceed the rows of the shard. Then
    the columns have shape (m, rows).
    """
    with opened(held) as index:
        most = min(k, len(index))
        if not most:
            return _none(len(batch), batch.bits, keyed=bool(index.options.keyed))
        found = index.top(
            batch, k=most, method=method, max_error=max_error, rerank=rerank, recall=recall,
            threads=threads,
        )
        keys = found.keys()
    return TopMatches(
        found.id, found.distance, found.stats, found.bits,
        None if keys is None else lambda: keys,
    )


class Question(NamedTuple):
    """A batch that shards of a map can be asked, the radius, and the shards to ask."""

    batch: Batch
    h: int
    shards: tuple[Shard, ...]
    """At least one, which answers that there is nothing."""


def question(now: ShardMap, given: Batch | Any, h: int | None) -> Question:
    """What is asked of which shards; the radius is that of the map unless another is given.

    Raises InvalidOption for the radius, and InvalidBatch for a batch of another width.
    """
    h = radius_of(now, h)
    batch = asked_of(now, given)
    shards = tuple(shard for shard in now.shards if needed(shard, batch, h))
    return Question(batch, h, shards or now.shards[:1])


def asked_of(now: ShardMap, given: Batch | Any) -> Batch:
    """A batch, or fingerprints as one. Raises InvalidBatch if shards have another width."""
    batch = given if isinstance(given, Batch) else Batch(as_fingerprints(given))
    as_fingerprints(batch.rows, bits=now.facts.bits)
    return batch


def radius_of(now: ShardMap, h: int | None) -> int:
    """The given radius, or that of the map. Raises InvalidOption if it is out of range."""
    h = now.h if h is None else h
    require_distance(h, now.facts.bits)
    return h


def needed(shard: Shard, batch: Batch, h: int) -> bool:
    """Whether a query of a batch can have a match within h in a shard."""
    return bool(shard.rows) and any(
        regions.within(batch.rows[start : start + LOOKED_AT], shard.region, h).any()
        for start in range(0, len(batch), LOOKED_AT)
    )


def _asked(held: Held, batch: Batch, h: int) -> I64 | None:
    """The queries that can have a match, int64; None for all."""
    if not isinstance(held, Shard) or not held.region:
        return None
    chosen = regions.within(batch.rows, held.region, h)
    return None if chosen.all() else np.flatnonzero(chosen)


def _picked(keys: Any, places: I64 | None) -> Any:
    return keys if places is None else [keys[place] for place in places.tolist()]


def _none(queries: int, bits: int, *, keyed: bool) -> TopMatches:
    stats = TopStats("scan", "exact", True, None, None, None, 0, 0, 0, 0.0)
    ids, distance = np.empty((queries, 0), np.uint64), np.empty((queries, 0), np.uint16)
    keys: list[list[str]] = [[] for _ in range(queries)]
    return TopMatches(ids, distance, stats, bits, (lambda: keys) if keyed else None)
