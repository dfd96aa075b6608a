"""BPHS in batch mode: permuted tables over the queries Q, the stored rows streamed past. [PSM] 6.

    Q          equal queries are one; sorted, permuted and sorted again for each table
    stored     read once, in order (`stream`); every row is looked up in the tables over Q
    a match    of row y and distinct query x: one for each query equal to x

The stored rows need not fit in memory, nor be permuted on disk; what must fit is T tables of Q
(`bytes_needed`). Exact for every h that the design is exact for, and the same tables serve all
segments. T m (delta P + log m) + n tau(log m) of processor time, (17): worth it for many queries.

Invariants
1. What is found depends on rows and queries alone, not on chunks, slices or threads.
2. Of `first`, a query's nearest row is taken; of these the one of the lowest id, then the lowest
   row. A row met later may be nearer, so that everything is read: as the paper says, BPHSF is
   BPHSA here.
3. Equal queries are looked up as one, and so are runs of equal rows: a text that occurs a million
   times in either costs no more than its matches, or with `first` no more than its rows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.arrays import I64, U32, U64, Bools
from simindex.bits.design import BlockDesign
from simindex.methods.base import Asked, Found, TablePlan, firsts, joined, live, take
from simindex.methods.bphs import checked_table, looked_up
from simindex.methods.nearest_rows import NearestRows
from simindex.methods.stream import Stream
from simindex.resources.threads import Pool
from simindex.storage.files import readahead
from simindex.storage.files.checksums import verified
from simindex.storage.tables import permuted
from simindex.storage.tables.deletions import Deletions
from simindex.storage.tables.sorted_rows import SortedRows, header_bits, sorted_by_all_words
from simindex.storage.tables.table import Table
from simindex.values import dataclass

SWEPT_ROWS = 1 << 10
"""Rows of a slice from which the tables over Q are swept; measured faster at every size of them."""

REPEATED = 8
"""Runs of equal rows are looked up as one if one in this many rows of a slice is a repetition."""

SLICE_PROBES, SLICE_ROWS = 1 << 21, 1 << 14
"""A slice makes at most this many probes of a table, of 16 bytes each, unless it has few rows."""


@dataclass(frozen=True, slots=True, eq=False)
class QueryTables:
    """A batch's distinct queries as the tables of a design; made by `build`."""

    h: int
    queries: int
    """m."""
    probes: int
    """Of a row in one table, at most."""
    distinct: Table
    """Each query once, in order; ids are without meaning."""
    checked: list[_native.CheckedPermuted]
    members: I64
    """Numbers of all queries, in the order of their distinct ones."""
    starts: I64
    """Where the members of each distinct query begin, and where the last ones end."""

    def __len__(self) -> int:
        """Distinct queries."""
        return len(self.distinct)


def build(queries: U64, design: BlockDesign, *, h: int, threads: int = 1) -> QueryTables:
    """The tables of a batch.

    Parameters
    ----------
    queries : uint64 (m, W)
    design : BlockDesign
        One that is exact for h; `costs.query_design` says which is the cheapest.
    threads : int
        Tables are made in groups of this size.

    Raises
    ------
    InvalidOption
        If the design is not exact for h.

    Notes
    -----
    About 30 ns a query and table (10 M queries, four tables). For memory see `bytes_needed`.
    """
    flips = design.table_flips(h)
    rows, members = _in_order(queries)
    starts = np.flatnonzero(_begins(rows))
    if len(starts) <= len(rows):
        rows = rows[starts[:-1]]
    width = directory_bits(len(rows), queries.shape[1])
    distinct = Table(
        "queries", rows, np.zeros(len(rows), np.uint64), None, horizon=0, header_bits=width
    )

    def table(number: int) -> _native.CheckedPermuted:
        if number == 0:
            return checked_table(distinct, design, 0, flips[0])
        one = SortedRows(
            permuted.permuted_rows(rows, design, number),
            header_bits=min(width, design.header_bits[number]),
        )
        return checked_table(one, design, number, flips[number])

    needed = [number for number, most in enumerate(flips) if most >= 0] if len(rows) else []
    if threads == 1:
        checked = [table(number) for number in needed]
    else:
        with Pool(threads) as pool:
            checked = list(pool.map(table, needed))
    probes = _most_probes(len(rows), rows.shape[1], design, h)
    return QueryTables(h, len(queries), probes, distinct, checked, members, starts)


