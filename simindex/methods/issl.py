"""ISSL: lists of the rows that have a value in a slice, [ISSL] sections 2 and 3.

    query         | slice 0 | slice 1 | ... |     every list within max_error bits of each slice
    score         of a row: w - e for each of its slices that differs in e <= max_error bits
    rerank        rows of highest score, ties by row number, are compared in full
    top           the K nearest documents of these, by (distance, id)

Recall is below one: a near row is missed if none of its slices is within max_error, or if `rerank`
rows have a higher score. With all rows reranked no score matters, and the result is exact. With
max_error = w the score is b - distance: distances are then the true ones, and of documents as far
as the last, there may be others.

Invariants
1. A row is a candidate if it is in a list that is looked at, and is live. Where `rerank` is no
   fewer than the rows of the table, every live row is one.
2. What is found depends on neither the number of threads nor which queries come together, nor on
   whether scores are summed by lists or by rows: the kernel takes what costs less.
"""

from __future__ import annotations

from math import comb
from typing import NoReturn
from weakref import WeakKeyDictionary

import numpy as np

from simindex._kernels import _native
from simindex.arrays import U8, U64
from simindex.errors import CorruptFile
from simindex.methods.base import Asked, Found, TablePlan, TopFound, TopTablePlan
from simindex.options import SLICE_LISTS
from simindex.storage.files.checksums import section_of
from simindex.storage.tables.slice_lists import SliceLists
from simindex.storage.tables.structure import helps
from simindex.storage.tables.table import Table

NAME = SLICE_LISTS
"""What a call asks for."""

LEAST_RERANK = 256
RERANK_PER_PLACE = 10
SPARSE_LISTS = 1 / 50
"""If a row is by chance in fewer lists of a query than this, scores say little: most near
rows are in one list as well, and all rows listed are compared."""


LISTED_ROWS, LISTED_LISTS = 32, 1 << 19
"""Of a table, rows whose slice lists are counted at most, and their lists: some milliseconds."""

Counted = tuple[int, float]
"""Slice lists that a query looks into, and rows in them."""

_LISTED: WeakKeyDictionary[SliceLists, dict[int, Counted]] = WeakKeyDictionary()
"""What `listed` counted, by max_error, while the lists are open."""


def default_rerank(rows: int, k: int, max_error: int, *, width: int, slices: int) -> int:
    """How many rows of highest score are worth comparing, in a table of this many rows.

    Notes
    -----
    Measured on 1 M signatures of 1,024 bits in 20,000 clusters, 10 to 25 % of bits flipped, k = 10:
    with max_error 2 recall@10 is 0.988 if 64 rows are compared, 0.993 if 256 are; with max_error 1
    it is 0.868 for 512 rows and 0.963 for all that are listed, which are 1 of 60.
    """
    listed = slices * sum(comb(width, errors) for errors in range(max_error + 1)) / 2**width
    least = max(LEAST_RERANK, RERANK_PER_PLACE * k)
    return max(least, round(2 * listed * rows)) if listed < SPARSE_LISTS else least


def top(
    table: Table, plan: TopTablePlan, queries: U64, k: int, dead: U8 | None, threads: int
) -> TopFound:
    """The K nearest documents of a table for each query, among the rows of highest score.

    Parameters
    ----------
    queries : uint64 (m, W)
    dead : uint8 (n,), optional
        Not 0 where a row is not a candidate.

    Raises
    ------
    CorruptFile
        If the lists cannot be opened or hold row numbers out of range.

    Notes
    -----
    Lists: slices times the number of values within max_error of one; each of n / 2^w rows if values
    are uniform. Memory is 4 bytes a row number followed and up to 32 MiB a thread for queries that
    are answered together, none for each row of the table. An interrupt is honoured within 0.1 s.
    """
    ids, distances, rows, lists, _, compared, damaged = _native.top_slices(
        checked(table), queries, k, plan.max_error, max(k, plan.rerank), dead, threads
    )
    if damaged:
        _refuse(table, damaged)
    return TopFound(ids, distances, rows, lists, compared)


def within(table: Table, plan: TablePlan, asked: Asked) -> Found:
    """Rows within h of each query that are in a list near one of its slices.

    Near is within the plan's max_error. With `first`, a query's row is that of the lowest number.

    Raises
    ------
    CorruptFile
        If the lists cannot be opened or hold row numbers out of range.

    Notes
    -----
    Exact where max_error is at least h // slices: a row that differs by more in every slice differs
    in more than h bits. No more slices are then looked at than this needs. `probes` of the result
    are lists.
    """
    *columns, damaged = _native.slices_within(
        checked(table), asked.queries, asked.h, plan.max_error, asked.first, room=asked.room
    )
    if damaged:
        _refuse(table, damaged)
    return Found._make(columns)


def listed_within(table: Table, h: int) -> Counted | None:
    """What a query within h looks into of a table's slice lists, which are read; None without."""
    return None if table.slices is None else listed(table, h // table.slices.slices)


def listed(table: Table, max_error: int) -> Counted | None:
    """The same within this many bits of each slice, for a query that is like rows of the table.

    Rows crowd in few lists, and it is those that are asked for: so lists of some of the rows are
    counted, where that is quick, and all taken as equally long where it is not.
    """
    slices = table.slices
    if slices is None:
        return None
    slices.check()
    known = _LISTED.setdefault(slices, {})
    if max_error not in known:
        known[max_error] = _counted(table, slices, max_error)
    return known[max_error]


def _counted(table: Table, slices: SliceLists, max_error: int) -> Counted:
    width, rows = slices.width, len(table)
    near = sum(comb(width, errors) for errors in range(min(max_error, width) + 1))
    lists = slices.slices * near
    sampled = min(rows, LISTED_ROWS, LISTED_LISTS // lists)
    if sampled == 0:
        return lists, rows * lists / (1 << width)
    step = rows // sampled
    words = np.ascontiguousarray(table.fingerprints[: sampled * step : step])
    values = words.astype(">u8").view(f">u{width // 8}").astype(np.int64)
    every = np.arange(1 << width)
    flips = every[np.bitwise_count(every) <= max_error]
    scored = 0
    for starts, column in zip(slices.starts, values.T, strict=True):
        lengths = np.diff(starts.astype(np.int64))
        # One row at a time: where numpy needs buffers to combine arrays of two shapes, and there is
        # no memory for them, it ends the process.
        scored += sum(int(lengths[value ^ flips].sum()) for value in column)
    return lists, min(scored / sampled, float(rows) * slices.slices)


def checked(table: Table) -> _native.CheckedSlices:
    """The table's lists as the kernels take them, stored with the table."""
    lists = _lists(table)
    if lists.checked is None:
        lists.checked = _native.CheckedSlices(
            table.fingerprints, table.ids, lists.starts, lists.numbers,
            section_of(table.fingerprints), section_of(table.ids), section_of(lists.numbers),
        )
    return lists.checked


def _lists(table: Table) -> SliceLists:
    assert table.slices is not None, "planned only for tables that have slice lists"
    return table.slices


def _refuse(table: Table, damaged: int) -> NoReturn:
    path = _lists(table).envelope.path
    raise CorruptFile(
        f"{path} has {damaged:,} row numbers that are out of range", remedy=helps(path),
        path=path, found=damaged,
    )
