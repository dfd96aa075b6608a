"""Pairs of different fingerprints beside groups of equal ones: what `collapse_equal` gives.

    row            0  1  2  3  4  5  6         groups   first  0  0  2
    fingerprint    x  y  z  x  y' x  z                  row    3  5  6
                                               pairs    (1, 4), distance 1

Invariants
1. A row is in `groups.row` if and only if an earlier one has its fingerprint; `groups.first` is the
   earliest. 2. No row of `pairs` is in `groups.row`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from simindex.records import U64, KeySource, PairKeys, Pairs

I64 = NDArray[np.int64]


class EqualRows:
    """Rows that equal an earlier one: columns `first` and `row`, int64 (e,), by (first, row).

    `first` is the earliest row of that fingerprint; from an index both are uint64 ids, and it is
    the smallest. Iteration gives (first, row).
    """

    __slots__ = ("_fetch_keys", "first", "row")

    def __init__(
        self, first: I64 | U64, row: I64 | U64, fetch_keys: PairKeys | None = None
    ) -> None:
        self.first, self.row = first, row
        self._fetch_keys = fetch_keys and KeySource(fetch_keys)

    def keys(self) -> tuple[list[str], list[str]] | tuple[list[bytes], list[bytes]] | None:
        """Keys of both columns, or None when they have none."""
        return None if self._fetch_keys is None else self._fetch_keys()

    def __repr__(self) -> str:
        return f"<{len(self)} EqualRows>"

    def __len__(self) -> int:
        return len(self.row)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(zip(self.first.tolist(), self.row.tolist(), strict=True))

    def labels(self, n: int) -> I64:
        """The first row that equals each of `n` rows; a row without an earlier equal is its own."""
        labels = np.arange(n, dtype=np.int64)
        labels[self.row] = self.first
        return labels


class CollapsedPairs(Pairs):
    """Pairs of the first rows of different fingerprints; `groups` holds the rows equal to them.

    A pair (a, b) stands for every pair of a row equal to a with one equal to b. So all pairs are
    those, and any two rows of a group, at distance 0: `represented` counts them.
    """

    __slots__ = ("groups",)

    def __init__(
        self,
        a: I64 | U64,
        b: I64 | U64,
        distance: NDArray[np.uint16],
        groups: EqualRows,
        fetch_keys: PairKeys | None = None,
    ) -> None:
        super().__init__(a, b, distance, fetch_keys)
        self.groups = groups

    def __repr__(self) -> str:
        return f"<{len(self)} CollapsedPairs, {len(self.groups)} rows equal to an earlier one>"

    @property
    def represented(self) -> int:
        """How many pairs of rows these are, those of equal rows included.

        Where pairs come in parts, as those of an index do, the groups of a pair may stand in
        another part: then only all parts together tell.
        """
        repeats = Counter(self.groups.first.tolist())
        within = sum(more * (more + 1) // 2 for more in repeats.values())
        return within + sum(
            (repeats[a] + 1) * (repeats[b] + 1)
            for a, b in zip(self.a.tolist(), self.b.tolist(), strict=True)
        )
