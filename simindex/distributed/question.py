"""Which shards a batch is asked of, and the answer of one. `merged_answers` has that of all.

The batch goes to every shard as it is, so it is sent once. A shard with a region looks up only
those queries that can have a match in it.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from simindex.arrays import I64, keys_of_lists, no_keys, picked
from simindex.checks import require_distance
from simindex.distributed import regions
from simindex.distributed.nearness import Near
from simindex.distributed.shard import Held, Shard, opened
from simindex.distributed.shardmap import ShardMap
from simindex.options import IndexOptions
from simindex.planning.similarity import require_measure, require_sketches
from simindex.records.arguments import as_fingerprints
from simindex.records.batch import Batch
from simindex.records.matches import Matches, TopMatches, TopStats
from simindex.writing.admission import check_recipe

LOOKED_AT = 1 << 12
"""Queries at a time until one is found for whose sake a shard is asked: mostly one of the first."""


def query_shard(
    held: Held,
    batch: Batch,
    h: int | None = None,
    *,
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
    """The rows of one shard within h of each query; parameters and errors are of `Index.query`.

    The numbers of queries are their places in the batch. Keys travel with the matches. Raises what
    `opened` raises if the shard is not what it should be.
    """
    near = Near(h, similarity, measure, recall)
    with opened(held) as index:
        chosen = _asked(held, batch, near.radius_in(index))
        found = index.query(
            batch if chosen is None else batch.take(chosen), **{"recall": recall, **near.options},
            first=first, limit=limit, method=method, memory=memory, memory_limit=memory_limit,
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
            return _none(len(batch), batch.bits, options=index.options)
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
    """A batch that shards of a map can be asked, and the shards to ask."""

    batch: Batch
    near: Near
    """With a radius, or a similarity."""
    shards: tuple[Shard, ...]
    """At least one, which answers that there is nothing."""


def question(now: ShardMap, given: Batch | Any, near: Near) -> Question:
    """What is asked of which shards; the radius is that of the map unless another is given.

    Raises InvalidOption for the radius, RecipeMismatch for a batch of another recipe, and
    InvalidBatch for one of another width, or without the sketches that a similarity needs.
    """
    near, h = settled(now, near)
    batch = asked_of(now, given)
    _require_fitting(now, batch, near)
    shards = tuple(shard for shard in now.shards if needed(shard, batch, h))
    return Question(batch, near, shards or now.shards[:1])


def settled(now: ShardMap, near: Near) -> tuple[Near, int]:
    """The same with the radius of the map if nothing was given; and the radius that it means.

    Raises InvalidOption if it is out of range.
    """
    if near.similarity is None:
        require_measure(near.measure, None, None)
        h = radius_of(now, near.h)
        return near._replace(h=h), h
    with opened(now.shards[0]) as index:
        return near, near.radius_in(index)


def told_of(now: ShardMap, near: Near) -> dict[str, Any]:
    """What clusters say of a similarity: how many bits are compared, and its measure."""
    if near.similarity is None:
        return {}
    return {
        "similarity_bits": now.facts.sketch or now.facts.bits, "measure": near.measure
    }


def _require_fitting(now: ShardMap, batch: Batch, near: Near) -> None:
    """Raises RecipeMismatch or InvalidBatch, as each shard would, before any is asked."""
    recipe = batch.recipe
    if near.similarity is None and (recipe is None or recipe.identity == now.facts.recipe):
        return
    with opened(now.shards[0]) as index:
        check_recipe(recipe, index.recipe)
        similar = near.similar_in(index)
    if similar is not None:
        require_sketches(batch, similar)


def asked_of(now: ShardMap, given: Batch | Any) -> Batch:
    """A batch, or fingerprints as one. Raises InvalidBatch if shards have another width."""
    batch = given if isinstance(given, Batch) else Batch(as_fingerprints(given))
    as_fingerprints(batch.rows, bits=now.facts.bits)
    return batch


def radius_of(now: ShardMap, h: int | None) -> int:
    """The given radius, or that of the map. Raises InvalidOption if it is out of range."""
    return require_distance(now.h if h is None else h, now.facts.bits)


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
    return keys if places is None else picked(keys, places.tolist())


def _none(queries: int, bits: int, *, options: IndexOptions) -> TopMatches:
    stats = TopStats("scan", "exact", True, None, None, None, 0, 0, 0, 0.0)
    ids, distance = np.empty((queries, 0), np.uint64), np.empty((queries, 0), np.uint16)
    none = no_keys(options.key_kind)
    keys = keys_of_lists((no_keys(options.key_kind) for _ in range(queries)), [none])
    return TopMatches(ids, distance, stats, bits, (lambda: keys) if options.keyed else None)
