"""Candidates of a similarity in permuted rows, where finding all within the radius takes too long.

    rows            bits in their own order        ... and in further, fixed orders
    blocks          | 0 | 1 | 2 | 3 |              | 0 | 1 | 2 | 3 |    of each order
    candidates      pairs within h that agree on a block of one of the orders

At a cosine of 0.9 most pairs differ in 12 of 64 bits or less, and agree on one of 13 blocks of 5
bits. So each row is compared with a thirtieth of all. Such a pair agrees on a block of 13 bits in
one of 7 cases, but a row is compared with 1 / 8,192 of all: 35 such blocks, in 7 orders, hold 0.86
of all pairs at this cosine, where the radius holds 0.88.

Invariants
1. Which pairs are candidates depends on the number of rows, their fingerprints and the similarity.
   It does not depend on memory, threads or segments.
2. Each pair comes once: in the first order in which it agrees on a block.
3. Of the pairs at the similarity, so many are expected to be candidates as `Similar` asks for.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from simindex.arrays import I64, U64
from simindex.bits.cosine import share_at, share_within
from simindex.bits.splitmix import mixed
from simindex.pairs.find_all import COMPARE_NS, MOVE_NS, partition
from simindex.planning.similarity import Similar
from simindex.values import dataclass

BITS = 64

BLOCKS = (4, 5, 6, 7, 8)
"""Of an order of the bits: from 16 bits each to 8."""

MOST_ORDERS = 64

LEAST_ROWS = 1 << 18
"""Of fewer rows all pairs within h are found in some seconds."""

_ORDER_NS = 300.0
"""Nanoseconds, as measured, to put a row in another order of the bits and to sort all rows."""


@dataclass(frozen=True, slots=True)
class Orders:
    """In how many orders of the bits rows are compared, and by how many blocks of each."""

    orders: int
    blocks: int
    share: float
    """Of the pairs at the similarity that are candidates."""

    @property
    def told(self) -> str:
        """How candidates are found, in words."""
        return f"that agree on one of {self.blocks} blocks in one of {self.orders} orders of bits"


def chosen(rows: int, similar: Similar) -> Orders | None:
    """The orders that should take the least time; None where all pairs within h do."""
    if rows < LEAST_ROWS or similar.bits != BITS or not similar.sketch_bits:
        return None
    found, least = None, _cost(rows, 1, similar.h + 1) - _ORDER_NS
    for blocks in BLOCKS:
        orders = _orders(similar.h, similar.similarity, similar.recall, blocks)
        if orders is None:
            continue
        taken = _cost(rows, orders.orders, blocks)
        if taken < least:
            found, least = orders, taken
    return found


def _cost(rows: int, orders: int, blocks: int) -> float:
    compared = rows / 2 ** float(BITS / blocks) / 2
    each: float = blocks * (MOVE_NS + compared * COMPARE_NS)
    return orders * (_ORDER_NS + each)


@lru_cache(256)
def _orders(h: int, similarity: float, recall: float, blocks: int) -> Orders | None:
    """The fewest orders that hold the share `recall` of the pairs within h."""
    wanted = recall * share_within(h, similarity, BITS)
    at = [share_at(distance, similarity, BITS) for distance in range(h + 1)]
    missed = [1 - share for share in _held(blocks, h)]
    for orders in range(1, MOST_ORDERS + 1):
        share = sum(one * (1 - miss**orders) for one, miss in zip(at, missed, strict=True))
        if share >= wanted:
            return Orders(orders, blocks, share)
    return None


def _held(blocks: int, h: int) -> list[float]:
    """Of pairs at each distance from 0 to h, the share that agrees on a block of one order.

    The others differ in each block. Ways to differ in d bits, w of a block: the coefficients of
    (1 + x)^w; with one at least: less 1.
    """
    every, differing = np.array([1], object), np.array([1], object)
    for width in partition(BITS, blocks)[:, 1].tolist():
        row = np.array([1], object)
        for _ in range(width):
            row = np.convolve(row, np.array([1, 1], object))
        every = np.convolve(every, row)
        row = row.copy()
        row[0] = 0
        differing = np.convolve(differing, row)
    return [1 - int(differing[d]) / int(every[d]) for d in range(h + 1)]


class Order:
    """The bits of rows in another order: bit i of a word goes to the place `places[i]`."""

    def __init__(self, places: I64) -> None:
        ones = np.left_shift(np.uint64(1), places.astype(np.uint64))
        values = np.arange(256)
        self._of_byte = np.zeros((8, 256), np.uint64)
        for bit in range(BITS):
            held = (values >> (bit % 8)) & 1 == 1
            self._of_byte[bit // 8, held] |= ones[bit]

    def __call__(self, rows: U64) -> U64:
        """Rows of one word, (n, 1), or words, (n,), in this order."""
        contents = np.ascontiguousarray(rows.astype("<u8", copy=False)).view(np.uint8)
        contents = contents.reshape(-1, 8)
        found = self._of_byte[0][contents[:, 0]]
        for place in range(1, 8):
            found |= self._of_byte[place][contents[:, place]]
        reordered: U64 = found.reshape(rows.shape)
        return reordered


def orders_of(number: int) -> list[I64]:
    """The places of the bits in so many orders, the first their own. Always the same."""
    found = [np.arange(BITS)]
    for order in range(1, number):
        draws = mixed(np.arange(BITS * order, BITS * (order + 1), dtype=np.uint64))
        found.append(np.argsort(np.argsort(draws, kind="stable"), kind="stable"))
    return found
