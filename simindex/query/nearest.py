"""The k nearest documents of each query on one snapshot: every table's own, merged.

    table 0    (distance, id)  (distance, id)  ...  k places       scan | issl
    table 1    (distance, id)  ...                  k places
    merged     each id once, at its least distance, by (distance, id): the first k

A document among the k nearest of all is among those of each table that holds its nearest row, so
no table need give more than k.

Invariants
1. The result depends neither on threads nor on how many queries are asked at a time.
2. Deleted rows are left out where rows are compared, not afterwards: they take no place of others.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from simindex.arrays import U32, U64
from simindex.errors import InvalidOption
from simindex.methods.base import TopFound
from simindex.options import IndexOptions
from simindex.planning import registry
from simindex.planning.planner import TopPlan
from simindex.planning.question import TopQuestion
from simindex.records.matches import NO_NEIGHBOUR, NearestKeys, TopMatches, TopStats
from simindex.resources.threads import thread_count
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.table import Table, keys_of

CALL_WORDS = 1 << 33
"""Words that one call of a kernel compares, about, which an interrupt waits for: a third of a
second."""

LEAST_QUERIES = 32
"""Of one call, however large the table: they share what is read."""

CALL_PLACES = 1 << 22
"""Places of all tables that are merged at a time."""

THREAD_WORDS, WORTH_WORDS = 1 << 16, 1 << 23
"""Words compared by a scan that a thread gets at least, and from which threads are worth it."""


def nearest(
    snapshot: Snapshot,
    plan: TopPlan,
    queries: U64,
    question: TopQuestion,
    *,
    options: IndexOptions,
) -> TopMatches:
    """The k nearest documents of all queries (m, W) in all tables; see `Index.top`.

    k may be beyond the rows: places that none fills are empty.
    """
    started = time.perf_counter()
    found, source, lists, compared = _searched(snapshot, plan, queries, question)
    stats = TopStats._make((
        plan.method, plan.guarantee, plan.exact, plan.recall, plan.max_error, plan.rerank, lists,
        compared, len(plan.tables), time.perf_counter() - started,
    ))
    fetch: NearestKeys | None = None
    if options.keyed:
        fetch = partial(_fetch_keys, snapshot.tables, found, source, options)
    return TopMatches(found.id, found.distance, stats, options.bits, fetch)


Searched = tuple[TopFound, U32 | None, int, int]
"""What is found, the number of the table that each place is from if there are several, and counts
of lists and rows."""


def _searched(
    snapshot: Snapshot, plan: TopPlan, queries: U64, question: TopQuestion
) -> Searched:
    k, words = question.k, queries.shape[1]
    rows = snapshot.stored_rows
    worth = WORTH_WORDS // THREAD_WORDS
    used = thread_count(
        question.threads, max(1, len(queries) * rows * words // THREAD_WORDS), worth=worth
    )
    tables = [
        (number, table, one, snapshot.dead(table))
        for number, (table, one) in enumerate(zip(snapshot.tables, plan.tables, strict=True))
        if len(table)
    ]
    places = sum(min(k, len(table)) for _, table, *_ in tables)
    size = max(LEAST_QUERIES, CALL_WORDS // max(1, rows * words))
    size = min(size, max(1, CALL_PLACES // max(1, places)))
    if len(tables) == 1 and len(queries) <= size and k <= len(tables[0][1]):
        _, table, one, dead = tables[0]
        found = registry.top_of(one.method).search(table, one, queries, k, dead, used)
        return found, None, found.lists, found.compared
    out, source = _room(len(queries), k, 64 * words)
    lists = compared = 0
    for start in range(0, len(queries), size):
        some = queries[start : start + size]
        parts = [
            registry.top_of(one.method).search(table, one, some, min(k, len(table)), dead, used)
            for _, table, one, dead in tables
        ]
        lists += sum(part.lists for part in parts)
        compared += sum(part.compared for part in parts)
        if parts:
            _merge(parts, [number for number, *_ in tables], 64 * words, out, source, start)
    return out, source, lists, compared


def _room(queries: int, k: int, bits: int) -> tuple[TopFound, U32]:
    try:
        return (
            TopFound(
                np.full((queries, k), NO_NEIGHBOUR, np.uint64),
                np.full((queries, k), bits + 1, np.uint16),
                np.full((queries, k), (1 << 32) - 1, np.uint32), 0, 0,
            ),
            np.zeros((queries, k), np.uint32),
        )
    except (MemoryError, ValueError) as error:
        raise InvalidOption(
            f"k={k} of {queries:,} queries takes {18 * k * queries:,} bytes, more than this "
            "machine has",
            remedy="ask fewer queries at a time, or give a smaller k", option="k", found=k,
        ) from error


def _merge(
    parts: Sequence[TopFound], numbers: Sequence[int], bits: int, out: TopFound, source: U32,
    start: int,
) -> None:
    """Writes the nearest documents of several tables to rows of `out` from `start` on."""
    k = out.id.shape[1]
    some = slice(start, start + len(parts[0].id))
    distance = np.concatenate([part.distance for part in parts], axis=1)
    ids = np.concatenate([part.id for part in parts], axis=1)
    if len(parts) > 1:
        # An id that several tables have counts at its least distance.
        order = np.lexsort((distance, ids), axis=1)
        sorted_ids = np.take_along_axis(ids, order, 1)
        again = np.zeros(ids.shape, np.bool_)
        again[:, 1:] = sorted_ids[:, 1:] == sorted_ids[:, :-1]
        if again.any():
            np.put_along_axis(ids, order, np.where(again, NO_NEIGHBOUR, sorted_ids), 1)
            far = np.take_along_axis(distance, order, 1)
            np.put_along_axis(distance, order, np.where(again, bits + 1, far), 1)
    order = np.lexsort((ids, distance), axis=1)[:, :k]
    filled = slice(0, order.shape[1])
    table = np.repeat(np.array(numbers, np.uint32), [part.id.shape[1] for part in parts])
    row = np.concatenate([part.row for part in parts], axis=1)
    out.id[some, filled] = np.take_along_axis(ids, order, 1)
    out.distance[some, filled] = np.take_along_axis(distance, order, 1)
    out.row[some, filled] = np.take_along_axis(row, order, 1)
    source[some, filled] = table[order]


def _fetch_keys(
    tables: Sequence[Table], found: TopFound, source: U32 | None, options: IndexOptions
) -> list[list[str]] | list[list[bytes]]:
    present = found.distance <= options.bits
    rows = found.row[present].astype(np.int64)
    if source is None:  # the only table that has rows
        tables = [table for table in tables if len(table)]
        table_of = np.zeros(len(rows), np.int64)
    else:
        table_of = source[present].astype(np.int64)
    keys: Any = keys_of(tables, table_of, rows).decoded(options.key_kind)
    ends = [0, *np.cumsum(present.sum(axis=1)).tolist()]
    kind: Any = type(keys)
    of_queries: list[list[str]] | list[list[bytes]] = kind(
        kind(keys[first:last]) for first, last in pairwise(ends)
    )
    return of_queries
