"""Answers one query call on one snapshot: every table by its plan, then one ordered result.

    online      slices of the queries, each by one thread            `Method.search`
    batch       a pass over the table, in order, by all threads      `Method.whole`
    bounded     the same in chunks that are given back               `QueryPlan.stream`
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from simindex._kernels import _native
from simindex.arrays import F32, I64, U64
from simindex.methods.base import Asked, Found, QueryPlan, TablePlan, firsts, joined, live, take
from simindex.methods.bphs import SLICE_QUERIES, slice_queries
from simindex.options import IndexOptions
from simindex.planning import registry
from simindex.planning.question import Question
from simindex.query.arrangement import Part, arranged
from simindex.query.sketch_filter import Sketched, promised
from simindex.query.windows import first_live
from simindex.records.matches import Matches, QueryStats
from simindex.resources.threads import Pool
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.table import Table

Search = Callable[[Table, TablePlan, Asked], Found]
"""Of some queries, on one thread; see `Method.search`."""

THREADED_QUERIES = 4096
"""Fewer queries than these are not split over threads unless asked."""


def search(
    snapshot: Snapshot,
    plan: QueryPlan,
    queries: U64,
    weights: F32 | None,
    question: Question,
    *,
    threads: int,
    options: IndexOptions,
    room: _native.Room | None = None,
    sketched: Sketched | None = None,
) -> Matches:
    """Matches of all queries (m, W) in all tables, ordered by (query, distance, id).

    With the question's `limit`, the first ones of each query. Raises NoRoom before it holds more
    matches than there is `room` for. With `sketched`, which has the sketches of the queries, rows
    within h are kept by their sketches, and distances are those of sketches.
    """
    started = time.perf_counter()
    h, first = question.h, question.stops_early
    parts: list[Part] = []
    probes = compared = searched = 0
    open_queries: I64 | None = None
    tombstones = snapshot.tombstones
    some, some_weights = queries, weights
    built: dict[str, Any] = {}
    for table, table_plan in zip(snapshot.tables, plan.tables, strict=True):
        if open_queries is not None:
            some = queries[open_queries]
            some_weights = None if weights is None else weights[open_queries]
        if not len(some):
            break
        searched += 1
        deleted = tombstones.concerns(table)
        asked = Asked(
            some, h, first, some_weights, plan.volatility, threads, plan.stream, tombstones, built,
            room,
        )
        found = search_by(table, table_plan, asked)
        probes, compared = probes + found.probes, compared + found.compared
        if not len(found.query):
            continue
        if deleted and first:
            found = _first_live(table, table_plan, asked, found)
        elif deleted:
            held = len(found.query)
            found = live(table, found, tombstones)
            asked.dropped(held - len(found.query))
        if open_queries is not None:
            found = found._replace(query=open_queries[found.query])
        if sketched is not None:
            held = len(found.query)
            found = sketched.kept(table, found)
            asked.dropped(held - len(found.query))
        parts.append((table, found))
        if first:
            left = np.ones(len(queries), np.bool_)
            for _, earlier in parts:
                left[earlier.query] = False
            open_queries = np.flatnonzero(left).astype(np.int64)
            built = {}
    if searched < len(plan.tables):
        plan = QueryPlan.of(plan.tables[:searched], plan.guarantee)
    stats = QueryStats._make(
        (
            plan.method, *promised(plan, question.similar), plan.flips, probes, compared, searched,
            time.perf_counter() - started,
            0 if question.similar is None else question.similar.compared_bits,
            "cosine" if question.similar is None else question.similar.measure,
        )
    )
    return arranged(
        parts, len(queries), first=question.first, limit=question.limit, stats=stats,
        options=options, threads=threads,
    )


def search_by(table: Table, plan: TablePlan, asked: Asked) -> Found:
    """As a call would have the table searched; deleted rows included."""
    method = registry.of(plan.method)
    if method.whole is not None and plan.takes_a_pass(len(asked.queries)):
        return method.whole(table, plan, asked)
    search = method.search
    if plan.design is not None and method.in_design is not None:
        search = method.in_design
    if asked.threads == 1 and len(asked.queries) <= SLICE_QUERIES:
        return search(table, plan, asked)
    return _in_slices(table, plan, search, asked)


def _in_slices(table: Table, plan: TablePlan, search: Search, asked: Asked) -> Found:
    # Slices are even, so that none is too small for a sweep that the plan is costed by.
    queries, threads = len(asked.queries), asked.threads
    share = -(-queries // threads)
    size = -(-share // -(-share // slice_queries(plan, threads)))
    starts = range(0, queries, size)

    def run_slice(start: int) -> Found:
        found = search(table, plan, asked.slice(start, start + size))
        return found if start == 0 else found._replace(query=found.query + start)

    if threads == 1:
        return joined([run_slice(start) for start in starts])
    with Pool(threads) as pool:
        return joined(list(pool.map(run_slice, starts)))


AGAIN = 4
"""Queries at a time that are asked for all their matches after a deleted one."""

MOST_AGAIN = 1 << 20
"""Matches of these from which fewer queries are asked at a time."""


def _first_live(table: Table, plan: TablePlan, asked: Asked, found: Found) -> Found:
    """Of rows found first the live ones, and others for queries that found deleted ones only.

    Those are asked for all their matches, few of them at a time: a hot text has very many.
    """
    assert asked.tombstones is not None
    dead = asked.tombstones.dead(table, found.id, found.row.astype(np.int64))
    if not dead.any():
        return found
    parts = [take(found, np.flatnonzero(~dead))]
    again = np.setdiff1d(found.query[dead], parts[0].query)
    size, at = len(again) if asked.stream is not None else AGAIN, 0
    while at < len(again):
        some = again[at : at + size]
        try:
            every = search_by(table, plan, asked.of(some))
        except _native.NoRoom:
            if len(some) > 1:
                size = max(1, len(some) // 4)
                continue
            one = first_live(table, plan, asked.of(some))
            parts += [] if one is None else [one._replace(query=some)]
            at += 1
            continue
        others = live(table, every, asked.tombstones)
        nearest = take(others, firsts(others.query, others.row, others.id, others.distance))
        parts.append(nearest._replace(query=some[nearest.query]))
        asked.dropped(len(every.query))
        at += len(some)
        size = 2 * size if len(every.query) < MOST_AGAIN else max(1, size // 4)
    return joined(parts)
