"""Rows in order of their keys, so that equal ones are together; pairs of them; and their room.

    rows      a a a b c c        distinct   a b c        starts   0 3 4 6
"""

from __future__ import annotations

from typing import Any

import numpy as np

from simindex._kernels import _native
from simindex.arrays import I64, U16, U64, Bools
from simindex.checks import is_whole
from simindex.errors import InvalidOption
from simindex.pairs.live_rows import Rows, StoredRows, key_word
from simindex.values import dataclass

USUAL_MEMORY = 1 << 30
"""Bytes, where nobody says."""

MOST_MEMORY = 1 << 62
"""More bytes than any machine has, and few enough for numbers of 64 bits."""

FIXED_BYTES = 6 << 20
"""For counting the values of a block, and for what a read looks at."""

ROW_SHARE = 0.6
"""Of the memory that is left is for rows; the rest is for pairs."""

PAIR_BYTES = 150
"""Of a pair while it is found, named and put in order."""

CHUNK_PAIRS = 1 << 17
"""Given out at a time, about: they are sorted in the cache, in 70 ns a pair instead of 200."""

LEAST_ROWS = 1 << 12
LEAST_PAIRS = 1 << 12
MOST_ROWS = (1 << 32) - 1
"""Of a tile: the kernel numbers them with 32 bits."""


@dataclass(frozen=True, slots=True)
class Found:
    """Pairs as they are found, in no order; columns as the rows had, (p,)."""

    a_ids: U64 | None
    b_ids: U64 | None
    a_numbers: U64 | None
    b_numbers: U64 | None
    distance: U16
    equal: Bools | None = None
    """Which of them link a row to the first that equals it, where the distance does not say so:
    that of sketches is 0 of different fingerprints, too."""

    def __len__(self) -> int:
        return len(self.distance)

    @property
    def links(self) -> Bools:
        """Which pairs are a row and the first that equals it, where equal rows are collapsed."""
        return self.distance == 0 if self.equal is None else self.equal

    def take(self, places: I64) -> Found:
        """Some of the pairs."""
        def some(column: Any) -> Any:
            return None if column is None else column[places]

        return Found(
            some(self.a_ids), some(self.b_ids), some(self.a_numbers), some(self.b_numbers),
            self.distance[places], some(self.equal),
        )

    @classmethod
    def joined(cls, parts: list[Found]) -> Found:
        """All of some parts, which have the same columns."""
        if len(parts) == 1:
            return parts[0]

        def column(name: str) -> Any:
            columns = [getattr(part, name) for part in parts]
            return None if columns[0] is None else np.concatenate(columns)

        return cls(
            column("a_ids"), column("b_ids"), column("a_numbers"), column("b_numbers"),
            column("distance"), column("equal"),
        )


