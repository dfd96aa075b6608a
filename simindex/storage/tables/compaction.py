"""Many small segments as one, in bounded memory: their live rows, in order, a block at a time.

`merge` verifies and counts, and the caller writes the blocks. `writing/policy.py` picks the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from simindex.arrays import I64, U8, U32, U64
from simindex.errors import CorruptFile
from simindex.storage.files.checksums import map_of, verified
from simindex.storage.tables.deletions import Deletions
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.segment import Segment
from simindex.storage.tables.table import Table, sort_table
from simindex.values import dataclass

WINDOW_ROWS = 1 << 20
"""Rows of 64 bits, of all inputs together, that a merge holds in memory at a time."""

Mask = U8 | None
"""Packed bits, 1 for the rows of a segment that are not deleted; None means all of them."""


class Block(NamedTuple):
    """Some rows."""

    fingerprints: U64
    ids: U64
    keys: KeyHeap | None
    times: U32 | None
    sketches: U8 | None


@dataclass(frozen=True, slots=True)
class MergedRows:
    """The live rows of some segments in one order, counted and not yet read."""

    inputs: tuple[Segment, ...]
    live: tuple[Mask, ...]
    rows: int
    """Live rows of all inputs; 0 if every row is deleted."""
    key_bytes: int | None
    """Bytes of their keys; None where the index has no keys."""
    dead: tuple[int, ...]
    """Rows of each input, in their order, that are deleted."""

    def blocks(self) -> Iterator[Block]:
        """All rows, a window at a time; CorruptFile where rows of an input are out of order.

        Rows with an equal first word keep the order of the inputs.
        """
        previous = 0
        first = self.inputs[0]
        words = first.fingerprints.shape[1]
        words += 0 if first.sketches is None else -(-first.sketches.shape[1] // 8)
        window_rows = WINDOW_ROWS // words
        for block in in_order(self.inputs, self._block, window_rows):
            firsts = block.fingerprints[:, 0]
            if len(firsts):
                if int(firsts[0]) < previous or (firsts[1:] < firsts[:-1]).any():
                    raise _out_of_order(self.inputs)
                previous = int(firsts[-1])
            yield block

    def _block(self, place: int, start: int, stop: int) -> Block:
        return _block(self.inputs[place], self.live[place], start, stop)


def merge(inputs: Sequence[Segment], tombstones: Deletions) -> MergedRows:
    """The live rows of some segments as those of one.

    Parameters
    ----------
    inputs : segments, oldest first
        Each is verified against its checksums before a row of it is used.

    Notes
    -----
    Memory is WINDOW_ROWS words of rows and sketches, and their keys, and one bit a row where
    deletions apply.

    Raises
    ------
    CorruptFile
        If an input is damaged.
    """
    for segment in inputs:
        segment.envelope.verify()
    live = tuple(tombstones.live_bits(segment) for segment in inputs)
    kept = [
        len(segment) if mask is None else int(np.bitwise_count(mask).sum())
        for segment, mask in zip(inputs, live, strict=True)
    ]
    total = sum(kept)
    key_bytes = None
    if total and inputs[0].keys is not None:
        key_bytes = sum(map(_key_bytes, inputs, live))
    dead = tuple(len(segment) - rows for segment, rows in zip(inputs, kept, strict=True))
    return MergedRows(tuple(inputs), live, total, key_bytes, dead)


def _out_of_order(tables: Sequence[Table]) -> CorruptFile:
    names = ", ".join(table.name for table in tables)
    owner = map_of(tables[0].fingerprints)
    return CorruptFile(
        f"one of {names} has rows that are not sorted", remedy="`simindex check` shows which",
        path=names if owner is None else owner.path,
    )


def _rows_in(mask: Mask, start: int, stop: int) -> I64 | None:
    if mask is None:
        return None
    first = start // 8 * 8
    bits = np.unpackbits(mask[first // 8 : -(-stop // 8)])[start - first : stop - first]
    return np.flatnonzero(bits).astype(np.int64)


def _key_bytes(segment: Segment, mask: Mask) -> int:
    keys = segment.keys
    if keys is None:
        return 0
    size, total = len(keys.data), 0
    if mask is None:
        return size - int(np.clip(keys.offsets[0], 0, size))
    for start in range(0, len(segment), WINDOW_ROWS):
        stop = min(start + WINDOW_ROWS, len(segment))
        rows = _rows_in(mask, start, stop)
        lengths = np.diff(np.clip(keys.offsets[start : stop + 1], 0, size))
        total += int(lengths[rows].sum())
    return total


def in_order(
    tables: Sequence[Table], block_of: Callable[[int, int, int], Block], window_rows: int
) -> Iterator[Block]:
    """Blocks of the rows of some tables, in order of their first words.

    Parameters
    ----------
    block_of : function (place, start, stop)
        What is given out of rows `start` to `stop` of the table at a place.
    window_rows : int
        Rows of all tables together that are looked at in a round.

    Raises
    ------
    CorruptFile
        If rows of a table are found out of order; not all such rows are.

    Notes
    -----
    Each round looks at the next window of every table. Rows below the least of the windows' last
    words cannot be preceded by a row not yet seen, so they are sorted together and given out. When
    there is no such row, all windows begin with that word: its rows are given out table by table.
    """
    window = max(1, window_rows // max(1, len(tables)))
    at = [0] * len(tables)
    while any(start < len(table) for start, table in zip(at, tables, strict=True)):
        stops = [min(start + window, len(s)) for start, s in zip(at, tables, strict=True)]
        open_ends = [
            int(_words(table, stop - 1, stop)[0])
            for table, stop in zip(tables, stops, strict=True)
            if stop < len(table)
        ]
        if open_ends:
            bound = min(open_ends)
            below = [
                start + int(np.searchsorted(_words(s, start, stop), np.uint64(bound)))
                for s, start, stop in zip(tables, at, stops, strict=True)
            ]
            if below == at:
                yield from _equal_rows(tables, block_of, at, bound, window)
                if below == at:
                    raise _out_of_order(tables)
                continue
            stops = below
        yield _sorted_block(block_of, at, stops)
        at[:] = stops


def _words(table: Table, start: int, stop: int) -> U64:
    return verified(table.fingerprints[start:stop])[:, 0]


def _equal_rows(
    tables: Sequence[Table], block_of: Callable[[int, int, int], Block], at: list[int],
    bound: int, window: int,
) -> Iterator[Block]:
    for place, table in enumerate(tables):
        while at[place] < len(table):
            start = at[place]
            stop = min(start + window, len(table))
            count = int(np.searchsorted(_words(table, start, stop), np.uint64(bound), side="right"))
            if count == 0:
                break
            yield block_of(place, start, start + count)
            at[place] += count
            if count < stop - start:
                break


def _block(segment: Segment, mask: Mask, start: int, stop: int) -> Block:
    rows = _rows_in(mask, start, stop)
    fingerprints, ids = segment.fingerprints[start:stop], segment.ids[start:stop]
    keys = None if segment.keys is None else segment.keys.slice(start, stop)
    times = None if segment.times is None else segment.times[start:stop]
    sketches = None if segment.sketches is None else segment.sketches[start:stop]
    if rows is None or len(rows) == stop - start:
        return Block(fingerprints, ids, keys, times, sketches)
    return Block(
        fingerprints[rows], ids[rows], None if keys is None else keys.take(rows),
        None if times is None else times[rows], None if sketches is None else sketches[rows],
    )


def _sorted_block(
    block_of: Callable[[int, int, int], Block], starts: list[int], stops: list[int]
) -> Block:
    parts = [
        block_of(place, start, stop)
        for place, (start, stop) in enumerate(zip(starts, stops, strict=True))
        if stop > start
    ]
    if len(parts) == 1:
        return parts[0]
    return sorted_block(parts)


def sorted_block(parts: Sequence[Block]) -> Block:
    """The rows of some blocks in one order; there is at least one block."""
    columns: list[list[Any]] = [
        [one for one in column if one is not None] for column in zip(*parts, strict=True)
    ]
    fingerprints, ids, heaps, times, sketches = columns
    table = sort_table(
        "", np.concatenate(fingerprints), np.concatenate(ids),
        KeyHeap.joined(heaps) if heaps else None, horizon=0,
        times=np.concatenate(times) if times else None,
        sketches=np.concatenate(sketches) if sketches else None,
    )
    return Block(table.fingerprints, table.ids, table.keys, table.times, table.sketches)
