"""Rows found in some tables as one answer: ordered, each match once, with keys fetched later.

    parts      (table, rows found) ...     in any order
    arranged   by (query, distance, id)    rows of one id and distance are one match
    cut        the first `limit` matches of each query
    joined     answers to one set of queries after another as one
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate, chain
from typing import Any

import numpy as np

from simindex._kernels import _native
from simindex.arrays import I64, U32, keys_of_lists, no_keys
from simindex.methods.base import Found
from simindex.options import IndexOptions
from simindex.records.matches import Matches, MatchKeys, QueryStats
from simindex.storage.tables.table import Table, keys_of

Part = tuple[Table, Found]
"""A table and its rows found."""

NO_QUERY = np.empty(0, np.int64)
NO_ID = np.empty(0, np.uint64)
NO_DISTANCE = np.empty(0, np.uint16)

MATCH_BYTES = 80
"""Of a match while it is found and arranged, at most; a row of several words is copied, too."""


def match_bytes(words: int) -> int:
    """Memory of a match while it is found and arranged, for fingerprints of so many words."""
    return MATCH_BYTES + (8 * words if words > 1 else 0)


def no_matches(stats: QueryStats, options: IndexOptions) -> Matches:
    """The answer where nothing was found."""
    empty_keys = no_keys(options.key_kind)
    keyed = options.keyed
    return Matches(NO_QUERY, NO_ID, NO_DISTANCE, stats, (lambda _: empty_keys) if keyed else None)


def arranged(
    parts: list[Part],
    queries: int,
    *,
    first: bool,
    limit: int | None,
    stats: QueryStats,
    options: IndexOptions,
    threads: int,
) -> Matches:
    """The matches of so many queries, in order; of each with `first` one, or `limit` at most.

    Empties `parts`: their columns are given up as soon as they are joined.
    """
    keyed = options.keyed
    if not parts:
        return no_matches(stats, options)
    tables = [table for table, _ in parts]
    counts = [len(found.query) for _, found in parts]
    if len(parts) == 1:
        query, row, distance, ids, *_ = parts[0][1]
    else:
        query = np.concatenate([found.query for _, found in parts])
        row = np.concatenate([found.row for _, found in parts])
        distance = np.concatenate([found.distance for _, found in parts])
        ids = np.concatenate([found.id for _, found in parts])
    parts.clear()
    order = None
    if len(query) > 1:
        query, ids, distance, order, repeated = _native.arrange(
            query, ids, distance, queries, keyed, threads
        )
        kept = None
        if first:
            # Several rows of one query remain where deleted rows forbade an early stop.
            kept = np.ones(len(query), np.bool_)
            kept[1:] = query[1:] != query[:-1]
        elif repeated:
            # Rows of one id and distance are one match: a document that was stored twice.
            kept = np.ones(len(query), np.bool_)
            kept[1:] = (ids[1:] != ids[:-1]) | (query[1:] != query[:-1])
            kept[1:] |= distance[1:] != distance[:-1]
        if kept is not None:
            query, ids, distance = query[kept], ids[kept], distance[kept]
            order = order[kept] if keyed else order
    if limit is not None and len(query) > limit:
        among = np.arange(len(query)) - np.searchsorted(query, query)
        kept = among < limit
        query, ids, distance = query[kept], ids[kept], distance[kept]
        if keyed and order is not None:  # of the few that stay, so that nothing else is held
            places = order[kept]
            numbers = np.searchsorted(np.cumsum(counts), places, side="right")
            of_some = partial(_some_keys, tables, numbers, row[places], options)
            return Matches(query, ids, distance, stats, of_some)
    fetch = partial(_fetch_keys, tables, counts, row, order, options) if keyed else None
    return Matches(query, ids, distance, stats, fetch)


def _fetch_keys(
    tables: list[Table],
    counts: list[int],
    rows: U32,
    order: I64 | None,
    options: IndexOptions,
    places: I64 | None,
) -> list[str] | list[bytes]:
    """Keys of the matches at some places, or of all."""
    if order is not None:
        places = order if places is None else order[places]
    if places is None:
        numbers = np.repeat(np.arange(len(tables)), counts)
    else:
        numbers = np.searchsorted(np.cumsum(counts), places, side="right")
        rows = rows[places]
    return keys_of(tables, numbers, rows.astype(np.int64)).decoded(options.key_kind)


def _some_keys(
    tables: list[Table], numbers: I64, rows: U32, options: IndexOptions, places: I64 | None
) -> list[str] | list[bytes]:
    """The same, by the number of each match's table."""
    if places is not None:
        numbers, rows = numbers[places], rows[places]
    return keys_of(tables, numbers, rows.astype(np.int64)).decoded(options.key_kind)


def joined(parts: Sequence[Matches]) -> Matches:
    """Answers to queries in ascending order as one, with the statistics of all; one part or more.
    """
    if len(parts) == 1:
        return parts[0]
    stats = parts[0].stats
    for one in parts[1:]:
        stats = _added(stats, one.stats)
    keys = [one.fetch_keys for one in parts if one.fetch_keys is not None]
    starts = list(accumulate((len(one) for one in parts), initial=0))
    return Matches(
        np.concatenate([one.query for one in parts]),
        np.concatenate([one.id for one in parts]),
        np.concatenate([one.distance for one in parts]),
        stats,
        partial(_keys_of_parts, keys, np.array(starts, np.int64)) if keys else None,
    )


def _added(stats: QueryStats, more: QueryStats) -> QueryStats:
    methods = sorted({*stats.method.split("+"), *more.method.split("+")} - {"none"})
    return stats._replace(
        method="+".join(methods) or "none",
        exact=stats.exact and more.exact,
        flips=max(stats.flips, more.flips),
        probes=stats.probes + more.probes,
        rows_compared=stats.rows_compared + more.rows_compared,
        segments=max(stats.segments, more.segments),
        seconds=stats.seconds + more.seconds,
    )


def _keys_of_parts(
    parts: list[MatchKeys], starts: I64, places: I64 | None
) -> list[str] | list[bytes]:
    found: list[Any]
    if places is None:
        lists = [part() for part in parts]
        found = keys_of_lists(chain.from_iterable(lists), lists)
        return found
    found = [None] * len(places)
    owner = np.searchsorted(starts, places, side="right") - 1
    for number in np.unique(owner).tolist():
        at = np.flatnonzero(owner == number)
        for place, key in zip(at.tolist(), parts[number].of(places[at] - starts[number])(),
                              strict=True):
            found[place] = key
    found = keys_of_lists(found, [parts[0].of(NO_QUERY)()])
    return found
