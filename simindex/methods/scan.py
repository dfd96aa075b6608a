"""scan: compares every row with every query. Exact at any h and width, and the others' oracle."""

from __future__ import annotations

from simindex._kernels import _native
from simindex.methods.base import Found
from simindex.records import U64
from simindex.storage.table import Table


def search(table: Table, queries: U64, *, h: int, first: bool) -> Found:
    """All rows of a table within h of each query.

    Parameters
    ----------
    queries : uint64 (m, W)
    first : bool
        Stop a query at its first match.

    Notes
    -----
    O(n m): rows are read in slabs that stay in cache while all queries pass over them.
    """
    query, row, distance, compared = _native.scan(table.fingerprints, queries, h, first)
    return Found(query, row, distance, _native.take_at(table.ids, row), 0, compared)