def whole(table: Table, plan: TablePlan, asked: Asked) -> Found:
    """`search` by tables of the plan's design, which are built once for all tables of a call."""
    assert plan.design is not None
    built = {} if asked.built is None else asked.built
    name = plan.design.structure
    if name not in built:
        built[name] = build(asked.queries, plan.design, h=asked.h, threads=asked.threads)
    return search(built[name], table, asked)


def search(tables: QueryTables, table: Table, asked: Asked) -> Found:
    """All rows of a stored table within h of each query, in a pass over them; in any order.

    With `first` a query's row is the nearest.

    Raises
    ------
    CorruptFile
        If rows cannot be read.

    Notes
    -----
    What is found is held in memory, 22 bytes a match; with `first` 14 bytes a distinct query.
    """
    if not len(tables) or not len(table):
        return joined([])
    stream = _narrowed(asked.reading, table.fingerprints.shape[1], tables.probes)
    if not asked.first:
        found = joined(list(stream.over(table, partial(_slice, tables, table, asked))))
        return _for_members(tables, found, asked)
    nearest = NearestRows(len(tables))
    for part in stream.over(table, partial(_nearest, tables, table, asked)):
        nearest.add(part)
    return _for_members(tables, nearest.found(), asked)


def sweeps(rows: int, words: int) -> bool:
    """Whether the tables over Q are swept for this many stored rows at a time."""
    return words == 1 and rows >= SWEPT_ROWS


def directory_bits(queries: int, words: int) -> int:
    """Width t of the directories over this many distinct queries.

    Wide rows take a cache line each and are compared one at a time, so that two headers a row pay:
    with 256 bits, 100,000 queries and four tables a stored row takes 191 ns, not 526.
    """
    if words == 1:
        return header_bits(queries)
    return min(30, round(log2(max(1, queries))) + 1)


def bytes_needed(
    queries: int, words: int, design: BlockDesign, *, h: int, stream: Stream
) -> int:
    """Memory of a batch and the pass, in bytes: the least that a limit must leave, matches aside.

    Parameters
    ----------
    queries : int
        m; their own array is the caller's and not counted, nor are equal ones deducted.
    """
    directories = [
        4 << min(directory_bits(queries, words), width)
        for width, flips in zip(design.header_bits, design.table_flips(h), strict=True)
        if flips >= 0
    ]
    row = 8 * words
    # Sorting: first words and numbers, in and out, and joined in between.
    sorting = queries * 48
    # Rows in order, their ids, members and starts; then a table each, the last with its making.
    held = queries * (row + 24)
    making = queries * (row if words == 1 else 3 * row + 72)
    tables = len(directories) * queries * row + sum(directories)
    building = max(sorting + held, held + tables + making * stream.threads)
    probes = _most_probes(queries, words, design, h)
    stream = _narrowed(stream, words, probes)
    # Of a chunk: its permutation, its probes, partitioned, and where runs of it begin.
    looking = stream.chunk_rows(words) * (2 * row + 16 * probes + 8)
    if stream.threads > 1:
        looking += looking // 2  # which the allocator keeps for each thread
    return max(building, held + tables + looking + stream.resident_bytes(words)) + (2 << 20)


