"""How likely each bit is to differ between a text and its near-duplicate.

[PSM] section 3: a bit flips when a rewrite moves its sum W past zero, so the chance falls as |W|
grows: p = P(Y > |W|). What searches need of p is the cost of a bit, its log-odds ln((1 - p) / p):
the probability of a flip set is a product (equation (6)), so relative to no flip at all its cost is
the sum over its bits.

A volatility is a table of costs over |W| in units of the row's root mean square, since rewrites
scale with the document. Tables are nondecreasing and never negative (p <= 1/2).
"""

from __future__ import annotations

from itertools import pairwise
from math import erfc, sqrt

import numpy as np
from numpy.typing import NDArray

from simindex.arrays import F32, F64, U8, Bools
from simindex.values import dataclass

BINS = 1024
STEP = 1.0 / 256.0
"""Width of a bin, in root mean squares of a row: the table reaches to 4."""

COST_STEPS = 255

RAREST = 1e-6
"""Smallest probability of a flip that a table distinguishes from none."""


@dataclass(frozen=True, slots=True, eq=False)
class Volatility:
    """Cost of a flip by |W| / rms: `costs[min(int(|W| / rms / STEP), BINS - 1)]`.

    `source` says in words what it was learned from.
    """

    costs: F32
    source: str
    most: float | None = None
    """What all flips of a pair cost at most; of pairs that cost more, some are not reported."""

    def of(self, weights: NDArray[np.floating]) -> F32:
        """Cost of each bit of some rows of weights (n, b): float32 (n, b)."""
        normal = np.abs(normalised(weights))
        bins = np.minimum((normal / STEP).astype(np.int64), BINS - 1)
        costs: F32 = np.take(self.costs, bins)
        return costs

    def in_steps(self, weights: NDArray[np.floating]) -> tuple[U8, int]:
        """The cost of each bit as uint8 (n, b), rounded to the least of COST_STEPS, and `most` in
        these steps, rounded up. For kernels that add up the costs of the bits that differ."""
        assert self.most is not None
        step = float(self.costs[-1]) / COST_STEPS
        table = np.rint(self.costs / step).astype(np.uint8)
        values = np.abs(weights)
        scale = np.sqrt(np.einsum("ij,ij->i", weights, weights) / max(1, weights.shape[1]))
        scale[scale == 0] = 1.0
        values *= (1 / (STEP * scale)).astype(np.float32)[:, None]
        np.minimum(values, BINS - 1, out=values)
        found: U8 = table[values.astype(np.uint16)]
        return found, int(np.ceil(self.most / step))


def normalised(weights: NDArray[np.floating]) -> F64:
    """Rows of weights (n, b) in units of their root mean square; a row of zeros stays one."""
    values = np.asarray(weights, dtype=np.float64)
    scale = np.sqrt(np.mean(np.square(values), axis=1, keepdims=True))
    scale[scale == 0] = 1.0
    normal: F64 = values / scale
    return normal


SAMPLED = 1 << 18
"""How many weights a model uses; more would not change it."""


def _costs(probability: F64) -> F32:
    p = np.clip(np.minimum.accumulate(probability), RAREST, 0.5)
    costs: F32 = np.log((1 - p) / p).astype(np.float32)
    return costs


