"""Answers of several shards as the answer of one index.

    query 0   shard 0: (1, id 7) (3, id 2)     shard 1: (2, id 9)     all: 7 9 2, by distance, id
    top       the k first of that              an id is in one shard, so none comes twice

The order is total, so the result depends neither on the order of the shards nor on their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from simindex._kernels import _native
from simindex.arrays import I64, keys_of_lists, picked
from simindex.errors import InvalidOption
from simindex.records.matches import NO_NEIGHBOUR, Matches, QueryStats, TopMatches, TopStats
from simindex.records.pairs import CollapsedPairs, EqualRows, Pairs
from simindex.resources.threads import thread_count

WORTH_THREADS = 100_000
"""Matches from which on several threads put them in order."""


def merge_matches(parts: Iterable[Matches], queries: int, *, limit: int | None = None) -> Matches:
    """All matches of several shards, ordered by (query, distance, id).

    Parameters
    ----------
    parts : iterable of Matches
        At least one: one for each shard that was asked.
    queries : int
        How many queries the batch has.
    limit : int, optional
        As each shard was asked with: at most so many matches for each query, the nearest.

    Notes
    -----
    May be called on answers of `merge_matches`, so that they are merged as a tree.
    """
    listed = _some(parts)
    keyed = any(part.fetch_keys is not None for part in listed)  # an empty shard may have none
    query = np.concatenate([part.query for part in listed])
    query, ids, distance, order, _ = _native.arrange(
        query, np.concatenate([part.id for part in listed]),
        np.concatenate([part.distance for part in listed]), queries, keyed,
        thread_count(None, len(query), worth=WORTH_THREADS),
    )
    if limit is not None:
        first = np.searchsorted(query, query)
        kept = np.flatnonzero(np.arange(len(query)) - first < limit)
        query, ids, distance = query[kept], ids[kept], distance[kept]
        order = order[kept] if keyed else order
    stats = [part.stats for part in listed]
    merged = QueryStats(
        _methods(one.method for one in stats), _guarantee(stats),
        all(one.exact for one in stats), max(one.flips for one in stats),
        sum(one.probes for one in stats), sum(one.rows_compared for one in stats),
        sum(one.segments for one in stats), sum(one.seconds for one in stats),
        stats[0].similarity_bits, stats[0].measure,
    )
    fetch = _Keys(listed, order) if keyed else None
    return Matches(query, ids, distance, merged, fetch)


class _Keys:
    """Fetches keys of merged matches from the parts they came from."""

    def __init__(self, parts: Sequence[Matches], order: I64) -> None:
        self._parts, self._order = parts, order

    def __call__(self, places: I64 | None) -> Any:
        order = self._order if places is None else self._order[places]
        begins = [0, *accumulate(len(part) for part in self._parts)]
        keys: list[Any] = [None] * len(order)
        lists = []
        for part, begin in zip(self._parts, begins[:-1], strict=True):
            ours = np.flatnonzero((order >= begin) & (order < begin + len(part)))
            fetched = part.take(order[ours] - begin).keys()
            lists.append(fetched)
            for place, key in zip(ours.tolist(), fetched or [], strict=True):
                keys[place] = key
        return keys_of_lists(keys, lists)


def merge_top(parts: Iterable[TopMatches], k: int) -> TopMatches:
    """The k nearest rows of several shards, ordered by (distance, id).

    `parts` has at least one answer, each with the k nearest rows of a shard, or all if it has
    fewer. Places that no row is left for are empty.
    """
    listed = _some(parts)
    bits, queries = listed[0].bits, len(listed[0].id)
    empty = np.full((queries, k), NO_NEIGHBOUR, np.uint64)
    ids = np.concatenate([*(part.id for part in listed), empty], axis=1)
    distance = np.concatenate(
        [*(part.distance for part in listed), np.full((queries, k), bits + 1, np.uint16)], axis=1
    )
    order = np.lexsort((ids, distance), axis=1)[:, :k]
    ids = np.take_along_axis(ids, order, axis=1)
    distance = np.take_along_axis(distance, order, axis=1)
    stats = [part.stats for part in listed]
    recalls = [one.recall for one in stats]
    known = [recall for recall in recalls if recall is not None]
    merged = TopStats(
        _methods(one.method for one in stats), _guarantee(stats),
        all(one.exact for one in stats), min(known) if len(known) == len(recalls) else None,
        _most(one.max_error for one in stats), _most(one.rerank for one in stats),
        sum(one.lists for one in stats), sum(one.rows_compared for one in stats),
        sum(one.segments for one in stats), sum(one.seconds for one in stats),
    )

    def keys() -> Any:
        fetched: list[Any] = [part.keys() for part in listed]
        held = [keys or [[] for _ in range(queries)] for keys in fetched]
        merged_keys = []
        for query, places in enumerate(order.tolist()):
            of_query = [key for some in held for key in some[query]]
            # Empty places of a part have no key, so places are counted among those that have one.
            filled = np.concatenate([part.distance[query] for part in listed]) <= bits
            at = np.cumsum(filled) - 1
            merged_keys.append(keys_of_lists((
                of_query[int(at[place])] for place in places
                if place < len(filled) and filled[place]
            ), fetched))
        return keys_of_lists(merged_keys, fetched)

    return TopMatches(
        ids, distance, merged, bits, keys if any(part.has_keys for part in listed) else None
    )


def merge_pairs(parts: Iterable[Pairs]) -> Pairs:
    """All pairs of several parts, ordered by (a, b); `CollapsedPairs` if the parts are."""
    listed = list(parts)
    a, b, distance, keys = _joined(
        [(part.a, part.b) for part in listed], [part.keys() for part in listed],
        [part.distance for part in listed],
    )
    told: dict[str, Any] = {}
    said = [part for part in listed if part.similarity_bits]  # a part without pairs says nothing
    if said:
        told = {
            "similarity_bits": said[0].similarity_bits, "measure": said[0].measure,
            "guarantee": "; ".join(sorted({part.guarantee for part in said})),
        }
    if not any(isinstance(part, CollapsedPairs) for part in listed):
        return Pairs(a, b, distance, keys, **told)
    groups = [part.groups for part in listed if isinstance(part, CollapsedPairs)]
    first, row, _, group_keys = _joined(
        [(one.first, one.row) for one in groups], [one.keys() for one in groups],
        [np.zeros(len(one), np.uint16) for one in groups],
    )
    return CollapsedPairs(a, b, distance, EqualRows(first, row, group_keys), keys, **told)


def _joined(columns: list[Any], keys: list[Any], distances: list[Any]) -> tuple[Any, ...]:
    none = np.empty(0, np.uint64)
    a = np.concatenate([none, *(first for first, _ in columns)])
    b = np.concatenate([none, *(second for _, second in columns)])
    distance = np.concatenate([np.empty(0, np.uint16), *distances])
    order = np.lexsort((b, a))
    fetch = None
    if any(one is not None for one in keys):
        held = [one for one in keys if one is not None]
        listed = [
            keys_of_lists((key for one in held for key in one[side]), (one[side] for one in held))
            for side in (0, 1)
        ]
        in_order = tuple(picked(side, order.tolist()) for side in listed)

        def fetch() -> Any:
            return in_order

    return a[order], b[order], distance[order], fetch


def _some(parts: Iterable[Any]) -> list[Any]:
    listed = list(parts)
    if not listed:
        raise InvalidOption("there are no answers to merge", remedy="ask one shard at least")
    return listed


def _methods(methods: Iterable[str]) -> str:
    return "+".join(sorted({one for method in methods for one in method.split("+")}))


def _guarantee(stats: Sequence[QueryStats] | Sequence[TopStats]) -> str:
    return "; ".join(sorted({one.guarantee for one in stats}))


def _most(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return max(known) if known else None
