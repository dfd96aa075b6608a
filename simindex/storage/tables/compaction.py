"""Many small segments as one, in bounded memory: their live rows, in order, a block at a time.

`merge` verifies and counts, and the caller writes the blocks. `writing/policy.py` picks the inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from simindex.arrays import I64, U8, U64
from simindex.errors import CorruptFile
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.segment import Segment
from simindex.storage.tables.table import sort_table
from simindex.storage.tables.tombstones import Tombstones

WINDOW_ROWS = 1 << 20
"""Rows of 64 bits, of all inputs together, that a merge holds in memory at a time."""

Mask = U8 | None
"""Packed bits, 1 for the rows of a segment that are not deleted; None means all of them."""

Block = tuple[U64, U64, KeyHeap | None]
"""Fingerprints, ids and keys of some rows."""


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
    """Rows of each input, in their order, that a tombstone covers."""

    def blocks(self) -> Iterator[Block]:
        """All rows, a window at a time; CorruptFile where rows of an input are out of order.

        Rows with an equal first word keep the order of the inputs.
        """
        previous = 0
        for block in _merged(self.inputs, self.live):
            words = block[0][:, 0]
            if len(words):
                if int(words[0]) < previous or (words[1:] < words[:-1]).any():
                    raise _out_of_order(self.inputs)
                previous = int(words[-1])
            yield block


def merge(inputs: Sequence[Segment], tombstones: Tombstones) -> MergedRows:
    """The live rows of some segments as those of one.

    Parameters
    ----------
    inputs : segments, oldest first
        Each is verified against its checksums before a row of it is used.

    Notes
    -----
    Memory is WINDOW_ROWS words of rows and their keys, and one bit a row where tombstones apply.

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


def _out_of_order(inputs: Sequence[Segment]) -> CorruptFile:
    names = ", ".join(segment.name for segment in inputs)
    return CorruptFile(
        f"one of {names} has rows that are not sorted", remedy="`simindex check` says which",
        path=inputs[0].envelope.path,
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


def _merged(inputs: Sequence[Segment], live: Sequence[Mask]) -> Iterator[Block]:
    """Blocks (fingerprints, ids, keys) of all live rows, in order.

    Each round looks at the next window of every input. Rows below the least of the windows' last
    words cannot be preceded by a row not yet seen, so they are sorted together and given out. When
    there is no such row, all windows begin with that word: its rows are given out input by input.
    """
    words = inputs[0].fingerprints.shape[1]
    window = max(1, WINDOW_ROWS // (len(inputs) * words))
    at = [0] * len(inputs)
    while any(start < len(segment) for start, segment in zip(at, inputs, strict=True)):
        stops = [min(start + window, len(s)) for start, s in zip(at, inputs, strict=True)]
        open_ends = [
            int(segment.fingerprints[stop - 1, 0])
            for segment, stop in zip(inputs, stops, strict=True)
            if stop < len(segment)
        ]
        if open_ends:
            bound = min(open_ends)
            below = [
                start + int(np.searchsorted(s.fingerprints[start:stop, 0], np.uint64(bound)))
                for s, start, stop in zip(inputs, at, stops, strict=True)
            ]
            if below == at:
                yield from _equal_rows(inputs, live, at, bound, window)
                if below == at:
                    raise _out_of_order(inputs)
                continue
            stops = below
        yield _sorted_block(inputs, live, at, stops)
        at[:] = stops


def _equal_rows(
    inputs: Sequence[Segment], live: Sequence[Mask], at: list[int], bound: int, window: int
) -> Iterator[Block]:
    for place, segment in enumerate(inputs):
        while at[place] < len(segment):
            start = at[place]
            stop = min(start + window, len(segment))
            words = segment.fingerprints[start:stop, 0]
            count = int(np.searchsorted(words, np.uint64(bound), side="right"))
            if count == 0:
                break
            yield _block(segment, live[place], start, start + count)
            at[place] += count
            if count < stop - start:
                break


def _block(segment: Segment, mask: Mask, start: int, stop: int) -> Block:
    rows = _rows_in(mask, start, stop)
    fingerprints, ids = segment.fingerprints[start:stop], segment.ids[start:stop]
    keys = None if segment.keys is None else segment.keys.slice(start, stop)
    if rows is None or len(rows) == stop - start:
        return fingerprints, ids, keys
    return fingerprints[rows], ids[rows], None if keys is None else keys.take(rows)


def _sorted_block(
    inputs: Sequence[Segment], live: Sequence[Mask], starts: list[int], stops: list[int]
) -> Block:
    parts = [
        _block(segment, mask, start, stop)
        for segment, mask, start, stop in zip(inputs, live, starts, stops, strict=True)
        if stop > start
    ]
    if len(parts) == 1:
        return parts[0]
    fingerprints = np.concatenate([part[0] for part in parts])
    ids = np.concatenate([part[1] for part in parts])
    heaps = [part[2] for part in parts if part[2] is not None]
    keys = KeyHeap.joined(heaps) if heaps else None
    table = sort_table("", fingerprints, ids, keys, horizon=0)
    return table.fingerprints, table.ids, table.keys
