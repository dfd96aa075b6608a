"""The permutation of one table of a block design: the moves of its blocks, and rows so moved.

    header     the table's columns that come first, as intervals (first column, width)
    moves      what lies within one word at both ends: source shift, target shift, width
    rotations  the moves for kernels: source word, target word, left rotation, mask

A permuted row is its header's columns in the header's order, then all others as they were. Columns
count from bit 63 of word 0, shifts from the last bit of the last word.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np

from simindex.arrays import I64, U64
from simindex.records.arguments import as_fingerprints

SLICE_ROWS = 1 << 15
"""Rows permuted at a time, so that they stay in cache: table 5 of G=5,g=2 for 10 M rows of 64 bits
took 0.08 s, in one piece 0.21 s (Xeon, one thread)."""

Interval = tuple[int, int]
"""First column and width."""


def widths(bits: int, count: int) -> tuple[int, ...]:
    """Widths of `count` blocks of `bits` bits: they differ by at most 1, wider first."""
    width, wider = divmod(bits, count)
    return (width + 1,) * wider + (width,) * (count - wider)


def intervals(bits: int, count: int) -> list[Interval]:
    """`count` neighbouring blocks of `bits` bits, from column 0."""
    cut = widths(bits, count)
    return list(zip(accumulate(cut, initial=0), cut, strict=False))


@lru_cache(maxsize=4096)
def moves(header: tuple[Interval, ...], bits: int) -> tuple[I64, I64]:
    """Moves of a table's permutation and of its inverse, int64 (k, 3), read-only.

    From the first target column on; blocks that stay neighbours move as one.
    """
    order: list[Interval] = []
    rest, column = [], 0
    for first, width in sorted(header):
        rest.append((column, first - column))
        column = first + width
    for first, width in (*header, *rest, (column, bits - column)):
        if order and sum(order[-1]) == first:
            order[-1] = (order[-1][0], order[-1][1] + width)
        elif width:
            order.append((first, width))
    rows, target = [], 0
    for first, width in order:
        while width:
            # Up to the next word's start, of the source or of the target.
            moved = min(width, 64 - first % 64, 64 - target % 64)
            rows.append((bits - first - moved, bits - target - moved, moved))
            first, target, width = first + moved, target + moved, width - moved
    there = np.array(rows, np.int64)
    back = there[np.argsort(-there[:, 0])][:, [1, 0, 2]]
    for shared in (there, back):
        shared.flags.writeable = False
    return there, back


def rotations(moved: I64, bits: int) -> U64:
    """Moves as rotations under masks, uint64 (k, 4); moves of one rotation are one."""
    words = bits // 64
    masks: dict[tuple[int, int, int], int] = {}
    for source, target, width in moved.tolist():
        key = (words - 1 - source // 64, words - 1 - target // 64, (target - source) % 64)
        masks[key] = masks.get(key, 0) | ((1 << width) - 1) << target % 64
    return np.array([(*key, mask) for key, mask in masks.items()], dtype=np.uint64)


def permuted(rows: Any, turned: U64, bits: int) -> U64:
    """Rows with rotations applied, a copy; see `BlockDesign.permute`."""
    source = as_fingerprints(rows, bits=bits)
    result = np.zeros_like(source)
    held = np.empty(min(SLICE_ROWS, len(source)), np.uint64)
    for start in range(0, len(source), SLICE_ROWS):
        here, there = source[start : start + SLICE_ROWS], result[start : start + SLICE_ROWS]
        part = held[: len(here)]
        for word, target, left, mask in turned.tolist():
            # A rotation is two shifts; most masks need one of them.
            low = (1 << left) - 1
            for shift, by, kept in (
                (np.left_shift, left, mask & ~low), (np.right_shift, 64 - left, mask & low),
            ):
                if kept:
                    shift(here[:, word], np.uint64(by), out=part)
                    np.bitwise_and(part, np.uint64(kept), out=part)
                    np.bitwise_or(there[:, target], part, out=there[:, target])
    return result.reshape(np.shape(rows))
