"""Rows sorted by fingerprint, in memory or on a map, with a header directory over them.

    fingerprints (n, W)   sorted by word 0; rows with an equal word 0 are in order of age
    ids          (n,)     in the same order
    keys                  an optional heap: offsets (n + 1,) into bytes, in the same order
    times        (n,)     when each came, optional, in the same order; see `times`
    sketches     (n, R)   records of further bits, optional, in the same order; see `sketches`
    directory    (2^t+1,) first row of each header, the top t bits of word 0

A pending batch and a segment file are both tables; a method need not know which it searches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from simindex._kernels import _native
from simindex.arrays import I64, U8, U32, U64
from simindex.storage.files.checksums import section_of
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.row_names import RowsById
from simindex.storage.tables.sorted_rows import SortedRows, header_bits
from simindex.storage.tables.times import LAST_TIME

if TYPE_CHECKING:
    from simindex.storage.tables.permuted import PermutedTables
    from simindex.storage.tables.slice_lists import SliceLists


class Table(SortedRows):
    """One sorted run of rows, table 0 of whatever else was built over them."""

    __slots__ = (
        "_checked", "_oldest", "by_id", "horizon", "ids", "keys", "name", "sketches", "slices",
        "structures", "times",
    )

    def __init__(
        self,
        name: str,
        fingerprints: U64,
        ids: U64,
        keys: KeyHeap | None,
        *,
        horizon: int,
        header_bits: int,
        load_directory: Callable[[], U32 | None] | None = None,
        times: U32 | None = None,
        sketches: U8 | None = None,
    ) -> None:
        super().__init__(fingerprints, header_bits=header_bits, load_directory=load_directory)
        self.name: str = name
        self.horizon: int = horizon
        self.ids: U64 = ids
        self.keys: KeyHeap | None = keys
        self.times: U32 | None = times
        self.sketches: U8 | None = sketches
        self._oldest: int | None = None
        self.by_id: RowsById = RowsById(ids)
        self.structures: Mapping[str, PermutedTables] = {}
        self.slices: SliceLists | None = None
        self._checked: _native.CheckedTable | None = None

    @property
    def oldest(self) -> int:
        """The least of the times, `LAST_TIME` where there are none."""
        if self._oldest is None:
            self._oldest = self._least_time()
        return self._oldest

    def _least_time(self) -> int:
        return int(self.times.min()) if self.times is not None and len(self) else LAST_TIME

    @property
    def checked(self) -> _native.CheckedTable:
        """The table as the probing kernels take it."""
        if self._checked is None:
            self._checked = _native.CheckedTable(
                self.fingerprints, self.directory, self.header_bits, self.ids,
                section_of(self.fingerprints), section_of(self.ids),
            )
        return self._checked


def sort_table(
    name: str, fingerprints: U64, ids: U64, keys: KeyHeap | None, *, horizon: int,
    times: U32 | None = None, sketches: U8 | None = None,
) -> Table:
    """A table of rows in any order; equal first words keep their order. O(n) radix sort."""
    if fingerprints.shape[1] == 1 and keys is None and times is None and sketches is None:
        words, sorted_ids = _native.sort_pairs(np.ascontiguousarray(fingerprints[:, 0]), ids)
        rows = words[:, None]
    else:
        order = _native.sort_rows(np.ascontiguousarray(fingerprints[:, 0]))
        rows = _native.take_rows(fingerprints, order)
        sorted_ids = ids[order]
        keys = None if keys is None else keys.take(order)
        times = None if times is None else times[order]
        sketches = None if sketches is None else np.take(sketches, order, axis=0)
    return Table(
        name, rows, sorted_ids, keys, horizon=horizon, header_bits=header_bits(len(rows)),
        times=times, sketches=sketches,
    )


def keys_of(tables: Sequence[Table], places: I64, rows: I64) -> KeyHeap:
    """Keys of rows, given by the numbers of their tables and their places there; in this order."""
    if len(places) == 1 or (len(tables) == 1 and len(places)):
        keys = tables[int(places[0])].keys
        if keys is not None:
            return keys.take(rows)
    order = np.argsort(places, kind="stable")
    bounds = np.searchsorted(places[order], np.arange(len(tables) + 1)).tolist()
    heaps = [
        table.keys.take(rows[order[start:stop]])
        for table, (start, stop) in zip(tables, pairwise(bounds), strict=True)
        if table.keys is not None and stop > start
    ]
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return KeyHeap.joined(heaps).take(back)
