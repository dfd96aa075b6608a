"""Which distances belong to a similarity: a radius for candidates, and a threshold for sketches.

    p = arccos(similarity) / pi                      the chance that a bit differs
    radius      the least h with P(X <= h) >= share, X binomial of b bits and p
    threshold   floor(b p)                           the distance that is expected at the similarity

A Jaccard resemblance J of two sets is a cosine c of their binary vectors: of m and n features they
share i, so J = i / (m + n - i), c = i / sqrt(m n), and with t = (m + n) / sqrt(m n)

    c = t J / (1 + J)       J = c / (t - c)

t is 2 for sets of equal size, and more for all others. So of all pairs of a resemblance those of
equal size have the least cosine, and the radius for them loses no other.
"""

from __future__ import annotations

from functools import lru_cache
from math import acos, cos, exp, floor, lgamma, log, log1p, pi

import numpy as np

from simindex.arrays import U16
from simindex.records.sketches import STEPS

MOST_APART = 4 * STEPS
"""Codes of sizes that are further apart count as this far: one set is 16 times as large, and no
resemblance that can be asked for is possible."""


def cosine_of_jaccard(resemblance: float) -> float:
    """The cosine of two sets of equal size; that of sets of other sizes is larger."""
    return 2 * resemblance / (1 + resemblance)


@lru_cache(16)
def distances_by_sizes(bits: int) -> U16:
    """uint16 (MOST_APART + 1, bits + 1): the distance of sets of equal size, for sets with sizes
    that are so many codes apart, and with sketches that differ in so many bits.

    Both distances stand for the same resemblance. It is not more than the smaller set has of the
    larger one, as far as the codes tell that. Equal bits stay equal.
    """
    distance = np.arange(bits + 1)
    cosine = np.cos(np.pi * distance / bits)
    smaller = np.exp2(-np.arange(MOST_APART + 1) / STEPS)[:, None]
    sizes = (1 + smaller) / np.sqrt(smaller)
    resemblance = np.minimum(cosine / (sizes - cosine), smaller * 2 ** (1 / STEPS))
    equal = np.clip(2 * resemblance / (1 + np.maximum(resemblance, 0)), -1.0, 1.0)
    found = np.maximum(distance, np.round(bits * np.arccos(equal) / np.pi))
    found[0], found[:, 0] = distance, 0
    whole: U16 = found.astype(np.uint16)
    return whole


def flip_share(similarity: float) -> float:
    """The chance that a bit of two documents of this cosine differs."""
    return acos(similarity) / pi


@lru_cache(256)
def share_within(h: int, similarity: float, bits: int) -> float:
    """Which share of the pairs of this cosine differ in at most h of so many bits."""
    return min(1.0, sum(share_at(distance, similarity, bits) for distance in range(h + 1)))


def share_at(distance: int, similarity: float, bits: int) -> float:
    """Which share of the pairs of this cosine differ in so many bits."""
    return _chance(distance, flip_share(similarity), bits)


def _chance(count: int, p: float, bits: int) -> float:
    """That so many of the bits differ, each with the chance p. By logarithms: of thousands of bits
    the coefficients are beyond floats."""
    if p == 0:
        return float(count == 0)
    ways = lgamma(bits + 1) - lgamma(count + 1) - lgamma(bits - count + 1)
    return exp(ways + count * log(p) + (bits - count) * log1p(-p))


@lru_cache(256)
def candidate_radius(similarity: float, share: float, bits: int) -> int:
    """The least h within which at least this share of the pairs of this cosine is."""
    p = flip_share(similarity)
    found = 0.0
    for h in range(bits + 1):
        found += _chance(h, p, bits)
        if found >= share:
            return h
    return bits


def threshold(similarity: float, bits: int) -> int:
    """The most bits in which two documents differ whose estimated cosine is not less."""
    distance = floor(bits * flip_share(similarity))
    # The cosine of an exact multiple may be rounded to just above it.
    return distance + (cos(pi * (distance + 1) / bits) >= similarity)
