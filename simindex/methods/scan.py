"""scan: compares every row with every query. Exact at any h and width, and the others' oracle."""

from __future__ import annotations

import numpy as np

from simindex._kernels import _native
from simindex.arrays import I64, U8, U64
from simindex.methods.base import (
    Asked,
    Found,
    TablePlan,
    TopFound,
    TopTablePlan,
    firsts,
    joined,
    live,
    take,
)
from simindex.storage.files import readahead
from simindex.storage.files.checksums import section_of, verified
from simindex.storage.tables.table import Table

NAME = "scan"
"""What a call asks for."""

CALL_COMPARES = 1 << 31
"""Of one call of the kernel, which an interrupt waits for: a third of a second."""


def search(table: Table, plan: TablePlan, asked: Asked) -> Found:
    """All rows of a table within h of each query; with `first` a query stops at its first match.

    Notes
    -----
    O(n m): rows are read in slabs that stay in cache while all queries pass over them.
    """
    query, row, distance, compared = _native.scan(
        verified(table.fingerprints), asked.queries, asked.h, asked.first, room=asked.room
    )
    return Found(query, row, distance, readahead.take_at(table.ids, row), 0, compared)


def passage(table: Table, plan: TablePlan, h: int, passages: _native.Passages) -> bool:
    """Adds all rows of a table to the ways that one query by itself takes."""
    passages.scan(table.fingerprints, section_of(table.fingerprints))
    return True


def streamed(table: Table, plan: TablePlan, asked: Asked) -> Found:
    """What `search` finds, in a pass over the rows that need not fit in memory.

    With `first` a query's match is the first in the order of the rows; reading ends with the last
    query that has none.

    Raises
    ------
    CorruptFile
        If rows cannot be read.
    """
    queries, first, tombstones = asked.queries, asked.first, asked.tombstones
    numbers: I64 = np.arange(len(queries), dtype=np.int64)
    parts: list[Found] = []
    deleted = tombstones is not None and tombstones.concerns(table)

    def look(start: int, stop: int) -> Found:
        try:
            found = _slice(
                table, queries, numbers, start, stop, asked.h, first and not deleted, asked.room
            )
        except _native.NoRoom:
            if not first or stop - start == 1:
                raise
            middle = (start + stop) // 2
            return joined([look(start, middle), look(middle, stop)])
        held = len(found.query)
        if deleted and tombstones is not None:
            found = live(table, found, tombstones)
        if not first:
            asked.dropped(held - len(found.query))
            return found
        asked.dropped(held)  # one match a query stays, which is given no room
        return take(found, firsts(found.query, found.row))

    if not len(queries):
        return joined(parts)
    for found in asked.reading.over(table, look):
        parts.append(_first(found, numbers) if first else found)
        if first and len(parts[-1].query):
            numbers = np.setdiff1d(numbers, parts[-1].query, assume_unique=True)
            if not len(numbers):
                break
    return joined(parts)


def top(
    table: Table, plan: TopTablePlan, queries: U64, k: int, dead: U8 | None, threads: int
) -> TopFound:
    """The k nearest documents of a table for each query.

    Parameters
    ----------
    queries : uint64 (m, W)
    k : int
        At least 1; beyond the documents of the table, places stay empty.
    dead : uint8 (n,), optional
        Rows that are left out: those that are not 0.
    threads : int
        The rows are split over them; the result does not depend on it.

    Notes
    -----
    O(n m). Few queries are compared row by row, as fast as memory gives the rows. For more of them,
    512 rows at a time are turned into columns of bits, and a query adds the columns of all 512
    rows at once, up to where no row can be among its k nearest.
    """
    ids, distances, rows = _native.top_scan(
        verified(table.fingerprints, threads=threads), verified(table.ids, threads=threads),
        queries, k, dead, threads,
    )
    live = len(table) if dead is None else len(table) - int(np.count_nonzero(dead))
    return TopFound(ids, distances, rows, 0, live * len(queries))


def _slice(
    table: Table, queries: U64, numbers: I64, start: int, stop: int, h: int,
    first: bool, room: _native.Room | None,
) -> Found:
    rows = verified(table.fingerprints[start:stop])
    size = max(1, CALL_COMPARES // len(rows))
    parts = []
    for at in range(0, len(numbers), size):
        some = numbers[at : at + size]
        asked = queries if len(some) == len(queries) else queries[some]
        query, row, distance, compared = _native.scan(rows, asked, h, first, room=room)
        row += np.uint32(start)
        parts.append(
            Found(
                some[query], row, distance, readahead.take_at(table.ids, row), 0, compared
            )
        )
    return joined(parts)


def _first(found: Found, numbers: I64) -> Found:
    """The first row of each query that is among `numbers`, which are in order."""
    places = firsts(found.query, found.row)
    return take(found, places[np.isin(found.query[places], numbers)])
