"""ISSL: rows that share slices with the query, by lists of the rows of each slice. [ISSL] 2.

    top       every list within max_error of each slice is scored, the best rows are compared
    within    rows within h, all of them where max_error >= h // slices
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from simindex._kernels import _native
from simindex.errors import CorruptFile
from simindex.methods.base import Found, TopFound
from simindex.records import U64
from simindex.storage.slicelist import SliceLists
from simindex.storage.table import U8, Table

_CHECKED: WeakKeyDictionary[SliceLists, _native.CheckedSlices] = WeakKeyDictionary()


def top(
    table: Table, queries: U64, k: int, max_error: int, rerank: int, dead: U8 | None, threads: int
) -> TopFound:
    """The k nearest documents of a table among the `rerank` rows of highest score."""
    *found, damaged = _native.top_slices(
        _checked(table), queries, k, max_error, rerank, dead, threads
    )
    _refuse(table, damaged)
    return TopFound._make(found)


def within(table: Table, queries: U64, h: int, max_error: int, first: bool) -> Found:
    """Rows of a table within h of each query that share a list with it."""
    query, row, distance, ids, lists, compared, damaged = _native.slices_within(
        _checked(table), queries, h, max_error, first
    )
    _refuse(table, damaged)
    return Found(query, row, distance, ids, lists, compared)


def _checked(table: Table) -> _native.CheckedSlices:
    slices = table.slices
    assert slices is not None
    found = _CHECKED.get(slices)
    if found is None:
        found = _native.CheckedSlices(
            table.fingerprints, table.ids, slices.starts, slices.numbers
        )
        _CHECKED[slices] = found
    return found


def _refuse(table: Table, damaged: int) -> None:
    if damaged and table.slices is not None:
        raise CorruptFile(
            f"{table.slices.envelope.path} lists rows that {table.name} does not have: run "
            "`simindex check`",
            path=table.slices.envelope.path,
        )
