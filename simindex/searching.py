"""Answers one query call on one snapshot: every table by its plan, then one ordered result."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.methods import bphs, psm, scan
from simindex.methods.base import Found, QueryPlan, TablePlan
from simindex.options import IndexOptions
from simindex.records import F32, U64, Matches, QueryStats
from simindex.simhash.volatility import Volatility
from simindex.snapshot import Snapshot
from simindex.storage.table import KeyHeap, Table
from simindex.storage.tombstones import Tombstones

Part = tuple[Table, Found]
"""A table and its rows found."""

SLICE_QUERIES = 1 << 16
"""Queries a kernel is given at a time, so that an interrupt is honoured in between; a sweep takes
more (`psm.slice_queries`)."""

THREADED_QUERIES = 4096
"""Fewer queries than these are not split over threads unless asked."""

NO_QUERY = np.empty(0, np.int64)
NO_ID = np.empty(0, np.uint64)
NO_DISTANCE = np.empty(0, np.uint16)
NO_ROW = np.empty(0, np.uint32)


def search(
    snapshot: Snapshot,
    plan: QueryPlan,
    queries: U64,
    weights: F32 | None,
    volatility: Volatility | None,
    *,
    h: int,
    first: bool,
    threads: int,
    options: IndexOptions,
) -> Matches:
    """Matches of all queries (m, W) in all tables, ordered by (query, distance, id)."""
    started = time.perf_counter()
    parts: list[Part] = []
    probes = compared = searched = 0
    open_queries: NDArray[np.int64] | None = None
    tombstones = snapshot.tombstones
    some, some_weights = queries, weights
    for table, table_plan in zip(snapshot.tables, plan.tables, strict=True):
        if open_queries is not None:
            some = queries[open_queries]
            some_weights = None if weights is None else weights[open_queries]
        if not len(some):
            break
        searched += 1
        deleted = tombstones.later_than(table.horizon)
        # A deleted row must not stand for a live one: then all matches are needed, not the first.
        early = first and not deleted
        size = _slice_size(table, table_plan, len(some), h, early, threads)
        if size == len(some):
            found = search_table(table, table_plan, some, some_weights, volatility, h, early)
        else:
            found = _search_slices(
                table, table_plan, some, some_weights, volatility, h, early, threads, size
            )
        probes, compared = probes + found.probes, compared + found.compared
        if not len(found.query):
            continue
        if deleted:
            found = _live(table, found, tombstones)
        if open_queries is not None:
            found = found._replace(query=open_queries[found.query])
        parts.append((table, found))
        if first:
            left = np.ones(len(queries), np.bool_)
            for _, earlier in parts:
                left[earlier.query] = False
            open_queries = np.flatnonzero(left).astype(np.int64)
    if searched < len(plan.tables):
        plan = QueryPlan.of(list(plan.tables[:searched]), plan.guarantee)
    stats = QueryStats._make(
        (
            plan.method, plan.guarantee, plan.exact, plan.flips, probes, compared, searched,
            time.perf_counter() - started,
        )
    )
    return _arranged(parts, len(queries), first, stats, options)


def _slice_size(
    table: Table, plan: TablePlan, queries: int, h: int, first: bool, threads: int
) -> int:
    if queries < psm.SWEPT_QUERIES and threads == 1:
        return queries
    swept = None
    if plan.method == "psm":
        rows, words = table.fingerprints.shape
        swept = psm.slice_queries(rows, words, plan, queries, first, threads)
    if plan.design is not None and not first:
        most = bphs.slice_queries(table, plan.design, h, threads)
        return min(most, -(-queries // threads))
    return min(SLICE_QUERIES, -(-queries // threads)) if swept is None else swept


def _search_slices(
    table: Table,
    plan: TablePlan,
    queries: U64,
    weights: F32 | None,
    volatility: Volatility | None,
    h: int,
    first: bool,
    threads: int,
    size: int,
) -> Found:
    starts = range(0, len(queries), size)

    def run_slice(start: int) -> Found:
        stop = start + size
        some = None if weights is None else weights[start:stop]
        return search_table(table, plan, queries[start:stop], some, volatility, h, first)

    if threads == 1:
        found = [run_slice(start) for start in starts]
    else:
        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(run_slice, starts))
    return Found(
        np.concatenate([part.query + start for part, start in zip(found, starts, strict=True)]),
        np.concatenate([part.row for part in found]),
        np.concatenate([part.distance for part in found]),
        np.concatenate([part.id for part in found]),
        sum(part.probes for part in found),
        sum(part.compared for part in found),
    )


def search_table(
    table: Table,
    plan: TablePlan,
    queries: U64,
    weights: F32 | None,
    volatility: Volatility | None,
    h: int,
    first: bool,
) -> Found:
    """Rows of one table within h of each query, by its plan; deleted ones included."""
    if plan.method == "scan":
        return scan.search(table, queries, h=h, first=first)
    if plan.design is not None:
        return bphs.search(table, queries, plan.design, h=h, first=first)
    return psm.search(table, queries, weights, plan, volatility, h=h, first=first)


def _live(table: Table, found: Found, tombstones: Tombstones) -> Found:
    dead = tombstones.dead(table, found.id, found.row.astype(np.int64))
    if not dead.any():
        return found
    live = ~dead
    return Found(
        found.query[live], found.row[live], found.distance[live], found.id[live], 0, 0
    )


def _arranged(
    parts: list[Part],
    queries: int,
    first: bool,
    stats: QueryStats,
    options: IndexOptions,
) -> Matches:
    keyed = options.keys is not False
    if not parts:
        empty_keys: list[str] = []
        return Matches(
            NO_QUERY, NO_ID, NO_DISTANCE, stats, (lambda: empty_keys) if keyed else None
        )
    if len(parts) == 1:
        query, row, distance, ids, *_ = parts[0][1]
    else:
        query = np.concatenate([found.query for _, found in parts])
        row = np.concatenate([found.row for _, found in parts])
        distance = np.concatenate([found.distance for _, found in parts])
        ids = np.concatenate([found.id for _, found in parts])
    order = None
    if len(query) > 1:
        query, ids, distance, order, repeated = _native.arrange(
            query, ids, distance, queries, keyed
        )
        kept = np.ones(len(query), np.bool_)
        if first:
            # Several rows of one query remain where deleted rows forbade an early stop.
            kept[1:] = query[1:] != query[:-1]
        elif repeated:
            # Rows of one id and distance are one match: a document that was stored twice.
            kept[1:] = (ids[1:] != ids[:-1]) | (query[1:] != query[:-1])
            kept[1:] |= distance[1:] != distance[:-1]
        if first or repeated:
            query, ids, distance = query[kept], ids[kept], distance[kept]
            order = order[kept] if keyed else order
    fetch = None
    if keyed:
        tables = [table for table, _ in parts]
        ends = np.cumsum([len(found.query) for _, found in parts])
        fetch = partial(_fetch_keys, tables, ends, row, order, options)
    return Matches(query, ids, distance, stats, fetch)


def _fetch_keys(
    tables: list[Table],
    ends: NDArray[np.int64],
    rows: NDArray[np.uint32],
    order: NDArray[np.int64] | None,
    options: IndexOptions,
) -> list[str] | list[bytes]:
    if order is None:
        order = np.arange(len(rows), dtype=np.int64)
    heaps = []
    start = 0
    for table, end in zip(tables, ends.tolist(), strict=True):
        if table.keys is not None:
            heaps.append(table.keys.take(rows[start:end].astype(np.int64)))
        start = end
    return KeyHeap.joined(heaps).take(order).decoded(options.key_kind)
