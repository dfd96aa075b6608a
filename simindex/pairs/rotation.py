"""All pairs by rotation: sort, compare neighbours, rotate the bits, again. [BIS] section 3.2.

    for each of k rotations    every fingerprint is rotated left by so many bits, all are sorted,
                               and each is compared with the one before it ([BIS], figures 1 and 2)

    k = 4, b = 64              rotations by 0, 16, 32 and 48 bits

Two rows within h are found if some rotation puts them side by side. That fails when every rotation
has one of their differing bits near its front, or when a third row sorts between them: a family of
near-duplicates loses pairs although each of its members finds a neighbour. So the result always
carries its false negatives, compared with an exact search.

Invariants
1. A pair is reported with its true distance, at most h: precision is 1.
2. Rows are compared exactly, for recall, in random order; all of them unless that takes more than
   `comparisons`. Up to 32,768 rows the default always reaches all.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from simindex._kernels import _native
from simindex.arrays import I64, U64
from simindex.bits.vosh import set_count
from simindex.checks import require_whole
from simindex.errors import InvalidBatch
from simindex.methods.base import Found
from simindex.methods.psm import exhaustive_masks
from simindex.pairs.find_all import MAX_ROWS
from simindex.query.audit import wilson
from simindex.records.arguments import as_fingerprints
from simindex.records.pairs import Pairs, RotationPairs, RotationStats
from simindex.simhash.radius import raw_radius
from simindex.storage.tables.table import sort_table
from simindex.values import dataclass

ROTATIONS = 25
"""The k that [BIS] section 4 measures: 11.26% false negatives among 1000 documents."""

WINDOW = 1
"""[BIS] compares a row with the one immediately before it."""

COMPARISONS = 1 << 30
"""Of rows, spent on measuring recall: 32,768 rows with each other, about half a second."""

PROBE_COMPARISONS = 16
"""Comparisons of a scan that take as long as one look under a header."""

CHUNK_PAIRS = 1 << 22
"""True pairs at a time, at most: each may be a pair when all rows are alike."""
CHUNK_ROWS = 256


def rotation_pairs(
    fingerprints: Any,
    *,
    h: int | None = None,
    rotations: int = ROTATIONS,
    window: int = WINDOW,
    comparisons: int = COMPARISONS,
    seed: int = 0,
) -> RotationPairs:
    """Finds most pairs of rows within Hamming distance h, and measures how many it misses.

    Parameters
    ----------
    fingerprints : uint64 (n,) or (n, W)
    h : int, optional
        From 0 to b, inclusive. Default: 3 for each 64 bits.
    rotations : int
        k, from 1 to b. The bits are rotated by i b / k for i = 0 .. k - 1, rounded down.
    window : int
        With how many of the rows before it each row is compared. From n - 1 on, all pairs are
        compared.
    comparisons : int
        About how many rows may be compared to measure the recall. With 0 it is not measured.
    seed : int
        Seed of the order in which rows are taken for this measurement.

    Returns
    -------
    RotationPairs
        Row numbers a < b, each pair once, ordered by (a, b), and `stats` with the measured recall.

    Raises
    ------
    InvalidBatch, InvalidOption
        If the rows are not fingerprints, or an option is out of range.

    Notes
    -----
    Takes O(k n (sort + window)) time, and about 40 bytes of memory a row and 30 a pair. Source:
    [BIS] section 3.2. Its example rotates by two bits; simindex spreads the rotations over all
    bits.
    """
    started = time.perf_counter()
    rows = as_fingerprints(fingerprints)
    n, bits = len(rows), 64 * rows.shape[1]
    if n >= MAX_ROWS:
        raise InvalidBatch(f"{n:,} rows: the limit of one call is {MAX_ROWS - 1:,}")
    h = require_whole(raw_radius(bits) if h is None else h, "h", 0, bits)
    rotations = require_whole(rotations, "rotations", 1, bits)
    window = require_whole(window, "window", 1)
    comparisons = require_whole(comparisons, "comparisons", 0)
    seed = require_whole(seed, "seed", 0)
    complete = window >= n - 1
    tried = 1 if complete else rotations
    codes = np.empty(0, np.uint64)
    for number in range(tried):
        shift = number * bits // rotations
        codes = np.union1d(codes, _neighbours(rotated(rows, shift), h, window))
    reach = min(window, max(0, n - 1))
    compared = tried * (reach * n - reach * (reach + 1) // 2)
    a, b = (codes >> np.uint64(32)).astype(np.int64), (codes & _LOW).astype(np.int64)
    distance = np.bitwise_count(rows[a] ^ rows[b]).sum(axis=1, dtype=np.uint16)
    recall = Recall(1.0, 1.0, 1.0, n) if complete else measured_recall(
        rows, codes, h=h, comparisons=comparisons, seed=seed
    )
    stats = RotationStats(
        method="rotation", guarantee=recall.in_words(n), exact=recall.complete(n), rotations=tried,
        window=window, rows_compared=compared, recall=recall.share, recall_low=recall.low,
        recall_high=recall.high, recall_rows=recall.rows, seconds=time.perf_counter() - started,
    )
    return RotationPairs(Pairs(a, b, distance), stats)


_LOW = np.uint64(0xFFFFFFFF)


def rotated(rows: U64, shift: int) -> U64:
    """Fingerprints (n, W) with their bits rotated left, across words, by 0 <= shift < b."""
    words, within = divmod(shift, 64)
    turned = np.roll(rows, -words, axis=1)
    if not within:
        return turned
    carried = np.roll(turned, -1, axis=1) >> np.uint64(64 - within)
    joined: U64 = (turned << np.uint64(within)) | carried
    return joined


def _codes(a: I64, b: I64) -> U64:
    """A pair as one number, a < b in its halves; its order is that of (a, b)."""
    low, high = np.minimum(a, b).astype(np.uint64), np.maximum(a, b).astype(np.uint64)
    joined: U64 = (low << np.uint64(32)) | high
    return joined


def _neighbours(rows: U64, h: int, window: int) -> U64:
    """Codes of the pairs within h, among rows at most `window` apart in order."""
    single = rows.shape[1] == 1
    order = _native.sort_rows(np.ascontiguousarray(rows[:, 0])) if single else np.lexsort(
        rows.T[::-1]
    )
    placed = rows[order]
    found = [np.empty(0, np.uint64)]
    for apart in range(1, min(window, len(rows) - 1) + 1):
        different = np.bitwise_count(placed[apart:] ^ placed[:-apart])
        near = np.flatnonzero(different.sum(axis=1, dtype=np.uint16) <= h)
        found.append(_codes(order[near], order[near + apart]))
    return np.concatenate(found)


# -- recall ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recall:
    """What a measurement says: a share of the true pairs, its 95% interval, and on how many rows.

    The share is None when no compared row has a near one, and not all were compared.
    """

    share: float | None
    low: float
    high: float
    rows: int

    def complete(self, n: int) -> bool:
        """Whether it says that nothing is missed among `n` rows."""
        return self.rows == n and self.share == 1.0

    def in_words(self, n: int) -> str:
        """For people; `n` rows in all."""
        if self.complete(n):
            return "exact"
        if not self.rows:
            return "recall was not measured"
        if self.share is None:
            return f"unknown recall: {self.rows:,} of {n:,} rows compared have no near row"
        if self.rows == n:
            return f"recall {self.share:.4f}, measured on all rows"
        return (
            f"estimated recall {self.share:.4f} ({self.low:.4f} - {self.high:.4f} with 95% "
            f"confidence), from {self.rows:,} of {n:,} rows"
        )


def measured_recall(
    rows: U64, codes: U64, *, h: int, comparisons: int, seed: int
) -> Recall:
    """Share of all pairs within h that are among the sorted `codes`.

    Rows are taken in random order and asked exactly for all that are near them, so each pair is
    counted from each of its ends with the same chance. Pairs of one row are found or missed
    together. So the interval is Wilson's for (sum t)^2 / sum t^2 trials, as if each row were one
    trial; t is the number of true pairs of a row. If all rows were compared, the share is exact.
    """
    n = len(rows)
    if not comparisons or not n:
        return Recall(None if n else 1.0, 0.0 if n else 1.0, 1.0, 0)
    ask = _exact_search(rows, h)
    order = np.random.default_rng(seed).permutation(n)
    step = max(1, min(CHUNK_PAIRS // n, CHUNK_ROWS))
    asked = spent = 0
    true, got, squares = 0, 0, 0
    while asked < n and spent < comparisons:
        chosen = order[asked : asked + step]
        found = ask(np.ascontiguousarray(rows[chosen]))
        asked += len(chosen)
        spent += found.compared + PROBE_COMPARISONS * found.probes
        a, b = chosen[found.query], found.id.astype(np.int64)
        other = a != b
        wanted = _codes(a[other], b[other])
        true += len(wanted)
        places = np.searchsorted(codes, wanted)
        places[places == len(codes)] = 0
        got += int((codes[places] == wanted).sum()) if len(codes) else 0
        each = np.bincount(found.query[other], minlength=1).astype(np.float64)
        squares += int((each**2).sum())
    if asked == n:
        share = got / true if true else 1.0
        return Recall(share, share, share, n)
    if not true:
        return Recall(None, 0.0, 1.0, asked)
    share = got / true
    return Recall(share, *wilson(share, true**2 / squares), asked)


def _exact_search(rows: U64, h: int) -> Callable[[U64], Found]:
    """Finds all rows within h of queries, by comparing all or by PSM with every flip set."""
    n = len(rows)
    ids = np.arange(n, dtype=np.uint64)
    if rows.shape[1] == 1:
        table = sort_table("rotation", rows, ids, None, horizon=0)
        costs = [
            (1 + set_count(bits, h)) * (PROBE_COMPARISONS + n / 2.0**bits)
            for bits in range(table.header_bits + 1)
        ]
        best = int(np.argmin(costs))
        if costs[best] < n / 2:
            masks = exhaustive_masks(best, h)
            return lambda queries: Found(
                *_native.probe_checked(table.checked, best, queries, masks, h, False)
            )

    def compared(queries: U64) -> Found:
        query, row, distance, count = _native.scan(rows, queries, h, False)
        return Found(query, row, distance, ids[row], 0, count)

    return compared
