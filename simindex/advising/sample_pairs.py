"""The pairs that stand in a sample: near ones with their exact cosines, all others counted.

    every pair        distance of 64 bits, distance of 1,024 bits
    estimated >= 0.6  a sample of each range of estimates, its exact cosine, and its weight
    the others        how many there are at each distance of the fingerprints: strangers

A range of a block of rows has at most MOST_OF_RANGE pairs; where there are more, each that is drawn
counts for several.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simindex.bits.cosine import threshold
from simindex.bits.sets import by_sizes
from simindex.records.sketches import sizes_of
from simindex.simhash.weighting import counted_of
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.arrays import F64, I64, U8, U16, U64
    from simindex.bits.sets import Counted
    from simindex.records.batch import Batch
    from simindex.simhash.vectors import Vectors

RANGES = (0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99)
MOST_PAIRS = 120_000

DECIMALS = 9
"""Of an exact cosine: 18 of 20 equal weights that are shared are 0.9, not just below it."""

_BLOCK_ROWS = 128


@dataclass(frozen=True)
class Standing:
    """Near pairs of a sample, in no order, and how many others there are."""

    a: I64
    b: I64
    weight: F64
    """How many pairs each stands for."""
    cosine: F64
    distance: U16
    """Of the fingerprints."""
    sketched: dict[int, U16]
    """Distance of sketches of each width, as a search by a cosine sees it."""
    others: I64
    """Pairs that are not near, by the distance of their fingerprints, (b + 1,)."""


class Sketched(NamedTuple):
    """Sketches of some texts, and what a distance of them stands for."""

    bits: U64
    """(n, S)"""
    sizes: U8
    counted: Counted | None

    def apart(self, a: I64, others: Sketched, b: I64, width: int) -> U16:
        """How far some rows are from rows of others at the same places, by so many bits."""
        words = width // 64
        differing = between(self.bits[a, :words], others.bits[b, :words])
        return by_sizes(
            differing, self.sizes[a], others.sizes[b], width, "cosine", counted=self.counted
        )


def standing(
    rows: U64, sketched: Sketched, vectors: Vectors, widths: tuple[int, ...], seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> Standing:
    """Those of fingerprints (n, W) and sketches of a sample."""
    sketch = sketched.bits
    n, bits = len(rows), 64 * rows.shape[1]
    random = np.random.default_rng(seed)
    limits = [threshold(low, 64 * sketch.shape[1]) for low in RANGES]
    most = max(8, MOST_PAIRS * _BLOCK_ROWS // (max(n, 1) * len(RANGES)) * 2)
    others = np.zeros(bits + 1, np.int64)
    parts: list[tuple[I64, I64, F64]] = []
    for first in range(0, n, _BLOCK_ROWS):
        end = min(n, first + _BLOCK_ROWS)
        of_rows = _distances(rows[first:end], rows[first:])
        of_sketches = _distances(sketch[first:end], sketch[first:])
        upper = np.arange(n - first)[None, :] > np.arange(end - first)[:, None]
        near = upper & (of_sketches <= limits[0])
        others += np.bincount(of_rows[upper & ~near], minlength=bits + 1)
        a, b = np.nonzero(near)
        estimate = np.searchsorted(-np.array(limits), -of_sketches[a, b].astype(np.int64), "right")
        for band in range(1, len(RANGES) + 1):
            found = np.flatnonzero(estimate == band)
            if not len(found):
                continue
            kept = found
            if len(found) > most:
                kept = found[random.choice(len(found), most, replace=False)]
            weight = np.full(len(kept), len(found) / len(kept))
            parts.append((a[kept] + first, b[kept] + first, weight))
        if progress is not None:
            progress(end, n)
    none = np.empty(0, np.int64)
    a = np.concatenate([none, *(part[0] for part in parts)])
    b = np.concatenate([none, *(part[1] for part in parts)])
    weight = np.concatenate([np.empty(0), *(part[2] for part in parts)])
    cosine = np.round(vectors.cosines(a, b), DECIMALS)
    return Standing(
        a, b, weight, cosine, between(rows[a], rows[b]),
        {width: sketched.apart(a, sketched, b, width) for width in widths},
        others,
    )


def between(a: U64, b: U64) -> U16:
    """Distances of rows (n, W), row by row."""
    found: U16 = np.bitwise_count(a ^ b).sum(axis=1, dtype=np.uint16)
    return found


def _distances(some: U64, all_rows: U64) -> U16:
    found = np.zeros((len(some), len(all_rows)), np.uint16)
    for word in range(some.shape[1]):
        found += np.bitwise_count(some[:, word][:, None] ^ all_rows[:, word][None, :])
    return found


def columns(batch: Batch) -> tuple[U64, Sketched]:
    """Fingerprints (n, W) and sketches of a batch that has both."""
    assert batch.sketch is not None
    assert batch.sketches is not None
    sketched = Sketched(batch.sketch, sizes_of(batch.sketches), counted_of(batch.recipe))
    return batch.rows.reshape(len(batch), -1), sketched
