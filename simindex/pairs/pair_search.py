"""All pairs of an index within h, `Index.pairs`, found a part of the rows at a time.

    blocks    |   0   |   1   |   2   |   3   |     h + 1 of them: rows within h agree on one

    for each block, the rows are taken in tiles: all that have some values of the block, as many as
    fit the memory. A pair is found in the tile of the first block on which its rows agree.

    block 1   values  0 ..... 4711 | 4712 .... 9999 | 10000 | 10001 ....
              tile    ------------   --------------   - - -   ----------
                                                      a hot value, cut into tiles by the bits after
                                                      it: each of these is also compared with the
                                                      others of its value

A tile is read in one pass over the tables. Its rows are sorted, and equal ones are compared once.

Invariants
1. Rows of equal fingerprints are in one tile, except for those of one fingerprint that alone is
more
   than a tile.
2. What is found at once is not more than `most` pairs, whatever the rows are: what has more is cut.
3. Order and bounds of what is given depend on rows and memory, never on threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from simindex._kernels import _native
from simindex.arrays import I64, U16, U32, U64, Bools
from simindex.pairs.find_all import partition
from simindex.pairs.live_rows import KeyRange, Rows, StoredRows, TileRanges
from simindex.pairs.tiles import Found, Room, Tile
from simindex.records.reports import Progress


class PairSearch:
    """Pairs of stored rows within h.

    Parameters
    ----------
    collapse : bool
        Of equal rows only the first, by id and then by number, is paired with others; the others
        are given as pairs of distance 0 with it.
    blocks : uint32 (B, 2), optional
        First bit and width of blocks, instead of h + 1 of them: pairs that agree on none are not
        found.
    found : uint64 (k, W), optional
        Bits on which pairs may agree that are not given again, equal rows among them.
    """

    def __init__(
        self,
        stored: StoredRows,
        *,
        h: int,
        room: Room,
        collapse: bool,
        threads: int,
        progress: Progress | None = None,
        blocks: U32 | None = None,
        found: U64 | None = None,
    ) -> None:
        self._stored, self._h, self._room = stored, h, room
        self._collapse, self._threads, self._progress = collapse, threads, progress
        bits = 64 * stored.words
        if blocks is None and h < bits:
            blocks = partition(bits, h + 1)
        self._all_near = blocks is None
        if blocks is None:  # one block of no bits, on which all rows agree
            blocks = np.zeros((1, 2), np.uint32)
        self._blocks, self._masks = blocks, block_masks(blocks, bits)
        self._found = found
        self._batch, self._chunk = room.rows, room.chunk

    def __iter__(self) -> Iterator[Found]:
        """Every pair once, at most about `room.pairs` at a time."""
        held: list[Found] = []
        size = 0
        for piece in chain.from_iterable(self._pieces()):
            if not len(piece):
                continue
            if size and size + len(piece) > self._chunk:
                yield Found.joined(held)
                held, size = [], 0
            held.append(piece)
            size += len(piece)
        if held:
            yield Found.joined(held)

    def _pieces(self) -> Iterator[Iterator[Found]]:
        """Of each tile, and of each two that share values of a block; to be used one after the
        other."""
        done = 0
        planned = TileRanges(self._stored, self._room.rows, self._collapse)
        whole: Tile | None = None
        tile: Tile | None
        for block, (shift, width) in enumerate(self._blocks.tolist()):
            for ranges in planned.of_block(shift, width):
                for place, one in enumerate(ranges):
                    tile = None  # before the next one is read
                    if len(ranges) == 1 and one.rows == len(self._stored):
                        # All rows fit: they are read once.
                        whole = tile = (
                            self._tile(one) if whole is None else Tile.of(whole.columns, shift)
                        )
                    else:
                        tile = self._tile(one)
                    if block == 0 and self._found is None:
                        yield self._equal(tile, one)
                    yield self._within(tile, block)
                    for other in ranges[place + 1 :]:
                        if not (block and one.equal and other.equal and _alike(one, other)):
                            yield self._across(tile, self._tile(other), block)
                    done += one.rows
                    if self._progress is not None:
                        self._progress(done // len(self._blocks), len(self._stored))

    # -- tiles -------------------------------------------------------------------------------------

    def _tile(self, among: KeyRange) -> Tile:
        if among.equal and self._collapse:
            return self._first_of_equal(among)
        return Tile.of(self._stored.load(among), among.shift)

    def _equal_parts(self, among: KeyRange) -> Iterator[Rows]:
        return self._stored.parts(among, self._room.rows)

    def _first_of_equal(self, among: KeyRange) -> Tile:
        """A tile of one row, the first, that represents all rows of a range of one fingerprint."""
        best: Rows | None = None
        for rows in self._equal_parts(among):
            tile = Tile.of(rows, among.shift)
            first = tile.columns.take(np.zeros(1, np.int64))
            if best is None or (
                first.ids is not None and best.ids is not None and first.ids[0] < best.ids[0]
            ):
                best = first
        assert best is not None  # a range has rows
        return Tile.of(best, among.shift)

    # -- pairs of equal rows -----------------------------------------------------------------------

    def _equal(self, tile: Tile, among: KeyRange) -> Iterator[Found]:
        if among.equal and self._collapse:
            first = tile.columns.take(np.zeros(1, np.int64))
            for rows in self._equal_parts(among):
                yield from self._links(first, rows)
        elif self._collapse:
            members = np.ones(len(tile.columns), np.bool_)
            members[tile.starts[:-1]] = False
            others = np.flatnonzero(members)
            of = np.searchsorted(tile.starts, others, side="right") - 1
            for some in _slices(len(others), self._chunk):
                other = others[some]
                yield tile.pairs(
                    tile.starts[of[some]], tile, other, np.zeros(len(other), np.uint16)
                )
        else:
            # With those of other ids: they begin where the rows of one fingerprint and id end.
            next_id = tile.next_id()
            later = np.repeat(tile.starts[1:], np.diff(tile.starts)) - next_id
            for row, place in _spread(later, self._chunk):
                yield tile.pairs(row, tile, next_id[row] + place, np.zeros(len(row), np.uint16))

    def _links(self, first: Rows, rows: Rows) -> Iterator[Found]:
        """Pairs of a row with rows equal to it; itself is among them once."""
        for some in _slices(len(rows), self._chunk):
            size = len(rows.fingerprints[some])
            other = np.ones(size, np.bool_)
            if first.ids is not None and rows.ids is not None:
                other &= rows.ids[some] != first.ids[0]
            if first.numbers is not None and rows.numbers is not None:
                other &= rows.numbers[some] != first.numbers[0]
            left = int(other.sum())
            yield Found(
                None if first.ids is None else np.repeat(first.ids, left),
                None if rows.ids is None else rows.ids[some][other],
                None if first.numbers is None else np.repeat(first.numbers, left),
                None if rows.numbers is None else rows.numbers[some][other],
                np.zeros(left, np.uint16),
            )

    # -- pairs of different rows -------------------------------------------------------------------

    def _within(self, tile: Tile, block: int) -> Iterator[Found]:
        """Pairs of a tile that first agree on a block."""
        bounds = tile.groups(*self._blocks[block].tolist())
        at = 0  # of `bounds`, so that rows that agree are compared together
        while at < len(bounds) - 1:
            end = int(np.searchsorted(bounds, bounds[at] + self._batch, side="right")) - 1
            end = max(end, at + 1)
            low, high = int(bounds[at]), int(bounds[end])
            found = self._compared(tile.distinct[low:high], block)
            if found is None and end > at + 1:
                self._batch = max(2, (high - low) // 2)
                continue
            if found is None:
                yield from self._halves(tile, low, high, block)
            else:
                if len(found[0]) < self._room.pairs // 8:
                    self._batch = min(self._room.rows, 2 * self._batch)
                yield from self._expanded(tile, low, found, tile, low)
            at = end

    def _halves(self, tile: Tile, low: int, high: int, block: int) -> Iterator[Found]:
        """Pairs of rows that all agree on a block, and are too many at once."""
        middle = (low + high) // 2
        for start, stop in ((low, middle), (middle, high)):
            found = self._compared(tile.distinct[start:stop], block)
            if found is None:
                yield from self._halves(tile, start, stop, block)
            else:
                yield from self._expanded(tile, start, found, tile, start)
        yield from self._crossed(tile, (low, middle), tile, (middle, high), block)

    def _across(self, tile: Tile, other: Tile, block: int) -> Iterator[Found]:
        """Pairs of a row of one tile and a row of another that has the same value of the block."""
        yield from self._crossed(
            tile, (0, len(tile.distinct)), other, (0, len(other.distinct)), block
        )

    def _crossed(
        self, tile: Tile, some: tuple[int, int], other: Tile, others: tuple[int, int], block: int
    ) -> Iterator[Found]:
        a, b = tile.distinct[some[0] : some[1]], other.distinct[others[0] : others[1]]
        if not len(a) or not len(b):
            return
        if len(a) * len(b) <= self._room.pairs:
            found: Compared | None = self._scanned(a, b, block)
        else:
            found = self._compared(np.concatenate([a, b]), block)
            if found is not None:
                first, second = np.minimum(*found[:2]), np.maximum(*found[:2])
                crossing = (first < len(a)) & (second >= len(a))
                found = first[crossing], second[crossing] - len(a), found[2][crossing]
        if found is not None:
            yield from self._expanded(tile, some[0], found, other, others[0])
        elif len(a) >= len(b):
            middle = (some[0] + some[1]) // 2
            for half in ((some[0], middle), (middle, some[1])):
                yield from self._crossed(tile, half, other, others, block)
        else:
            middle = (others[0] + others[1]) // 2
            for half in ((others[0], middle), (middle, others[1])):
                yield from self._crossed(tile, some, other, half, block)

    def _compared(self, rows: U64, block: int) -> Compared | None:
        """Places of the pairs of different rows that first agree on a block; None if too many."""
        if len(rows) < 2:
            return _NONE
        if self._all_near:
            if len(rows) ** 2 > self._room.pairs:
                return None
            first, second, apart = self._scanned(rows, rows, block)
            once = first < second
            return first[once], second[once], apart[once]
        found = _native.block_pairs(
            rows, self._blocks, block, self._h, self._threads, most=self._room.pairs
        )
        if found is None:
            return None
        a, b, distance = found
        return a.astype(np.int64), b.astype(np.int64), distance

    def _scanned(self, a: U64, b: U64, block: int) -> Compared:
        """The same of each row of `a` with each of `b`, by comparing all."""
        second, first, distance, _ = _native.scan(a, b, self._h, False)
        different = a[first] ^ b[second]
        wanted = ~(different & self._masks[block]).any(axis=1)
        for earlier in self._masks[:block]:
            wanted &= (different & earlier).any(axis=1)
        return first[wanted].astype(np.int64), second[wanted], distance[wanted]

    def _expanded(
        self, tile: Tile, low: int, found: Compared, other: Tile, other_low: int
    ) -> Iterator[Found]:
        """Of pairs of different fingerprints, the pairs of their rows."""
        a, b, distance = found[0] + low, found[1] + other_low, found[2]
        if self._found is not None:
            new = self._new(tile.distinct[a] ^ other.distinct[b])
            a, b, distance = a[new], b[new], distance[new]
        first, second = tile.starts[a], other.starts[b]
        if not self._collapse:
            rows_a, rows_b = tile.starts[a + 1] - first, other.starts[b + 1] - second
            if len(a) and int(max(rows_a.max(), rows_b.max())) > 1:
                order = np.lexsort((b, a))  # threads find them in any order
                for pair, place in _spread((rows_a * rows_b)[order], self._chunk):
                    of = order[pair]
                    yield tile.pairs(
                        first[of] + place // rows_b[of], other, second[of] + place % rows_b[of],
                        distance[of],
                    )
                return
        yield tile.pairs(first, other, second, distance)


    def _new(self, different: U64) -> Bools:
        """Which pairs agree on none of the bits of `found`, by the bits in which they differ."""
        new = np.ones(len(different), np.bool_)
        for mask in () if self._found is None else self._found:
            new &= (different & mask).any(axis=1)
        return new


Compared = tuple[I64, I64, U16]
_NONE: Compared = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint16))


def block_masks(blocks: U32, bits: int) -> U64:
    """uint64 (B, W) with ones where the blocks are."""
    return np.stack([_mask(bits, first, width) for first, width in blocks.tolist()])


def _mask(bits: int, first: int, width: int) -> U64:
    """uint64 (W,) with ones where the block is."""
    ones = ((1 << int(width)) - 1) << (bits - int(first) - int(width))
    return np.array(
        [(ones >> (bits - 64 * (word + 1))) & ((1 << 64) - 1) for word in range(bits // 64)],
        np.uint64,
    )


def _alike(one: KeyRange, other: KeyRange) -> bool:
    return (one.fixed, one.low) == (other.fixed, other.low)


def _slices(size: int, most: int) -> Iterator[slice]:
    for start in range(0, size, most):
        yield slice(start, min(start + most, size))


def _spread(counts: I64, most: int) -> Iterator[tuple[I64, I64]]:
    """Each place as often as its count says, with 0, 1, ..; at most `most` at a time."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    for start in range(0, total, most):
        flat = np.arange(start, min(start + most, total))
        of = np.searchsorted(ends, flat, side="right")
        yield of, flat - (ends[of] - counts[of])
