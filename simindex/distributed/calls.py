"""What the shards of one map answer, each call by tasks of its own.

    query, top                  a task for each shard, whose answers are merged
    pairs, losers               a task for each two shards
    clusters                    the same; then the rows of the roots; then the labels of each shard
    verify                      all bytes of each shard; then ids that two shards share

`run` runs tasks as `map` does. `Shards` chooses the map, and begins again if its shards are gone.

Invariants
1. Whatever a call needs to know, it takes from the map that it was given, and from its shards. So
   all of an answer is of one generation.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial, reduce
from itertools import chain
from typing import Any

import numpy as np

from simindex.checks import require_whole
from simindex.distributed import deduplication, forests, shard_check, shard_pairs
from simindex.distributed.creation import Run
from simindex.distributed.labels import merge_labels
from simindex.distributed.merged_answers import merge_matches, merge_top
from simindex.distributed.nearness import Near
from simindex.distributed.question import (
    asked_of,
    query_shard,
    question,
    settled,
    told_of,
    top_shard,
)
from simindex.distributed.shard_contents import verify_shard
from simindex.distributed.shardmap import ShardMap
from simindex.errors import InvalidOption
from simindex.records.batch import Batch
from simindex.records.clusters import Clusters
from simindex.records.matches import Matches, TopMatches
from simindex.records.pairs import Pairs
from simindex.records.reports import Finding


def query(run: Run, now: ShardMap, batch: Batch | Any, near: Near, how: dict[str, Any]) -> Matches:
    """See `Shards.query`; `how` are the other options of `query_shard`."""
    asked = question(now, batch, near)
    task = partial(query_shard, batch=asked.batch, **{**how, **asked.near.options})
    limit = 1 if how.get("first") else how.get("limit")
    return merge_matches(run(task, asked.shards), len(asked.batch), limit=limit)


def top(run: Run, now: ShardMap, batch: Batch | Any, k: int, how: dict[str, Any]) -> TopMatches:
    """See `Shards.top`; `how` are the other options of `top_shard`."""
    asked = asked_of(now, batch)
    require_whole(k, "k", 1)
    if k > now.rows and len(asked):
        raise InvalidOption(
            f"k={k} exceeds the {now.rows:,} rows of all shards",
            remedy=f"give at most {now.rows}" if now.rows else "append rows first",
            option="k", found=k, expected=now.rows,
        )
    return merge_top(run(partial(top_shard, batch=asked, k=k, **how), now.shards), k)


def pairs(
    run: Run, now: ShardMap, near: Near, limits: dict[str, Any], *, collapse_equal: bool = False
) -> Iterator[Pairs]:
    """See `Shards.pairs`; `limits` are the memory and the threads of each task."""
    near, radius = settled(now, near)
    tasks = shard_pairs.pair_tasks(now.shards, radius)
    task = partial(
        shard_pairs.pair_shards, **near.options, collapse_equal=collapse_equal, **limits
    )
    yield from run(task, [one for one, _ in tasks], [other for _, other in tasks])


def losers(
    run: Run, now: ShardMap, near: Near, limits: dict[str, Any]
) -> deduplication.Losers:
    """See `Shards.losers`."""
    return deduplication.losers(pairs(run, now, near, limits, collapse_equal=True))


def clusters(
    run: Run, now: ShardMap, near: Near, limits: dict[str, Any], *, mode: str, singletons: bool
) -> Clusters:
    """See `Shards.clusters`; the mode is one of `MODES`."""
    near, radius = settled(now, near)
    if mode == "star":
        grown = forests.forest_of_stars(pairs(run, now, near, limits, collapse_equal=True))
    else:
        tasks = shard_pairs.pair_tasks(now.shards, radius)
        task = partial(forests.forest_of_shards, **near.options, **limits)
        grown = reduce(
            forests.merge_forests,
            run(task, [one for one, _ in tasks], [other for _, other in tasks]),
            forests.forest([]),
        )
    grown = grown.below()
    named = np.unique(grown.root)
    fetch = partial(forests.rows_of, ids=named, near=near)
    roots = forests.merge_rows(run(fetch, now.shards))
    label = partial(forests.label_shard, grown=grown, roots=roots, near=near)
    del grown, named, fetch, roots  # tasks have them until the last one was sent
    labels = iter(run(label, now.shards))
    del label
    return merge_labels(labels, singletons=singletons, mode=mode, **told_of(now, near))


def verify(run: Run, now: ShardMap) -> list[Finding]:
    """See `Shards.verify`."""
    found = list(chain.from_iterable(run(verify_shard, now.shards)))
    if found:
        return found
    tasks = shard_check.overlapping(now.shards)
    shared = run(shard_check.shared_ids, [one for one, _ in tasks], [other for _, other in tasks])
    return [
        Finding("error", other.path, f"{one.said} and {other.said} both have the id {ids[0]}")
        for (one, other), ids in zip(tasks, shared, strict=True) if len(ids)
    ]
