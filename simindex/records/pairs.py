"""Pairs of rows within a distance; with `collapse_equal`, groups of equal rows stand beside them.

    Pairs   a (p,)   b (p,)   distance (p,)     sorted by (a, b), a < b

`CollapsedPairs` has pairs of different fingerprints alone, and `groups` of equal ones:

    row            0  1  2  3  4  5  6         groups   first  0  0  2
    fingerprint    x  y  z  x  y' x  z                  row    3  5  6
                                               pairs    (1, 4), distance 1

Invariants
1. A row is in `groups.row` if and only if an earlier one has its fingerprint; `groups.first` is the
   earliest. 2. No row of `pairs` is in `groups.row`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from simindex.arrays import I64, U16, U64
from simindex.records.matches import KeySource

PairKeys = Callable[[], tuple[list[str], list[str]] | tuple[list[bytes], list[bytes]]]
"""Fetches the keys of both columns of pairs."""


class Pair(NamedTuple):
    """Two rows within h of each other."""

    a: int
    b: int
    distance: int


class Pairs:
    """Rows within h of each other, unique, a < b, ordered by (a, b).

    Columns `a` and `b`, int64 row numbers of the fingerprints given, or uint64 ids from an index,
    and `distance` uint16, all (p,). Iteration gives `Pair`.
    """

    __slots__ = ("_fetch_keys", "a", "b", "distance")

    def __init__(
        self,
        a: I64 | U64,
        b: I64 | U64,
        distance: U16,
        fetch_keys: PairKeys | None = None,
    ) -> None:
        self.a, self.b, self.distance = a, b, distance
        self._fetch_keys = fetch_keys and KeySource(fetch_keys)

    def keys(self) -> tuple[list[str], list[str]] | tuple[list[bytes], list[bytes]] | None:
        """Keys of a and of b, or None when they have none; fetched from the index when asked."""
        return None if self._fetch_keys is None else self._fetch_keys()

    def __repr__(self) -> str:
        return f"<{len(self)} Pairs>"

    def __len__(self) -> int:
        return len(self.a)

    def __iter__(self) -> Iterator[Pair]:
        columns = (self.a.tolist(), self.b.tolist(), self.distance.tolist())
        return map(Pair, *columns)


class RotationStats(NamedTuple):
    """How pairs were found by rotation, and how many were not."""

    method: str
    guarantee: str
    """`"exact"`, or the recall in words with what it rests on."""
    exact: bool
    """Whether no pair is missed: all were compared, or all that an exact search found are there."""
    rotations: int
    window: int
    rows_compared: int
    """Pairs of rows whose distance was computed, over all rotations."""
    recall: float | None
    """Share of all pairs within h that was found; None if that was not measured."""
    recall_low: float
    """Lower end of its 95% interval; `recall` itself where all rows were compared for it."""
    recall_high: float
    recall_rows: int
    """Rows that were compared with all others to measure it."""
    seconds: float

    @property
    def false_negatives(self) -> float | None:
        """Share of all pairs within h that was missed."""
        return None if self.recall is None else 1 - self.recall


class RotationPairs(Pairs):
    """Pairs that rotation found; `stats` says what share of all that is."""

    __slots__ = ("stats",)

    def __init__(self, pairs: Pairs, stats: RotationStats) -> None:
        super().__init__(pairs.a, pairs.b, pairs.distance)
        self.stats = stats

    def __repr__(self) -> str:
        return f"<{len(self)} Pairs by rotation, {self.stats.guarantee}>"


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
        distance: U16,
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
