"""The live rows of some tables, read in order, a part of them at a time: in ranges that fit.

    key      a fingerprint's bits from some bit on, around its end: W words, the first the highest
    range    the rows whose keys begin with some words and go on within two bounds

    shift 16   word 0 | ..16 | 17........64 |   word 1 | 1.......64 |
               key           | first word ......... | second word ......... |  ... around to 16

Every read goes through the tables once, from front to back, in pieces that stay in cache. Tables
are sorted by word 0, so a range of keys from bit 0 on is a slice of each: no other row is read.

`TileRanges` plans by counting which rows are together in a tile; see `pair_search`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np

from simindex.arrays import I64, U8, U64, Bools
from simindex.storage.files.checksums import verified
from simindex.storage.tables.deletions import Deletions
from simindex.storage.tables.table import Table
from simindex.values import dataclass

READ_WORDS = 1 << 16
"""Words of fingerprints looked at together: half a megabyte, which stays in cache."""

COUNTED_BITS = 16
"""Bits of a key by whose values rows are counted at once."""

WORD = 1 << 64


def key_word(rows: U64, shift: int, level: int) -> U64:
    """Word number `level` of the keys of fingerprints (n, W) from bit `shift` on, (n,)."""
    words = rows.shape[1]
    place, within = divmod(shift, 64)
    place += level
    word = rows[:, place % words]
    if not within:
        return word
    after = rows[:, (place + 1) % words] >> np.uint64(64 - within)
    joined: U64 = (word << np.uint64(within)) | after
    return joined


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Rows whose keys from bit `shift` on begin with `fixed` and go on from `low` to `high`."""

    shift: int
    fixed: tuple[int, ...] = ()
    low: int = 0
    high: int = WORD - 1
    rows: int = 0
    """How many there are; of these, those from `skip` on to `skip + rows` are meant."""
    skip: int = 0
    equal: bool = False
    """Whether all have one fingerprint."""

    @classmethod
    def between(
        cls, shift: int, first: int, last: int, bits: int, rows: int, *, skip: int = 0,
        equal: bool = False,
    ) -> KeyRange:
        """The keys whose top `bits` bits are from `first` to `last`.

        The two may differ in the last word of these bits only.
        """
        if not bits:
            return cls(shift, rows=rows, skip=skip, equal=equal)
        level = (bits - 1) // 64
        below = 64 * (level + 1) - bits  # bits of the last word that are free
        low, high = first << below, ((last + 1) << below) - 1
        fixed = tuple((low >> (64 * (level - word))) % WORD for word in range(level))
        return cls(shift, fixed, low % WORD, high % WORD, rows, skip, equal)


@dataclass(frozen=True, slots=True)
class Rows:
    """Fingerprints (n, W) with the columns asked for, None otherwise."""

    fingerprints: U64
    ids: U64 | None
    numbers: U64 | None
    """Places in all tables together, deleted rows counted."""

    def __len__(self) -> int:
        return len(self.fingerprints)

    def take(self, places: I64) -> Rows:
        """Some of the rows."""
        return Rows(
            self.fingerprints[places],
            None if self.ids is None else self.ids[places],
            None if self.numbers is None else self.numbers[places],
        )


