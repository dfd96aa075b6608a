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


def wilson(hits: int, trials: int) -> Rate:
    """The rate of independent trials."""
    if not trials:
        return Rate(None, 0.0, 1.0, 0)
    share, z2 = hits / trials, Z * Z
    middle = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z * sqrt(share * (1 - share) / trials + z2 / (4 * trials**2)) / (1 + z2 / trials)
    return Rate(share, max(0.0, middle - half), min(1.0, middle + half), trials)


Shares = list[tuple["F32 | Bools", "F32 | Bools", float]]
"""Which pairs are hit, among which, both as shares of each pair, and how many further ones are
both."""


def rates(
    shares: Shares, a: I64, b: I64, weights: F64, *, documents: int, seed: int
) -> list[Rate]:
    """Each share of the weight of pairs (a, b), with its interval.

    Draws in which nothing is hit say little of a rate near 0, so an interval is no shorter than
    Wilson's of as many pairs.
    """
    if not shares:
        return []
    hits = np.stack([np.float32(one[0]) * np.float32(one[1]) for one in shares])
    among = np.stack([np.float32(one[1]) for one in shares])
    more = np.array([one[2] for one in shares])
    random = np.random.default_rng(seed)
    drawn = np.empty((DRAWS, len(shares)))
    for draw in range(DRAWS):
        times = random.poisson(1.0, documents).astype(np.float32)
        counted = times[a] * times[b] * weights.astype(np.float32)
        totals = among @ counted + more
        drawn[draw] = np.divide(
            hits @ counted + more, totals, out=np.full(len(shares), np.nan), where=totals > 0
        )
    found = []
    totals = among.astype(np.float64) @ weights + more
    values = hits.astype(np.float64) @ weights + more
    counts = among.sum(axis=1, dtype=np.float64) + more
    for row, total in enumerate(totals.tolist()):
        count = int(counts[row])
        if not total:
            found.append(wilson(0, 0))
            continue
        value = float(values[row]) / total
        bound = wilson(round(value * count), count)
        kept = drawn[~np.isnan(drawn[:, row]), row]
        low, high = np.quantile(kept, [0.025, 0.975]).tolist() if len(kept) else (0.0, 1.0)
        found.append(Rate(value, min(low, bound.low), max(high, bound.high), count))
    return found