def from_random_pairs(
    weights: NDArray[np.floating], *, distance: float, seed: int = 0
) -> Volatility:
    """The paper's volatility, for when no near-duplicate is known.

    Y is distributed as W(u) - W(v) over random pairs of stored rows ([PSM] equation (5) and after).
    Such pairs are unrelated pages, whose Y would flip every other bit; a rewrite within reach moves
    the sums far less, so Y is shrunk until the expected distance of a rewrite is `distance`.

    Parameters
    ----------
    weights : float (n, b)
        Sampled rows, in any unit.
    distance : float
        Expected Hamming distance over b bits, in bits.
    """
    rows = normalised(weights[: max(2, SAMPLED // max(1, weights.shape[1]))])
    rng = np.random.default_rng(seed)
    count = len(rows)
    if count >= 2:
        first = rng.integers(0, count, count)
        second = (first + rng.integers(1, count, count)) % count
        change = np.sort(np.abs(rows[first] - rows[second]).ravel())
    else:
        change = np.sort(np.abs(rng.normal(0.0, np.sqrt(2.0), 100_000)))
        if count == 0:
            rows = rng.normal(size=(256, 64))
    change = change[:: max(1, len(change) // 100_000)]
    # In their order they are found in `change` without a miss of the cache for each.
    magnitudes = np.sort(np.abs(rows).ravel())
    magnitudes = magnitudes[:: max(1, len(magnitudes) // 10_000)]
    width = rows.shape[1]

    def probability(at: NDArray[np.floating], shrink: float) -> F64:
        # Y is symmetric, so P(Y > c) is half of P(|Y| > c).
        above = 1.0 - np.searchsorted(change, at / shrink, side="right") / len(change)
        return 0.5 * above

    low, high = 1e-4, 1.0
    for _ in range(40):
        middle = np.sqrt(low * high)
        if float(probability(magnitudes, middle).mean()) * width > distance:
            high = middle
        else:
            low = middle
    centres = (np.arange(BINS) + 0.5) * STEP
    # Beyond the largest sampled change the tail is exponential, as in Figure 1(b).
    tail = np.exp(-centres / low)
    return Volatility(
        _costs(np.maximum(probability(centres, low), RAREST * tail)),
        f"random pairs of {count} rows of weights",
    )


def of_cosine(cosine: float) -> Volatility:
    """The volatility of pairs whose vectors have this cosine c.

    Their sums have a joint normal distribution of that correlation: given W in units of its root
    mean square, the other sum is c W + sqrt(1 - c^2) Z. So the sign differs with the chance
    Phi(-c |W| / sqrt(1 - c^2)).
    """
    centres = (np.arange(BINS) + 0.5) * STEP
    ratio = cosine / sqrt(max(1e-12, 1 - cosine * cosine))
    chance = np.array([0.5 * erfc(at * ratio / sqrt(2)) for at in centres.tolist()])
    return Volatility(_costs(chance), f"the law of pairs at cosine {cosine:g}")


INDEPENDENT_SHARE = 0.75
"""Of the near-duplicates, where none is known: their flips are taken to be independent of |W|.

Flip sets that reach a recall of 0.95 of both kinds of near-duplicates (64 bits, h = 3), by header
width and share: 14 bits 86 (0.3), 78 (0.5), 70 (0.7), 70 (0.9); 20 bits 274, 227, 193, 187.
"""


def hedged(model: Volatility, *, chance: float, source: str) -> Volatility:
    """A model in which some near-duplicates flip each bit with one `chance`, whatever its weight.

    The others flip bits as `model` says. No bit is then so unlikely to flip that it is tried last
    of all: a flip set of one bit comes before most sets of two.
    """
    by_weight = 1.0 / (1.0 + np.exp(model.costs.astype(np.float64)))
    mixed = (1.0 - INDEPENDENT_SHARE) * by_weight + INDEPENDENT_SHARE * chance
    return Volatility(_costs(mixed), source)


def from_near_pairs(weights: NDArray[np.floating], flipped: Bools) -> Volatility:
    """Flip rates counted on real near-duplicates.

    Parameters
    ----------
    weights : float (n, b)
        A row for each pair: the weights of one of its texts.
    flipped : bool (n, b)
        Which bits differ in the other text.

    Notes
    -----
    Bits are ordered by |W| and cut into bands of at least 32 flips each, so that a rate is known to
    about a sixth; rates are made monotone by pooling neighbours that are out of order, and
    interpolated in log-odds between the bands' middles.
    """
    magnitude = np.abs(normalised(weights)).ravel()
    order = np.argsort(magnitude, kind="stable")
    magnitude, flips = magnitude[order], flipped.ravel()[order].astype(np.float64)
    total = float(flips.sum())
    bands = int(np.clip(total / 32, 1, 48))
    ends = np.searchsorted(np.cumsum(flips), total * np.arange(1, bands + 1) / bands)
    edges = np.unique(np.concatenate([[0], np.minimum(ends + 1, len(flips)), [len(flips)]]))
    sizes = np.diff(edges).astype(np.float64)
    rates = (np.add.reduceat(flips, edges[:-1]) + 0.25) / (sizes + 0.5)
    middles = np.array(
        [np.median(magnitude[a:b]) for a, b in pairwise(edges.tolist())]
    )
    rates = np.clip(_falling(rates, sizes), RAREST, 0.5)
    costs = np.log((1 - rates) / rates)
    centres = (np.arange(BINS) + 0.5) * STEP
    table = np.interp(centres, middles, costs)
    return Volatility(
        np.maximum.accumulate(np.maximum(table, 0.0)).astype(np.float32),
        f"{len(weights)} near-duplicate pairs of the index",
    )


def _falling(rates: F64, sizes: F64) -> F64:
    """The nonincreasing sequence nearest to `rates` (pool adjacent violators)."""
    pooled: list[tuple[float, float, int]] = []
    for rate, size in zip(rates.tolist(), sizes.tolist(), strict=True):
        mean, weight, count = rate, size, 1
        while pooled and pooled[-1][0] < mean:
            before, before_weight, before_count = pooled.pop()
            mean = (before * before_weight + mean * weight) / (before_weight + weight)
            weight, count = weight + before_weight, count + before_count
        pooled.append((mean, weight, count))
    return np.concatenate([np.full(count, mean) for mean, _, count in pooled])


def symmetric_sums(odds: F64, order: int) -> tuple[F64, F64]:
    """Elementary symmetric sums e_0 .. e_order of each row of odds (n, w), and their scale.

    e_i is the total odds of all flip sets of i bits. Those of wide rows go beyond what a float64
    can tell, so they are given as float64 (n, order + 1) to be multiplied by exp(scale), float64
    (n,), which is 0 for all others. Values too small compared with
    the largest are 0. O(n w order).
    """
    sums = np.zeros((len(odds), order + 1))
    sums[:, 0] = 1.0
    scale = np.zeros(len(odds))
    for column in odds.T:
        sums[:, 1:] += sums[:, :-1] * column[:, None]
        largest = sums.max(axis=1)
        if largest.max(initial=0.0) > _LARGE:
            by = np.where(largest > _LARGE, largest, 1.0)
            sums /= by[:, None]
            scale += np.log(by)
    return sums, scale


_LARGE = 1e200