@dataclass(frozen=True, slots=True)
class Tile:
    """Some rows in order of their keys; equal ones in order of id, then of number."""

    columns: Rows
    starts: I64
    distinct: U64

    @classmethod
    def of(cls, rows: Rows, shift: int) -> Tile:
        """From rows in any order, sorted by their keys from bit `shift` on."""
        order = _order(rows, shift)
        fingerprints = _native.take_rows(rows.fingerprints, order)
        new = np.ones(len(order), np.bool_)
        if len(order):
            new[1:] = (fingerprints[1:] != fingerprints[:-1]).any(axis=1)
        starts = np.append(np.flatnonzero(new), len(order)).astype(np.int64)
        distinct = fingerprints if len(starts) == len(order) + 1 else fingerprints[starts[:-1]]
        columns = Rows(
            fingerprints,
            None if rows.ids is None else rows.ids[order],
            None if rows.numbers is None else rows.numbers[order],
        )
        return cls(columns, starts, distinct)

    def next_id(self) -> I64:
        """For each row the first after it with another fingerprint or id."""
        size = len(self.columns)
        new = np.zeros(size, np.bool_)
        new[self.starts[:-1]] = True
        ids = self.columns.ids
        if ids is None:
            return np.arange(1, size + 1)
        new[1:] |= ids[1:] != ids[:-1]
        starts = np.append(np.flatnonzero(new), size)
        return np.repeat(starts[1:], np.diff(starts))

    def groups(self, first: int, width: int) -> I64:
        """Bounds of the distinct rows that agree on a block, whose keys they are sorted by."""
        if len(self.distinct) < 2:
            return np.array([0, len(self.distinct)][: len(self.distinct) + 1], np.int64)
        new = np.zeros(len(self.distinct) - 1, np.bool_)
        for level in range(-(-width // 64)):
            word = key_word(self.distinct, first, level)
            new |= (word[1:] ^ word[:-1]) >> np.uint64(max(0, 64 * (level + 1) - width)) != 0
        inner = np.flatnonzero(new) + 1
        return np.concatenate([[0], inner, [len(self.distinct)]]).astype(np.int64)

    def pairs(self, rows: I64, other: Tile, others: I64, distance: U16) -> Found:
        """Pairs of rows by their places; those that share an id are left out."""
        mine, theirs = self.columns, other.columns
        a_ids = None if mine.ids is None else mine.ids[rows]
        b_ids = None if theirs.ids is None else theirs.ids[others]
        if a_ids is not None and b_ids is not None:
            different = a_ids != b_ids
            if not different.all():
                a_ids, b_ids, distance = a_ids[different], b_ids[different], distance[different]
                rows, others = rows[different], others[different]
        return Found(
            a_ids, b_ids,
            None if mine.numbers is None else mine.numbers[rows],
            None if theirs.numbers is None else theirs.numbers[others],
            distance,
        )


def _order(rows: Rows, shift: int) -> I64:
    """Stable order of rows by key, then by id; their own where neither tells them apart."""
    words = rows.fingerprints.shape[1]
    key = np.ascontiguousarray(key_word(rows.fingerprints, shift, 0))
    order = _native.sort_rows(key)
    if words == 1 and rows.ids is None:
        return order
    key = key[order]
    tied = np.zeros(len(order), np.bool_)
    same = key[1:] == key[:-1]
    tied[1:] |= same
    tied[:-1] |= same
    places = np.flatnonzero(tied)
    if not len(places):
        return order
    some = order[places]
    by = np.arange(len(some))
    if rows.ids is not None:
        by = _native.sort_rows(rows.ids[some])
    fingerprints = rows.fingerprints[some]
    for level in reversed(range(words)):
        by = by[_native.sort_rows(key_word(fingerprints, shift, level)[by])]
    order[places] = some[by]
    return order


@dataclass(frozen=True, slots=True)
class Room:
    """What fits a limit of memory."""

    rows: int
    pairs: int

    @property
    def chunk(self) -> int:
        """Pairs that are given out at a time, about."""
        return min(self.pairs, CHUNK_PAIRS)

    @classmethod
    def within(
        cls, memory: int | None, stored: StoredRows, *, beside: int = 0, later: int = 0,
        purpose: str = "pairs",
    ) -> Room:
        """What remains for pairs when `beside` bytes are taken, and before `later` are needed.

        Raises InvalidOption when the least does not fit, and says what is the least.
        """
        if memory is not None and not is_whole(memory):
            raise InvalidOption(
                f"memory_limit={memory!r} is not a size in bytes",
                remedy="give a whole number of bytes", option="memory_limit", found=memory,
            )
        row = _row_bytes(stored)
        fixed = FIXED_BYTES + stored.mask_bytes + beside
        limit = fixed + USUAL_MEMORY if memory is None else min(int(memory), MOST_MEMORY)
        least = fixed + max(
            round(LEAST_ROWS * row / ROW_SHARE),
            round(LEAST_PAIRS * PAIR_BYTES / (1 - ROW_SHARE)),
        ) + 1
        least = max(least, FIXED_BYTES + stored.mask_bytes + later)
        if memory is not None and limit < least:
            raise InvalidOption(
                f"memory_limit={memory:,} bytes is too little, because {purpose} of this index "
                f"need at least {least:,} bytes",
                remedy="give at least that", option="memory_limit", found=memory, expected=least,
            )
        left = max(limit, least) - fixed
        return cls(
            min(MOST_ROWS, int(left * ROW_SHARE / row)), int(left * (1 - ROW_SHARE) / PAIR_BYTES)
        )


def _row_bytes(stored: StoredRows) -> int:
    # Sorted and distinct rows, in two orders; columns twice; key, order, flags, what a sort takes.
    columns = stored.row_bytes // 8 - stored.words
    return 32 * stored.words + 16 * columns + 36
