"""Intervals of 95 %: Wilson's where trials are independent, and a bootstrap of documents where not.

The pairs of a sample are not independent: a page with a hundred copies has 4,950 of them. So the
documents are drawn again, each a Poisson number of times of mean 1, and a pair counts as often as
both of its documents together.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from simindex.records.advice import Rate

if TYPE_CHECKING:
    from simindex.arrays import F32, F64, I64, Bools

Z = 1.959963984540054
"""Standard deviations that hold 95 % of a normal distribution."""

DRAWS = 200

_AT_ONCE, _DRAWS_AT_ONCE = 24, 20
"""Shares and draws that are multiplied at a time: some 50 MB of 240,000 pairs."""


def wilson(hits: int, trials: int) -> Rate:
    """The rate of independent trials."""
    if not trials:
        return Rate(None, 0.0, 1.0, 0)
    share, z2 = hits / trials, Z * Z
    middle = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z * sqrt(share * (1 - share) / trials + z2 / (4 * trials**2)) / (1 + z2 / trials)
    return Rate(share, max(0.0, middle - half), min(1.0, middle + half), trials)


Shares = list[tuple["Bools", "Bools", float]]
"""Which pairs are hit, among which, and how many further ones are both."""


def rates(
    shares: Shares, a: I64, b: I64, weights: F64, *, documents: int, seed: int
) -> list[Rate]:
    """Each share of the weight of pairs (a, b), with its interval.

    Draws in which nothing is hit say little of a rate near 0, so an interval is no shorter than
    Wilson's of as many pairs.
    """
    found: list[Rate] = []
    for first in range(0, len(shares), _AT_ONCE):
        some = shares[first : first + _AT_ONCE]
        hits = np.stack([one[0] & one[1] for one in some]).astype(np.float32)
        among = np.stack([one[1] for one in some]).astype(np.float32)
        more = np.array([one[2] for one in some])
        random = np.random.default_rng(seed)
        drawn = np.concatenate([
            _drawn(hits, among, more, random, a, b, weights, documents)
            for _ in range(DRAWS // _DRAWS_AT_ONCE)
        ])
        totals = among.astype(np.float64) @ weights + more
        values = hits.astype(np.float64) @ weights + more
        counts = among.sum(axis=1, dtype=np.float64) + more
        found += [
            _rate(value, total, int(count), column)
            for value, total, count, column in zip(
                values.tolist(), totals.tolist(), counts.tolist(), drawn.T, strict=True
            )
        ]
    return found


def _drawn(
    hits: F32, among: F32, more: F64, random: np.random.Generator, a: I64, b: I64, weights: F64,
    documents: int,
) -> F64:
    """The shares by some draws of the documents, (draws, shares); NaN where nothing counts."""
    times = random.poisson(1.0, (_DRAWS_AT_ONCE, documents)).astype(np.float32)
    counted = (times[:, a] * times[:, b] * np.float32(weights)).T
    totals = among @ counted + more[:, None]
    shares: F64 = np.divide(
        hits @ counted + more[:, None], totals, out=np.full(totals.shape, np.nan),
        where=totals > 0,
    )
    return shares.T


def _rate(value: float, total: float, count: int, drawn: F64) -> Rate:
    if not total:
        return wilson(0, 0)
    share = min(1.0, value / total)
    bound = wilson(round(share * count), count)
    kept = drawn[~np.isnan(drawn)]
    low, high = np.quantile(kept, [0.025, 0.975]).tolist() if len(kept) else (0.0, 1.0)
    return Rate(share, max(0.0, min(low, bound.low)), min(1.0, max(high, bound.high)), count)