def _narrowed(stream: Stream, words: int, probes: int) -> Stream:
    """The pass with chunks whose probes of a table do not take much memory."""
    most = max(SLICE_ROWS, SLICE_PROBES // probes)
    return replace(stream, chunk_bytes=min(stream.chunk_bytes, 8 * words * most))


def _most_probes(queries: int, words: int, design: BlockDesign, h: int) -> int:
    """Of a row in one table."""
    widths = [directory_bits(queries, words)] * design.tables
    return max(most for most, _ in looked_up(design, design.table_flips(h), widths))


def _in_order(queries: U64) -> tuple[U64, I64]:
    """Queries sorted by all their words, and their numbers."""
    if queries.shape[1] == 1:
        numbers = np.arange(len(queries), dtype=np.uint64)
        words, order = _native.sort_pairs(np.ascontiguousarray(queries[:, 0]), numbers)
        return words[:, None], order.view(np.int64)
    return sorted_by_all_words(queries)


def _slice(
    tables: QueryTables, table: Table, asked: Asked, start: int, stop: int
) -> Found:
    """Matches of some rows, where `query` is the number of a distinct query.

    With `first` one row represents each run of equal rows (invariant 2).
    """
    rows = verified(table.fingerprints[start:stop])
    begins = _runs(rows)
    some = rows if begins is None else rows[begins[:-1]]
    run, query, distance, _, probes, compared, _ = _native.bphs(
        tables.distinct.checked, tables.distinct.header_bits, tables.checked, some, tables.h, False,
        1 if sweeps(len(some), some.shape[1]) else 0, room=asked.room,
    )
    if begins is None:
        begins = np.arange(len(rows) + 1)
    runs, place = np.unique(run, return_inverse=True)
    owner, row = _members(runs, begins)
    own = _alive(table, owner, (row + start).astype(np.uint32), asked.tombstones)
    if asked.first:
        own = take(own, firsts(own.query, own.row, own.id))
    begins = np.searchsorted(own.query, np.arange(len(runs) + 1))
    asked.make_room(int(np.diff(begins)[place].sum()), len(place))
    match, at = _members(place, begins)
    return Found(
        query[match].astype(np.int64), own.row[at], distance[match], own.id[at], probes, compared
    )


def _nearest(tables: QueryTables, table: Table, asked: Asked, start: int, stop: int) -> Found:
    """The nearest of some rows to each distinct query; halves them while there is no room for all.

    It holds one match a query then, which is given no room: a call always holds so many.
    """
    try:
        found = _slice(tables, table, asked, start, stop)
    except _native.NoRoom:
        if stop - start == 1:
            raise
        middle = (start + stop) // 2
        halves = [_nearest(tables, table, asked, *half)
                  for half in ((start, middle), (middle, stop))]
        found = joined(halves)
    else:
        asked.dropped(len(found.query))
    return take(found, firsts(found.query, found.row, found.id, found.distance))


def _runs(rows: U64) -> I64 | None:
    """Where runs of equal rows begin, and an end; None where few rows repeat the one before."""
    begin = _begins(rows)
    if len(begin) - np.count_nonzero(begin) < len(rows) // REPEATED:
        return None
    return np.flatnonzero(begin)


def _begins(rows: U64) -> Bools:
    """Whether a row differs from the one before, and True for an end."""
    begin = np.ones(len(rows) + 1, np.bool_)
    begin[1:-1] = rows[1:, 0] != rows[:-1, 0]
    if rows.shape[1] > 1:
        tied = np.flatnonzero(~begin)
        begin[tied] = (rows[tied] != rows[tied - 1]).any(axis=1)
    return begin


def _members(groups: NDArray[np.integer[Any]], begins: I64) -> tuple[I64, I64]:
    """Members of groups: (place in `groups`, member), group `g` being begins[g] to begins[g + 1].

    Both in the order of `groups`, then of members.
    """
    first = begins[:-1][groups]
    sizes = begins[1:][groups] - first
    owner = np.repeat(np.arange(len(groups)), sizes)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return owner, np.repeat(first, sizes) + within


def _alive(
    table: Table, owner: I64, row: U32, tombstones: Deletions | None
) -> Found:
    """Rows with their ids, but those that are deleted; `owner` as `query`."""
    ids = readahead.take_at(table.ids, row)
    found = Found(owner, row, np.zeros(len(row), np.uint16), ids, 0, 0)
    if tombstones is None or not tombstones.concerns(table):
        return found
    return live(table, found, tombstones)


def _for_members(tables: QueryTables, found: Found, asked: Asked) -> Found:
    """Matches of distinct queries as those of the queries equal to them."""
    if len(tables) == tables.queries:
        return found._replace(query=tables.members[found.query])
    asked.make_room(int(np.diff(tables.starts)[found.query].sum()), len(found.query))
    match, at = _members(found.query, tables.starts)
    return take(found, match)._replace(query=tables.members[at])