class StoredRows:
    """Live rows of tables; immutable, and as of one commit if the tables are.

    Parameters
    ----------
    ids, numbered : bool
        Which columns rows carry.

    Notes
    -----
    Where rows were deleted, one bit a row says so; it is found by a read of the ids.
    """

    def __init__(
        self, tables: Sequence[Table], tombstones: Deletions | None, *, words: int,
        ids: bool = True, numbered: bool = False,
    ) -> None:
        self.tables: list[Table] = [table for table in tables if len(table)]
        self.words: int = words
        self.with_ids: bool = ids
        self.with_numbers: bool = numbered
        self._bases = np.cumsum([0, *map(len, self.tables)]).tolist()
        self._step = max(64, READ_WORDS // words) // 8 * 8  # whole bytes of a mask
        self._reorder: Callable[[U64], U64] | None = None
        self._live = [
            None if tombstones is None else tombstones.live_bits(table) for table in self.tables
        ]
        self._count = sum(
            len(table) if mask is None else int(np.bitwise_count(mask).sum())
            for table, mask in zip(self.tables, self._live, strict=True)
        )

    def __len__(self) -> int:
        return self._count

    def without(self, marks: Sequence[U8]) -> StoredRows:
        """The same without some rows: for each table a bit a row, 1 for those left out.

        Their numbers stay free, so that those of the others are the same.
        """
        others = copy(self)
        others._live = [
            ~marked if mask is None else mask & ~marked
            for mask, marked in zip(self._live, marks, strict=True)
        ]
        left_out = sum(int(np.bitwise_count(marked).sum()) for marked in marks)
        others._count = self._count - left_out
        return others

    def reordered(self, order: Callable[[U64], U64]) -> StoredRows:
        """The same rows with the bits of their fingerprints in another order."""
        others = copy(self)
        others._reorder = order
        return others

    @property
    def stored(self) -> int:
        """Rows of the tables, deleted ones included: numbers are below it."""
        return int(self._bases[-1])

    @property
    def mask_bytes(self) -> int:
        """Of the bits that say which rows are not deleted."""
        return sum(mask.nbytes for mask in self._live if mask is not None)

    @property
    def row_bytes(self) -> int:
        """Of a row with its columns."""
        return 8 * (self.words + self.with_ids + self.with_numbers)

    def pieces(self, among: KeyRange | None = None) -> Iterator[tuple[int, int, U64, I64 | None]]:
        """All live rows, or those of a range, in order of their numbers.

        Yields the table's place, the first row looked at, the rows looked at, and which of these
        are meant; None for all of them.
        """
        for place, (table, mask) in enumerate(zip(self.tables, self._live, strict=True)):
            first, end = 0, len(table)
            if among is not None and not among.shift and self._reorder is None:
                first, end = _slice(table, among)
            for start in range(first // 8 * 8, end, self._step):
                stop = min(start + self._step, end)
                rows = verified(table.fingerprints[start:stop])
                if self._reorder is not None:
                    rows = self._reorder(rows)
                held = None if among is None else _within(rows, among)
                if mask is not None:
                    live = np.unpackbits(mask[start // 8 : -(-stop // 8)])[: stop - start]
                    held = live.view(np.bool_) if held is None else held & live.view(np.bool_)
                if held is None or held.all():
                    yield place, start, rows, None
                else:
                    chosen = np.flatnonzero(held)
                    if len(chosen):
                        yield place, start, rows, chosen

    def count(self, among: KeyRange, before: int, bits: int) -> I64:
        """Rows of a range by the value of some bits of their keys, int64 (2**bits,).

        The bits are those after the first `before`, and do not cross from one word to the next.
        """
        level, within = divmod(before, 64)
        shift, mask = np.uint64(64 - within - bits), np.uint64((1 << bits) - 1)
        counts = np.zeros(1 << bits, np.int64)
        for _, _, rows, chosen in self.pieces(among):
            key = key_word(rows, among.shift, level)
            if chosen is not None:
                key = key[chosen]
            values = ((key >> shift) & mask).astype(np.int64)
            counts += np.bincount(values, minlength=1 << bits)
        return counts

    def load(self, among: KeyRange) -> Rows:
        """Copies of the rows that a range means, in order of their numbers."""
        found = Rows(
            np.empty((among.rows, self.words), np.uint64),
            np.empty(among.rows, np.uint64) if self.with_ids else None,
            np.empty(among.rows, np.uint64) if self.with_numbers else None,
        )
        at, skip = 0, among.skip
        whole = among.fixed == () and (among.low, among.high) == (0, WORD - 1)
        for place, start, rows, chosen in self.pieces(None if whole else among):
            size = len(rows) if chosen is None else len(chosen)
            if skip >= size:
                skip -= size
                continue
            if skip or size - skip > among.rows - at:
                chosen = np.arange(size) if chosen is None else chosen
                chosen = chosen[skip : skip + among.rows - at]
                size, skip = len(chosen), 0
            some = slice(at, at + size)
            found.fingerprints[some] = rows if chosen is None else rows[chosen]
            if found.ids is not None:
                ids = verified(self.tables[place].ids[start : start + len(rows)])
                found.ids[some] = ids if chosen is None else ids[chosen]
            if found.numbers is not None:
                found.numbers[some] = self.numbers(place, start, len(rows), chosen)
            at += size
            if at == among.rows:
                break
        return found

    def parts(self, among: KeyRange, most: int) -> Iterator[Rows]:
        """The rows of a range, at most so many at a time."""
        for skip in range(0, among.rows, most):
            yield self.load(KeyRange(
                among.shift, among.fixed, among.low, among.high, min(most, among.rows - skip), skip
            ))

    def numbers(self, place: int, start: int, rows: int, chosen: I64 | None) -> U64:
        """Numbers of the rows that `pieces` gave."""
        base = int(self._bases[place]) + start
        if chosen is None:
            return np.arange(base, base + rows, dtype=np.uint64)
        numbers: U64 = (chosen + base).astype(np.uint64)
        return numbers

    def place(self, numbers: U64) -> tuple[I64, I64]:
        """Table and row of the row numbers."""
        at = numbers.astype(np.int64)
        bases = np.asarray(self._bases, np.int64)
        places: I64 = np.searchsorted(bases, at, side="right") - 1
        return places, (at - bases[places]).astype(np.int64)


class _FirstWords(Sequence[int]):
    """Word 0 of a table's rows, of which a bisection verifies those it looks at."""

    def __init__(self, table: Table) -> None:
        self._rows = table.fingerprints

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, row: Any) -> Any:
        return verified(self._rows[row : row + 1])[0, 0]


def _slice(table: Table, among: KeyRange) -> tuple[int, int]:
    """Bounds of a range of keys from bit 0 on, by which tables are sorted."""
    column = _FirstWords(table)
    low, high = (among.fixed[0],) * 2 if among.fixed else (among.low, among.high)
    return bisect_left(column, low), bisect_right(column, high)


def _within(rows: U64, among: KeyRange) -> Bools:
    key = key_word(rows, among.shift, len(among.fixed))
    held: Bools = key - np.uint64(among.low) <= np.uint64(among.high - among.low)
    for level, value in enumerate(among.fixed):
        held &= key_word(rows, among.shift, level) == np.uint64(value)
    return held


@dataclass(frozen=True, slots=True)
class TileRanges:
    """Ranges of stored rows for tiles of `most_rows`.

    With `collapse` a range of one fingerprint has any number of rows: one represents all.
    """

    stored: StoredRows
    most_rows: int
    collapse: bool

    def of_block(self, shift: int, width: int) -> Iterator[list[KeyRange]]:
        """Tiles of a block, each list those that are compared with one another."""
        rows = len(self.stored)
        if rows <= self.most_rows:
            if rows:
                yield [KeyRange(shift, rows=rows)]
        else:
            yield from self._values(shift, width, 0, 0, rows)

    def _values(
        self, shift: int, width: int, prefix: int, bits: int, rows: int
    ) -> Iterator[list[KeyRange]]:
        """Tiles of the rows whose keys begin with `bits` bits `prefix`, too many for one."""
        if bits == width:
            yield list(self._cut(shift, prefix, bits, rows, self.most_rows // 2))
            return
        step = min(COUNTED_BITS, 64 - bits % 64, width - bits)
        most = self.most_rows
        for first, last, some in self._joined_values(shift, prefix, bits, rows, step, most):
            if some > most:
                yield from self._values(shift, width, first, bits + step, some)
            else:
                yield [KeyRange.between(shift, first, last, bits + step, some)]

    def _cut(
        self, shift: int, prefix: int, bits: int, rows: int, most: int
    ) -> Iterator[KeyRange]:
        """Tiles of the rows of a hot value."""
        if bits == 64 * self.stored.words:  # one fingerprint
            step = rows if self.collapse else most
            for skip in range(0, rows, step):
                yield KeyRange.between(
                    shift, prefix, prefix, bits, min(step, rows - skip), skip=skip, equal=True
                )
            return
        step = min(COUNTED_BITS, 64 - bits % 64)
        for first, last, some in self._joined_values(shift, prefix, bits, rows, step, most):
            if some > most:
                yield from self._cut(shift, first, bits + step, some, most)
            else:
                yield KeyRange.between(shift, first, last, bits + step, some)

    def _joined_values(
        self, shift: int, prefix: int, bits: int, rows: int, step: int, most: int
    ) -> Iterator[tuple[int, int, int]]:
        """First and last value of the next `step` bits, after the prefix, and their rows.

        As many values together as have no more than `most` rows; one that has more comes alone.
        """
        among = KeyRange.between(shift, prefix, prefix, bits, rows)
        counts = self.stored.count(among, bits, step)
        base = prefix << step
        start, total, last = 0, 0, 0
        for value in np.flatnonzero(counts).tolist():
            here = int(counts[value])
            if total and total + here > most:
                yield base + start, base + last, total
                total = 0
            if not total:
                start = value
            total, last = total + here, value
        if total:
            yield base + start, base + last, total
