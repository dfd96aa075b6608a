"""Fingerprints in order of their first word, with a header directory over them."""

from __future__ import annotations

from collections.abc import Callable
from math import log2
from threading import Lock

import numpy as np

from simindex._kernels import _native
from simindex.arrays import I64, U32, U64
from simindex.errors import CorruptFile
from simindex.storage.files.checksums import map_of, verified

_SLICE_ROWS = 1 << 20


def header_bits(rows: int) -> int:
    """Width t of a table's header directory.

    6 to 11 rows fall under one header when fingerprints are uniform: about two cache lines,
    compared eight rows at a time, for 0.35 to 0.7 bytes a row. Searches may use any narrower
    header of the same directory. ([PSM] (21) has t = d, for rows compared one at a time. With
    t = d - 3.25 a query takes 0.24 us at 10 M rows, with one bit less 0.35, with one more no less.)
    Tables below 4 M rows stay near the processor, where twice the rows cost little: they get one
    bit less, since most of them are soon merged and their directories would only swell the catalog.
    """
    narrower = 3 if rows >= 1 << 22 else 4
    return min(30, max(0, round(log2(max(1, rows))) - narrower))


def sorted_by_all_words(rows: U64) -> tuple[U64, I64]:
    """Rows of several words in the order of all of them, and the number that each had before.

    They are sorted by the first word, and only those that share it by the others.
    """
    order = _native.sort_rows(np.ascontiguousarray(rows[:, 0]))
    rows = _native.take_rows(rows, order)
    tied = np.zeros(len(rows) + 1, np.bool_)
    tied[1:-1] = rows[1:, 0] == rows[:-1, 0]
    among = np.flatnonzero(tied[:-1] | tied[1:])
    if len(among):
        some, numbers = rows[among], order[among]
        within = np.lexsort(tuple(some.T[::-1]))
        rows[among], order[among] = some[within], numbers[within]
    return rows, order


class SortedRows:
    """Fingerprints in order of their first word. Immutable; the directory is made or loaded when
    first needed."""

    __slots__ = ("__weakref__", "_directory", "_load", "_lock", "fingerprints", "header_bits")

    def __init__(
        self,
        fingerprints: U64,
        *,
        header_bits: int,
        load_directory: Callable[[], U32 | None] | None = None,
    ) -> None:
        self.fingerprints: U64 = fingerprints
        self.header_bits: int = header_bits
        self._load = load_directory
        self._directory: U32 | None = None
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self.fingerprints)

    @property
    def directory(self) -> U32:
        """uint32 (2**header_bits + 1,): monotone, first 0, last the number of rows."""
        if self._directory is None:
            with self._lock:
                if self._directory is None:
                    loaded = self._load() if self._load is not None else None
                    self._directory = self.compute_directory() if loaded is None else loaded
        return self._directory

    def compute_directory(self) -> U32:
        """The header directory, from the rows. O(n), in bounded memory.

        Where the rows are out of order, it leads to some of them only, or raises CorruptFile.
        """
        if self.fingerprints.shape[1] == 1:
            return _native.header_directory(verified(self.fingerprints)[:, 0], self.header_bits)
        counts = np.zeros((1 << self.header_bits) + 1, np.int64)
        shift = np.uint64(64 - self.header_bits) if self.header_bits else None
        for start in range(0, len(self), _SLICE_ROWS):
            words = verified(self.fingerprints[start : start + _SLICE_ROWS])[:, 0]
            if (words[1:] < words[:-1]).any():
                owner = map_of(self.fingerprints)
                path = "a table" if owner is None else owner.path
                raise CorruptFile(f"{path} has rows that are not sorted", path=path)
            headers = np.zeros(len(words), np.int64) if shift is None else words >> shift
            first = int(headers[0])
            found = np.bincount((headers - headers[0]).astype(np.int64))
            counts[first + 1 : first + 1 + len(found)] += found
        return np.cumsum(counts).astype(np.uint32)
